//! JavaScript and TypeScript: esbuild bundles the entry and all its imports into one file.
//! `quickjs` turns the bundle into a component, or jco combines it with StarlingMonkey. This module
//! must not know what becomes of the component.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::made::{Made, succeeded};
use super::quickjs::{BIN, QUICKJS, QuickJs};
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Error, Language, Result, place, process};

/// The bundler.
pub(crate) const ESBUILD: Tool = Tool {
    name: "esbuild",
    variable: None,
    ways: &[Way {
        command: &["esbuild"],
        local: BIN,
        version: &["--version"],
        probe: None,
    }],
    minimum: Version(0, 18, 0),
    install: "npm install, in the plugin's folder (if its package.json does not name it: npm install --save-dev --save-exact esbuild@0.28.2)",
};

/// Builds a component with StarlingMonkey.
pub(crate) const STARLINGMONKEY: Tool = Tool {
    name: "jco",
    variable: None,
    ways: &[Way {
        command: &["jco"],
        local: BIN,
        version: &["--version"],
        probe: None,
    }],
    minimum: Version(1, 34, 0),
    install: "npm install --save-dev --save-exact @bytecodealliance/jco@1.34.0 (only if package.json says \"vmhost\": {\"engine\": \"starlingmonkey\"})",
};

/// The project file.
const PACKAGE: &str = "package.json";

/// The name of the SDK's package.
const SDK: &str = "@vmhost/plugin";

/// The name of the entry's export, which the SDK creates.
const EXPORT: &str = "controller";

/// The options of esbuild. The engine runs no promises between two calls, so esbuild rewrites
/// `async` functions as generators, which the SDK runs.
const ESBUILD_OPTIONS: &[&str] = &[
    "--bundle",
    "--platform=neutral",
    "--main-fields=main",
    "--external:vmhost:*",
    "--supported:async-await=false",
    "--supported:async-generator=false",
    "--supported:for-await=false",
    "--log-level=warning",
    // Reports an entry that does not export the policy.
    "--log-override:import-is-undefined=error",
];

/// The tools that build JavaScript.
#[derive(Debug)]
pub(crate) struct Tools {
    language: Language,
    /// The content of the `package.json` that named the engine and its tool's version.
    package: Vec<u8>,
    esbuild: Program,
    engine: Engine,
}

/// The JavaScript engine in the component.
#[derive(Debug)]
enum Engine {
    QuickJs(Box<QuickJs>),
    StarlingMonkey(Program),
}

/// The name of an engine in a `package.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EngineName {
    #[default]
    QuickJs,
    StarlingMonkey,
}

impl Engine {
    async fn find(package: &Package, folder: &Path, language: Language) -> Result<Self> {
        Ok(match package.engine {
            EngineName::QuickJs => Self::QuickJs(Box::new(QuickJs::new(
                QUICKJS.need(folder, language).await?,
                package.http,
            ))),
            EngineName::StarlingMonkey => {
                Self::StarlingMonkey(STARLINGMONKEY.need(folder, language).await?)
            }
        })
    }

    /// Returns the engine's module format, by esbuild's name.
    fn format(&self) -> &'static str {
        match self {
            Self::QuickJs(_) => "cjs",
            Self::StarlingMonkey(_) => "esm",
        }
    }

    fn tool(&self) -> (&'static Tool, &Program) {
        match self {
            Self::QuickJs(quickjs) => (&QUICKJS, quickjs.program()),
            Self::StarlingMonkey(program) => (&STARLINGMONKEY, program),
        }
    }
}

impl Tools {
    pub async fn find(folder: &Path, language: Language) -> Result<Self> {
        let package = place::read(&folder.join(PACKAGE))?;
        let said = Package::of(folder, language)?;
        Ok(Self {
            language,
            package,
            esbuild: ESBUILD.need(folder, language).await?,
            engine: Engine::find(&said, folder, language).await?,
        })
    }

    pub fn is_current(&self, folder: &Path) -> bool {
        place::read(&folder.join(PACKAGE)).is_ok_and(|package| package == self.package)
    }

    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let package = Package::of(folder, self.language)?;
        let work = Work::begin(folder).await?;
        let bundle = work.output("plugin.js")?;
        self.bundle(folder, &package, &work, &bundle).await?;
        let wasm = match &self.engine {
            Engine::QuickJs(quickjs) => quickjs.component(folder, &work, &bundle).await?,
            Engine::StarlingMonkey(jco) => {
                starlingmonkey(jco, folder, &work, (&bundle, package.http)).await?
            }
        };
        let (tool, program) = self.engine.tool();
        Ok(Made::by(wasm, bundle, package.sdk, tool, program))
    }

    /// Bundles the entry and all its imports into one file.
    async fn bundle(
        &self,
        folder: &Path,
        package: &Package,
        work: &Work,
        bundle: &Path,
    ) -> Result<()> {
        let entry = work.path("entry.js");
        place::if_changed(&entry, entry_text(&package.main).as_bytes())?;
        let mut esbuild = self.esbuild.command();
        esbuild
            .current_dir(folder)
            .arg(&entry)
            .args(ESBUILD_OPTIONS)
            .arg(format!("--format={}", self.engine.format()));
        if let Some(sdk) = &package.sdk {
            esbuild.arg(format!("--alias:{SDK}={}", sdk.display()));
        }
        esbuild.arg(format!("--outfile={}", bundle.display()));
        let output = process::run_shown(&mut esbuild).await?;
        succeeded(&output, folder, ESBUILD.name)
    }
}

/// Returns the bundle's entry, which re-exports the policy. If the export is missing, esbuild's
/// error shows this line.
fn entry_text(main: &str) -> String {
    let main = Value::from(format!("../{main}"));
    format!("export {{ {EXPORT} }} /* = plugin({{...}}) */ from {main};\n")
}

