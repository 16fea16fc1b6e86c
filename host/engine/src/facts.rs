//! What a component says about itself: whose output it is, what it implements, what it wants of the
//! host. Runs nothing and links nothing.

use serde::Serialize;
use wasmtime::wasmparser::{KnownCustom, Parser, Payload, ProducersSectionReader, Result};

use crate::bindings::v1;
use crate::error::LoadError;

/// A section of the component itself, in which an SDK may leave its name and version:
/// `vmhost-plugin-js 0.1.0`.
const SDK_SECTION: &str = "vmhost-sdk";

/// WASI's packages that the host links, with nothing granted in them. Rust's standard library and
/// Python always import sockets: all are refused when they are used.
const WASI: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];

/// The WASI that it links.
const WASI_VERSION: &str = "0.2.";

/// The contract's package, without its version.
const PACKAGE: &str = "vmhost:plugin";

/// The package of HTTP requests, and what a component may import of it.
const HTTP_PACKAGE: &str = "vmhost:http";
const HTTP_INTERFACES: [&str; 1] = ["http"];

/// The packages of vmhost, with what may come later.
const OURS: &str = "vmhost:";

/// What a component may import of the contract.
pub const INTERFACES: [&str; 4] = ["log", "config", "cluster", "types"];

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
    /// The contract that it implements: `vmhost:plugin@1.0.0`. `None` if it is no plugin.
    pub contract: Option<String>,
    /// WASI interfaces that it imports, without their version: `clocks/wall-clock`.
    pub wasi: Vec<String>,
    /// What it imports besides the contract and WASI's packages that the host links.
    pub unknown: Vec<String>,
    /// What it exports.
    #[serde(skip)]
    pub exports: Vec<String>,
}

/// An import that the host does not have, and what the component's author can do about it.
pub(crate) fn advised(import: String, component: &[u8]) -> String {
    let facts = Facts::of(component).unwrap_or_default();
    match facts.advice() {
        Some(advice) => format!("{import}: {advice}"),
        None => import,
    }
}

impl Facts {
    /// Looks at a component.
    pub fn of(component: &[u8]) -> Result<Self, LoadError> {
        let mut facts = Self::default();
        match facts.parse(component) {
            Ok(()) => Ok(facts),
            Err(error) => Err(LoadError::Invalid(error.to_string())),
        }
    }

