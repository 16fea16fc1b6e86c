//! What a finished component says about itself: whose output it is, what it implements, what it wants of the host. Runs nothing and links nothing.

use std::path::Path;

use serde::Serialize;
use wasmparser::{KnownCustom, Parser, Payload, ProducersSectionReader};

use crate::error::Cause;
use crate::{Error, Result, wit};

/// A section of the component itself, in which an SDK may leave its name and version: `vmhost-plugin-js 0.1.0`.
pub const SDK_SECTION: &str = "vmhost-sdk";

/// WASI's packages that the host links, with nothing granted in them. Rust's standard library and Python always import sockets: all are refused when they are used.
const WASI: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];

/// The WASI that it links.
const WASI_VERSION: &str = "0.2.";

/// What a component says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// The language it was written in, as far as its toolchain says.
    pub language: Option<String>,
    /// The SDK, with its version.
    pub sdk: Option<String>,
    /// The tools that made it, with their versions.
    pub tools: Vec<String>,
    /// The contract that it implements: `vmhost:plugin@1.0.0`. None: it is no plugin.
    pub contract: Option<String>,
    /// WASI interfaces that it imports, without their version: `clocks/wall-clock`.
    pub wasi: Vec<String>,
    /// What it imports besides the contract and WASI's packages that the host links.
    pub unknown: Vec<String>,
    /// What it exports.
    #[serde(skip)]
    exports: Vec<String>,
}

/// Looks at a component.
pub fn look(file: &Path, component: &[u8]) -> Result<Facts> {
    let broken = |source| Error::NoWasm {
        file: file.to_owned(),
        source,
    };
    let mut facts = Facts::default();
    parse(component, &mut facts).map_err(broken)?;
    Ok(facts)
}

/// Refuses a component that this host cannot run, and names the option of its toolchain that mends it.
pub fn check(file: &Path, component: &[u8]) -> Result<()> {
    let refuse = |problem| {
        Err(Error::Component {
            file: file.to_owned(),
            problem,
        })
    };
    if !Parser::is_component(component) {
        return refuse("is no component: `vmhost build` makes one of it".to_owned());
    }
    let facts = look(file, component)?;
    if let Some(import) = facts.unknown.first() {
        return refuse(format!("imports {import}: {}", facts.advice(import)));
    }
    let known = |contract: &String| contract.starts_with(wit::CONTRACT_MAJOR);
    if !facts.contract.as_ref().is_some_and(known) {
        let exports = match facts.exports.join(", ") {
            none if none.is_empty() => "nothing".to_owned(),
            exports => exports,
        };
        return refuse(format!(
            "is no plugin: it exports {exports}, and not {} (world {:?} of wit/v1)",
            wit::CONTROLLER,
            wit::WORLD
        ));
    }
    Ok(())
}

/// What to do about a component's first import that the host does not provide; none if there is none.
pub fn advice(component: &[u8]) -> Option<&'static str> {
    let facts = look(Path::new(""), component).ok()?;
    facts.unknown.first().map(|import| facts.advice(import))
}

impl Facts {
    fn made_by(&self, tool: &str) -> bool {
        self.tools.iter().any(|made_by| made_by.starts_with(tool))
    }

    /// How such an import is avoided.
    fn advice(&self, import: &str) -> &'static str {
        let of_wasi = import.strip_prefix("wasi:");
        match of_wasi {
            Some(interface) if interface.starts_with("http/") => match () {
                () if self.made_by("ComponentizeJS") => {
                    "a plugin has no network; build with `vmhost build`, or with jco componentize --disable http --disable fetch-event"
                }
                () if self.made_by("componentize-py") => {
                    "a plugin has no network; give componentize-py the world of wit/v1 (-w plugin) and no other, or --stub-wasi"
                }
                () => {
                    "a plugin has no network; leave out what makes HTTP requests, and read the cluster by the contract's cluster interface"
                }
            },
            Some(_) => {
                "the host links wasi:cli, clocks, filesystem, io, random and sockets of WASI 0.2 only; leave out what needs it, or build for wasm32-wasip2"
            }
            None if import.starts_with(wit::PACKAGE) => {
                "this vmhost does not know it; use the SDK of this version, or a newer vmhost"
            }
            None => {
                "the host provides vmhost:plugin and WASI only; build for the world \"plugin\" of wit/v1"
            }
        }
    }
}

