//! QuickJS: componentize-qjs builds it into a component without a policy, once. The host loads
//! policies into that component, which takes a tenth of the time of a build.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use tokio::sync::Mutex;
use vmhost_engine::{Base, Engine, EngineConfig};
use wasm_encoder::{Component, ComponentSectionId, RawSection};
use wasmparser::{Parser, Payload};

use super::made::succeeded;
use crate::error::{Cause, IoContext as _};
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Error, Result, place, process, wit};

/// The folder in which npm installs programs.
pub(super) const BIN: Option<&str> = Some("node_modules/.bin");

/// Builds the base component.
pub(crate) const QUICKJS: Tool = Tool {
    name: "componentize-qjs",
    variable: None,
    ways: &[Way {
        command: &["componentize-qjs"],
        local: BIN,
        version: &[],
        probe: Some(&["--help"]),
    }],
    minimum: Version(0, 4, 5),
    install: "npm install, in the plugin's folder (if its package.json does not name it: npm install --save-dev --save-exact componentize-qjs@0.4.5)",
};

/// The source of the base component, which has no policy yet.
const LOADER: &str = include_str!("quickjs/loader.js");

/// The base's WIT, and the name of its world.
const WORLD: (&str, &str) = (include_str!("quickjs/base.wit"), "base");

/// Where the loader lists what a policy may import.
const IMPORTS: &str = "const imports = {";

/// What a policy that sends HTTP requests imports besides, and how the loader imports it.
const HTTP_MODULE: &str = r#""vmhost:http/http@1.0.0""#;
const HTTP_LOADER: &str = "import * as http from \"vmhost:http/http@1.0.0\";\n\n";

/// The name of the loader's export besides the contract.
const LOAD: &str = "load";

/// The outer component of a base, without the inner one. componentize-qjs wraps its component in an
/// outer one, together with a stand-in for what exists only at build time.
struct Shell {
    sections: Vec<(u8, Vec<u8>)>,
    inner: usize,
}

/// A component that contains QuickJS. It is built by the first build, kept in the project's hidden
/// folder for later processes, and compiled once per process.
pub(crate) struct QuickJs {
    componentize: Program,
    /// Whether policies send HTTP requests.
    http: bool,
    base: Mutex<Option<(Shell, Base)>>,
}

impl std::fmt::Debug for QuickJs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("QuickJs")
            .field(&self.componentize)
            .finish()
    }
}

impl QuickJs {
    pub fn new(componentize: Program, http: bool) -> Self {
        Self {
            componentize,
            http,
            base: Mutex::default(),
        }
    }

    /// Returns the program that builds the base.
    pub fn program(&self) -> &Program {
        &self.componentize
    }

    /// Builds the component of a bundle.
    pub async fn component(&self, folder: &Path, work: &Work, bundle: &Path) -> Result<Vec<u8>> {
        let source = fs::read_to_string(bundle).at("read", bundle)?;
        let mut base = self.base.lock().await;
        let (shell, base) = match &mut *base {
            Some(base) => base,
            none => none.insert(self.compiled(folder, work).await?),
        };
        let loaded = base.snapshot(&source).await.map_err(|error| {
            let _ = writeln!(std::io::stderr(), "{error}");
            Error::Failed {
                folder: folder.to_owned(),
                tool: "QuickJS".to_owned(),
            }
        })?;
        Ok(shell.around(&loaded))
    }

    async fn compiled(&self, folder: &Path, work: &Work) -> Result<(Shell, Base)> {
        let component = work.path("quickjs.wasm");
        let recipe = self.recipe();
        let made_by = work.path("quickjs.recipe");
        if !component.is_file() || !fs::read(&made_by).is_ok_and(|made| made == recipe.as_bytes()) {
            place::remove(&made_by)?;
            self.make(folder, work, &component).await?;
            place::whole(&made_by, recipe.as_bytes())?;
        }
        let compiled = async || {
            let (shell, inner) = Shell::of(&place::read(&component)?)?;
            let (engine, _) = Engine::new(&EngineConfig::default())?;
            Ok((shell, Base::new(&engine, inner, LOAD).await?))
        };
        compiled().await.map_err(|source| {
            // The base is broken for an unknown reason, so the next build creates it again.
            let _ = place::remove(&made_by);
            Error::Componentize {
                file: component.clone(),
                source,
            }
        })
    }

