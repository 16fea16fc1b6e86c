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
    let mut languages = Vec::new();
    parse(component, &mut facts, &mut languages).map_err(broken)?;
    facts.language = language(&facts.tools, &languages);
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
    if facts.contract.as_deref() != Some(wit::CONTRACT) {
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

fn parse(component: &[u8], facts: &mut Facts, languages: &mut Vec<String>) -> Result<(), Cause> {
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
                KnownCustom::Producers(producers) => facts.producers(producers, languages)?,
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

    fn producers(
        &mut self,
        producers: ProducersSectionReader<'_>,
        languages: &mut Vec<String>,
    ) -> Result<(), Cause> {
        for field in producers {
            let field = field?;
            for value in field.values {
                let value = value?;
                let text = format!("{} {}", value.name, value.version);
                let text = text.trim_end().to_owned();
                match field.name {
                    "language" => languages.push(value.name.to_owned()),
                    "sdk" => self.sdk = Some(text),
                    _ if !self.tools.contains(&text) => self.tools.push(text),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn language(_tools: &[String], languages: &[String]) -> Option<String> {
    languages.first().cloned()
}