/// Builds a bundle's component with StarlingMonkey.
async fn starlingmonkey(
    jco: &Program,
    folder: &Path,
    work: &Work,
    (bundle, http): (&Path, bool),
) -> Result<Vec<u8>> {
    let (contract, world) = work.world(http)?;
    let component = work.output("plugin.wasm")?;
    let mut command = jco.command();
    command.current_dir(folder).arg("componentize").arg(bundle);
    command.arg("--wit").arg(contract);
    command.args(["--world-name", world]);
    // The host has no wasi:http, and refuses a component that imports it.
    command.args(["--disable", "http", "--disable", "fetch-event", "--out"]);
    let output = process::run_shown(command.arg(&component)).await?;
    succeeded(&output, folder, STARLINGMONKEY.name)?;
    work.take(&component, "its tool succeeded but wrote no component")
}

/// The relevant fields of a `package.json`.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    /// The entry, relative to the folder.
    main: String,
    /// The SDK's folder, if the dependency names a folder.
    sdk: Option<PathBuf>,
    engine: EngineName,
    /// Whether the policy sends HTTP requests: an engine imports whole worlds, whatever a policy
    /// uses of them.
    http: bool,
}

impl Package {
    fn of(folder: &Path, language: Language) -> Result<Self> {
        let file = folder.join(PACKAGE);
        let wrong = |problem: String| Error::Project {
            file: file.clone(),
            problem,
        };
        let package: Value = serde_json::from_slice(&place::read(&file)?)
            .map_err(|error| wrong(format!("is not JSON: {error}")))?;
        let usual = match language {
            Language::Ts => "plugin.ts",
            _ => "plugin.js",
        };
        let main = package.get("main").and_then(Value::as_str).unwrap_or(usual);
        if !folder.join(main).is_file() {
            return Err(wrong(format!(
                "\"main\" names {main:?}, which is not a file"
            )));
        }
        let engine = match package.pointer("/vmhost/engine").map(Value::as_str) {
            None => EngineName::default(),
            Some(Some("quickjs")) => EngineName::QuickJs,
            Some(Some("starlingmonkey")) => EngineName::StarlingMonkey,
            Some(other) => {
                return Err(wrong(format!(
                    "vmhost.engine is {:?}: use \"quickjs\" or \"starlingmonkey\"",
                    other.unwrap_or_default()
                )));
            }
        };
        let http = match package.pointer("/vmhost/http") {
            None => false,
            Some(Value::Bool(http)) => *http,
            Some(other) => {
                return Err(wrong(format!("vmhost.http is {other}: use true or false")));
            }
        };
        let dependency = ["dependencies", "devDependencies"]
            .iter()
            .find_map(|group| package.get(group)?.get(SDK)?.as_str());
        let sdk = match dependency.and_then(|dependency| dependency.strip_prefix("file:")) {
            Some(path) => Some(folder.join(path).canonicalize().map_err(|_| {
                wrong(format!(
                    "{SDK:?} is \"file:{path}\", but there is no such folder"
                ))
            })?),
            None => None,
        };
        Ok(Self {
            main: main.to_owned(),
            sdk,
            engine,
            http,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn package(text: &str) -> (tempfile::TempDir, Result<Package>) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sdk")).unwrap();
        fs::write(folder.path().join("policy.js"), "").unwrap();
        fs::write(folder.path().join("plugin.ts"), "").unwrap();
        fs::write(folder.path().join("package.json"), text).unwrap();
        let package = Package::of(folder.path(), Language::Ts);
        (folder, package)
    }

    #[test]
    fn the_entry_the_sdk_and_the_engine_are_what_the_package_says() {
        let (folder, found) = package(
            r#"{"main":"policy.js","devDependencies":{"@vmhost/plugin":"file:sdk"},"vmhost":{"engine":"starlingmonkey","http":true}}"#,
        );
        let sdk = folder.path().canonicalize().unwrap().join("sdk");
        let said = Package {
            main: "policy.js".to_owned(),
            sdk: Some(sdk),
            engine: EngineName::StarlingMonkey,
            http: true,
        };
        assert_eq!(found.unwrap(), said);
        let (_folder, found) = package(r#"{"dependencies":{"@vmhost/plugin":"1.0.0"}}"#);
        let usual = Package {
            main: "plugin.ts".to_owned(),
            sdk: None,
            engine: EngineName::QuickJs,
            http: false,
        };
        assert_eq!(found.unwrap(), usual);
    }

    #[test]
    fn what_is_wrong_with_a_package_is_named() {
        for (text, problem) in [
            (
                "{",
                "is not JSON: EOF while parsing an object at line 1 column 1",
            ),
            (
                r#"{"main":"x.js"}"#,
                "\"main\" names \"x.js\", which is not a file",
            ),
            (
                r#"{"vmhost":{"engine":"v8"}}"#,
                "vmhost.engine is \"v8\": use \"quickjs\" or \"starlingmonkey\"",
            ),
            (
                r#"{"vmhost":{"http":"yes"}}"#,
                "vmhost.http is \"yes\": use true or false",
            ),
            (
                r#"{"dependencies":{"@vmhost/plugin":"file:../no"}}"#,
                "\"@vmhost/plugin\" is \"file:../no\", but there is no such folder",
            ),
        ] {
            let (folder, found) = package(text);
            let file = folder.path().join("package.json");
            let error = found.unwrap_err().to_string();
            assert_eq!(error, format!("{}: {problem}", file.display()));
        }
    }

    #[test]
    fn the_entry_is_named_whatever_its_name() {
        assert_eq!(
            entry_text("src/a \"b\".js"),
            "export { controller } /* = plugin({...}) */ from \"../src/a \\\"b\\\".js\";\n"
        );
    }
}