    /// What to do about the first import that the host does not provide; `None` if it provides all.
    pub fn advice(&self) -> Option<&'static str> {
        self.unknown.first().map(|import| self.advice_on(import))
    }

    fn made_by(&self, tool: &str) -> bool {
        self.tools.iter().any(|made_by| made_by.starts_with(tool))
    }

    /// How such an import is avoided.
    fn advice_on(&self, import: &str) -> &'static str {
        let of_wasi = import.strip_prefix("wasi:");
        match of_wasi {
            Some(interface) if interface.starts_with("http/") => match () {
                () if self.made_by("ComponentizeJS") => {
                    "the host has no wasi:http; build with `vmhost build`, or with jco componentize --disable http --disable fetch-event"
                }
                () if self.made_by("componentize-py") => {
                    "the host has no wasi:http; give componentize-py the world of wit/v1 (-w plugin) and no other, or --stub-wasi"
                }
                () => {
                    "the host has no wasi:http; leave out what makes HTTP requests, or send them through vmhost:http (wit/http-v1)"
                }
            },
            Some(_) => {
                "the host links wasi:cli, clocks, filesystem, io, random and sockets of WASI 0.2 only; leave out what needs it, or build for wasm32-wasip2"
            }
            None if import.starts_with(OURS) => {
                "this vmhost does not know it; use the SDK of this version, or a newer vmhost"
            }
            None => {
                "the host provides vmhost:plugin and WASI only; build for the world \"plugin\" of wit/v1"
            }
        }
    }

    fn parse(&mut self, component: &[u8]) -> Result<()> {
        // Modules and components within it have imports of their own.
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(imports) if depth == 0 => {
                    for import in imports {
                        self.import(import?.name.name);
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 0 => {
                    for export in exports {
                        self.export(export?.name.name);
                    }
                }
                Payload::CustomSection(section) => match section.as_known() {
                    KnownCustom::Producers(producers) => self.producers(producers, depth == 0)?,
                    _ if section.name() == SDK_SECTION => {
                        self.sdk = Some(String::from_utf8_lossy(section.data()).into_owned());
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        self.wasi.sort();
        Ok(())
    }

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
        } else if (known(PACKAGE, &INTERFACES) || known(HTTP_PACKAGE, &HTTP_INTERFACES))
            && version.starts_with("1.")
        {
            return;
        }
        self.unknown.push(name.to_owned());
    }

    fn export(&mut self, name: &str) {
        if let Some((interface, version)) = name.split_once('@')
            && interface == v1::CONTROLLER
        {
            self.contract = Some(format!("{PACKAGE}@{version}"));
        }
        self.exports.push(name.to_owned());
    }

    /// The component's own producers, or those of a module within it.
    fn producers(&mut self, producers: ProducersSectionReader<'_>, own: bool) -> Result<()> {
        for field in producers {
            let field = field?;
            for value in field.values {
                let value = value?;
                let text = format!("{} {}", value.name, value.version);
                let text = text.trim_end().to_owned();
                match field.name {
                    // An engine's module says in what the engine is written, and mostly that is
                    // Rust or C.
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

    /// A component with imports and exports of nothing.
    fn component(imports: &[&str], more: &str) -> Vec<u8> {
        let mut text = String::from(
            "(component (component $inner (import \"wasi:http/inner@0.2.0\" (instance)))",
        );
        for import in imports {
            text.push_str(&format!("(import {import:?} (instance))"));
        }
        text.push_str("(instance $empty)");
        text.push_str("(export \"vmhost:plugin/controller@1.0.0\" (instance $empty))");
        text.push_str(more);
        text.push(')');
        wat::parse_str(text).unwrap()
    }

    fn facts(imports: &[&str], more: &str) -> Facts {
        Facts::of(&component(imports, more)).unwrap()
    }

    const STARLINGMONKEY: &str =
        r#"(@producers (processed-by "ComponentizeJS" "0.22.0") (language "JavaScript" ""))"#;

    #[test]
    fn what_the_host_links_is_known() {
        let imports = [
            "vmhost:plugin/log@1.0.0",
            "vmhost:plugin/types@1.1.0",
            "vmhost:http/http@1.0.0",
            "wasi:sockets/tcp@0.2.6",
            "wasi:clocks/wall-clock@0.2.12",
        ];
        let facts = facts(&imports, "");
        assert_eq!(facts.contract.as_deref(), Some("vmhost:plugin@1.0.0"));
        assert_eq!(facts.wasi, ["clocks/wall-clock", "sockets/tcp"]);
        assert!(
            facts.unknown.is_empty() && facts.language.is_none() && facts.advice().is_none(),
            "{facts:?}"
        );
    }

    #[test]
    fn a_network_has_an_option_that_avoids_it() {
        let http = ["wasi:http/types@0.2.3"];
        assert_eq!(
            advised("wasi:http".to_owned(), &component(&http, STARLINGMONKEY)),
            "wasi:http: the host has no wasi:http; build with `vmhost build`, or with jco componentize --disable http --disable fetch-event"
        );
        let python = r#"(@producers (processed-by "componentize-py" "0.25.1"))"#;
        for (made_by, words) in [
            (python, "give componentize-py the world of wit/v1"),
            ("", "leave out what makes HTTP requests"),
        ] {
            let advice = facts(&http, made_by).advice().unwrap();
            assert!(advice.contains(words), "{advice}");
        }
    }

    #[test]
    fn what_nobody_provides_is_named() {
        for (import, words) in [
            ("wasi:clocks/wall-clock@0.3.0", "of WASI 0.2 only"),
            ("wasi:keyvalue/store@0.2.0", "of WASI 0.2 only"),
            ("vmhost:plugin/disk@1.0.0", "this vmhost does not know it"),
            ("vmhost:plugin/log@2.0.0", "this vmhost does not know it"),
            ("vmhost:http/http@2.0.0", "this vmhost does not know it"),
            (
                "acme:shop/cart@1.0.0",
                "build for the world \"plugin\" of wit/v1",
            ),
        ] {
            let facts = facts(&[import], "");
            assert_eq!(facts.unknown, [import]);
            let advice = facts.advice().unwrap();
            assert!(advice.contains(words), "{advice}");
        }
    }

    #[test]
    fn an_interpreters_language_says_nothing_about_the_policy() {
        let of_rust =
            r#"(core module (@producers (language "Rust" "") (processed-by "rustc" "1.95.0")))"#;
        let facts = facts(&[], of_rust);
        assert_eq!(
            (facts.language, facts.tools),
            (None, vec!["rustc 1.95.0".to_owned()])
        );
    }
}