    /// Returns the source of the loader, and the base's WIT.
    fn sources(&self) -> (String, String) {
        if !self.http {
            return (LOADER.to_owned(), WORLD.0.to_owned());
        }
        let import = format!("{HTTP_LOADER}{IMPORTS}\n  {HTTP_MODULE}: http,");
        let loader = LOADER.replacen(IMPORTS, &import, 1);
        let contract = "include vmhost:plugin/plugin@1.0.0;";
        let both = format!("{contract}\n  {}", wit::HTTP_IMPORT);
        (loader, WORLD.0.replacen(contract, &both, 1))
    }

    /// Returns the inputs of a base. A change of any of them requires another base.
    fn recipe(&self) -> String {
        let version = self.componentize.version.map(|version| version.to_string());
        let tool = format!(
            "{} {}",
            self.componentize.text(),
            version.unwrap_or_default()
        );
        let contract = wit::FILES.map(|(_, text)| text).concat();
        let (loader, world) = self.sources();
        [&tool, &*loader, &*world, &contract].join("\n")
    }

    async fn make(&self, folder: &Path, work: &Work, component: &Path) -> Result<()> {
        let parts = work.path("quickjs");
        let (source, world) = self.sources();
        let loader = parts.join("loader.js");
        place::if_changed(&loader, source.as_bytes())?;
        let contract = parts.join("wit");
        place::if_changed(&contract.join("base.wit"), world.as_bytes())?;
        wit::write(&contract.join("deps/plugin"))?;
        if self.http {
            wit::write_http(&contract.join("deps/http"))?;
        }
        place::remove(component)?;
        let mut command = self.componentize.command();
        command.current_dir(folder);
        command
            .args(["--sync", "--world", WORLD.1, "--wit"])
            .arg(contract);
        command
            .arg("--js")
            .arg(loader)
            .arg("--output")
            .arg(component);
        let output = process::run_shown(&mut command).await?;
        succeeded(&output, folder, QUICKJS.name)?;
        work.take(component, "its tool succeeded but wrote no component")
            .map(drop)
    }
}

impl Shell {
    /// Splits a component into its shell and the first component inside it.
    fn of(component: &[u8]) -> Result<(Self, Vec<u8>), Cause> {
        let mut sections = Vec::new();
        let mut depth = 0;
        for payload in Parser::new(0).parse_all(component) {
            let payload = payload?;
            match &payload {
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                _ => {}
            }
            if let (1, Some((id, range))) = (depth, payload.as_section()) {
                let range = range.start as usize..range.end as usize;
                sections.push((id, component[range].to_vec()));
            }
        }
        let nested = |(id, _): &(u8, Vec<u8>)| *id == ComponentSectionId::Component as u8;
        let inner = sections
            .iter()
            .position(nested)
            .ok_or("it contains no component")?;
        let wasm = std::mem::take(&mut sections[inner].1);
        Ok((Self { sections, inner }, wasm))
    }

    /// Puts another component into the shell.
    fn around(&self, inner: &[u8]) -> Vec<u8> {
        let mut whole = Component::new();
        for (index, (id, data)) in self.sections.iter().enumerate() {
            let data = if index == self.inner { inner } else { data };
            whole.section(&RawSection { id: *id, data });
        }
        whole.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_for_http_requests_has_one_import_more() {
        let program = || Program {
            command: Vec::new(),
            version: None,
        };
        let (loader, world) = QuickJs::new(program(), true).sources();
        assert!(loader.contains(HTTP_LOADER) && loader.contains("http@1.0.0\": http,\n"));
        assert!(world.contains(wit::HTTP_IMPORT), "{world}");
        let (loader, world) = QuickJs::new(program(), false).sources();
        assert_eq!((loader.as_str(), world.as_str()), (LOADER, WORLD.0));
    }

    #[test]
    fn the_inner_component_is_exchanged_and_all_else_stays() {
        let whole = wat::parse_str(
            r#"(component (core module) (component $inner (core module) (component)) (component) (instance (instantiate $inner)))"#,
        );
        let whole = whole.unwrap();
        let (shell, inner) = Shell::of(&whole).unwrap();
        assert_eq!(
            inner,
            wat::parse_str("(component $inner (core module) (component))").unwrap()
        );
        assert_eq!(shell.around(&inner), whole);
        let other = wat::parse_str("(component)").unwrap();
        let expected =
            r#"(component (core module) (component) (component) (instance (instantiate 0)))"#;
        assert_eq!(
            sections(&shell.around(&other)),
            sections(&wat::parse_str(expected).unwrap())
        );
        assert!(Shell::of(&other).is_err());
    }

    /// Returns the sections without the name section.
    fn sections(component: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let (mut shell, inner) = Shell::of(component).unwrap();
        shell.sections[shell.inner].1 = inner;
        shell.sections.retain(|(id, _)| *id != 0);
        shell.sections
    }
}