fn parse(component: &[u8], facts: &mut Facts) -> Result<(), Cause> {
    // Modules and components within it have imports of their own.
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(imports) if depth == 0 => {
                for import in imports {
                    facts.import(import?.name.name);
                }
            }
            Payload::ComponentExportSection(exports) if depth == 0 => {
                for export in exports {
                    facts.export(export?.name.name);
                }
            }
            Payload::CustomSection(section) => match section.as_known() {
                KnownCustom::Producers(producers) => facts.producers(producers, depth == 0)?,
                _ if section.name() == SDK_SECTION => {
                    facts.sdk = Some(String::from_utf8_lossy(section.data()).into_owned());
                }
                _ => {}
            },
            _ => {}
        }
    }
    facts.wasi.sort();
    Ok(())
}

impl Facts {
    fn import(&mut self, name: &str) {
        let (interface, version) = name.split_once('@').unwrap_or((name, ""));
        let known = |package: &str, names: &[&str]| {
            let name = interface
                .strip_prefix(package)
                .and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| names.contains(&name))
        };
        if let Some(wasi) = interface.strip_prefix("wasi:") {
            let package = wasi.split('/').next().unwrap_or_default();
            if WASI.contains(&package) && version.starts_with(WASI_VERSION) {
                self.wasi.push(wasi.to_owned());
                return;
            }
        } else if known(wit::PACKAGE, &wit::INTERFACES) && version.starts_with("1.") {
            return;
        }
        self.unknown.push(name.to_owned());
    }

    fn export(&mut self, name: &str) {
        if let Some((interface, version)) = name.split_once('@')
            && interface == wit::CONTROLLER_INTERFACE
        {
            self.contract = Some(format!("{}@{version}", wit::PACKAGE));
        }
        self.exports.push(name.to_owned());
    }

    /// The component's own producers, or those of a module within it.
    fn producers(&mut self, producers: ProducersSectionReader<'_>, own: bool) -> Result<(), Cause> {
        for field in producers {
            let field = field?;
            for value in field.values {
                let value = value?;
                let text = format!("{} {}", value.name, value.version);
                let text = text.trim_end().to_owned();
                match field.name {
                    // An engine's module says in what the engine is written, and mostly that is Rust or C.
                    "language" if own || !is_of_engines(value.name) => self.language = Some(text),
                    "language" => {}
                    "sdk" => self.sdk = Some(text),
                    _ if !self.tools.contains(&text) => self.tools.push(text),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn is_of_engines(language: &str) -> bool {
    language == "Rust" || language.starts_with('C')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{Stamp, stamp};

    /// A component with imports and exports of nothing.
    fn component(imports: &[&str], exports: &[&str], more: &str) -> Vec<u8> {
        let mut text = String::from(
            "(component (component $inner (import \"wasi:http/inner@0.2.0\" (instance)))",
        );
        for import in imports {
            text.push_str(&format!("(import {import:?} (instance))"));
        }
        text.push_str("(instance $empty)");
        for export in exports {
            text.push_str(&format!("(export {export:?} (instance $empty))"));
        }
        text.push_str(more);
        text.push(')');
        wat::parse_str(text).unwrap()
    }

    fn refused(imports: &[&str], exports: &[&str], more: &str) -> String {
        let component = component(imports, exports, more);
        check(Path::new("x.wasm"), &component)
            .unwrap_err()
            .to_string()
    }

    const STARLINGMONKEY: &str =
        r#"(@producers (processed-by "ComponentizeJS" "0.22.0") (language "JavaScript" ""))"#;

    #[test]
    fn what_the_host_links_is_let_through() {
        let imports = [
            "vmhost:plugin/log@1.0.0",
            "vmhost:plugin/types@1.1.0",
            "wasi:sockets/tcp@0.2.6",
            "wasi:clocks/wall-clock@0.2.12",
        ];
        let component = component(&imports, &[wit::CONTROLLER], "");
        check(Path::new("x.wasm"), &component).unwrap();
        let facts = look(Path::new("x.wasm"), &component).unwrap();
        assert_eq!(facts.contract.as_deref(), Some("vmhost:plugin@1.0.0"));
        assert_eq!(facts.wasi, ["clocks/wall-clock", "sockets/tcp"]);
        assert!(
            facts.unknown.is_empty() && facts.language.is_none(),
            "{facts:?}"
        );
    }

    #[test]
    fn a_network_is_refused_with_the_option_that_avoids_it() {
        let http = ["wasi:http/types@0.2.3"];
        assert_eq!(
            refused(&http, &[wit::CONTROLLER], STARLINGMONKEY),
            "x.wasm imports wasi:http/types@0.2.3: a plugin has no network; build with `vmhost build`, or with jco componentize --disable http --disable fetch-event"
        );
        let python = r#"(@producers (processed-by "componentize-py" "0.25.1"))"#;
        assert!(
            refused(&http, &[wit::CONTROLLER], python)
                .contains("give componentize-py the world of wit/v1")
        );
        assert!(
            refused(&http, &[wit::CONTROLLER], "").contains("leave out what makes HTTP requests")
        );
        let component = component(&http, &[wit::CONTROLLER], STARLINGMONKEY);
        assert!(advice(&component).unwrap().contains("--disable http"));
    }

    #[test]
    fn what_nobody_provides_is_named() {
        for (import, advice) in [
            ("wasi:clocks/wall-clock@0.3.0", "of WASI 0.2 only"),
            ("wasi:keyvalue/store@0.2.0", "of WASI 0.2 only"),
            ("vmhost:plugin/disk@1.0.0", "this vmhost does not know it"),
            ("vmhost:plugin/log@2.0.0", "this vmhost does not know it"),
            (
                "acme:shop/cart@1.0.0",
                "build for the world \"plugin\" of wit/v1",
            ),
        ] {
            let error = refused(&[import], &[wit::CONTROLLER], "");
            assert!(
                error.starts_with(&format!("x.wasm imports {import}: ")),
                "{error}"
            );
            assert!(error.contains(advice), "{error}");
        }
    }

    #[test]
    fn another_world_is_no_plugin() {
        assert_eq!(
            refused(&[], &["wasi:cli/run@0.2.0"], ""),
            "x.wasm is no plugin: it exports wasi:cli/run@0.2.0, and not vmhost:plugin/controller@1.0.0 (world \"plugin\" of wit/v1)"
        );
        assert!(refused(&[], &[], "").contains("it exports nothing"));
        assert!(refused(&[], &["vmhost:plugin/controller@2.0.0"], "").contains("is no plugin"));
        let core = wat::parse_str("(module)").unwrap();
        assert_eq!(
            check(Path::new("x.wasm"), &core).unwrap_err().to_string(),
            "x.wasm is no component: `vmhost build` makes one of it"
        );
    }

    #[test]
    fn who_made_it_is_told_and_a_stamp_tells_it_best() {
        let of_rust =
            r#"(core module (@producers (language "Rust" "") (processed-by "rustc" "1.95.0")))"#;
        let mut component = component(&[], &[wit::CONTROLLER], of_rust);
        let facts = look(Path::new("x.wasm"), &component).unwrap();
        // QuickJS is written in Rust; that says nothing about the policy.
        assert_eq!(
            (facts.language, facts.tools),
            (None, vec!["rustc 1.95.0".to_owned()])
        );
        let about = Stamp {
            language: "TypeScript",
            sdk: Some("0.1.0".to_owned()),
            tool: ("componentize-qjs".to_owned(), "0.4.5".to_owned()),
        };
        stamp(&mut component, &about);
        check(Path::new("x.wasm"), &component).unwrap();
        let facts = look(Path::new("x.wasm"), &component).unwrap();
        assert_eq!(facts.language.as_deref(), Some("TypeScript"));
        assert_eq!(facts.sdk.as_deref(), Some("vmhost-plugin 0.1.0"));
        assert_eq!(
            facts.tools[1..],
            [
                "componentize-qjs 0.4.5".to_owned(),
                format!("vmhost {}", env!("CARGO_PKG_VERSION"))
            ]
        );
    }
}
