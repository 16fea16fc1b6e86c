//! Turns a core module into a component: embeds the world, adds WASI's adapter if the module
//! imports WASI, and validates. This module knows no language; its errors name what a module lacks.

use std::path::Path;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW1,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::error::Cause;
use crate::{Error, Result, wit};

/// The functions of [`wit::CONTROLLER`]. A core module exports each of them as `INTERFACE#NAME`.
const FUNCTIONS: [&str; 3] = ["describe", "reconcile", "map-changes"];

/// The function that allocates memory for the strings of a call. Some toolchains have one for each
/// direction (`cabi_export_realloc`).
const REALLOC: &str = "cabi_realloc";

/// The export that only programs have, not libraries.
const START: &str = "_start";

/// The prefix of names in the component model's newer spelling. The component model's library
/// checks modules with these names.
const NEW_NAMES: &str = "cm32p2";

/// Turns the bytes that were read from `file` into a component. Returns a component unchanged.
pub fn component(file: &Path, bytes: Vec<u8>) -> Result<Vec<u8>> {
    if Parser::is_component(&bytes) {
        return Ok(bytes);
    }
    let module = Module::of(&bytes).map_err(|source| Error::NoWasm {
        file: file.to_owned(),
        source,
    })?;
    module.check(file)?;
    let adapt = module.imports.iter().any(|(from, _)| from == PREVIEW1);
    let embed = (!module.has_type).then(|| Embed {
        http: module
            .imports
            .iter()
            .any(|(from, _)| from.starts_with(wit::HTTP)),
    });
    encode(bytes, embed, adapt).map_err(|source| Error::Componentize {
        file: file.to_owned(),
        source,
    })
}

/// What a module without types of its own is given.
struct Embed {
    /// Whether it sends HTTP requests.
    http: bool,
}

fn encode(mut module: Vec<u8>, embed: Option<Embed>, adapt: bool) -> Result<Vec<u8>, Cause> {
    if let Some(Embed { http }) = embed {
        wit::embed(&mut module, http)?;
    }
    let mut encoder = ComponentEncoder::default();
    encoder.module(&module)?;
    if adapt {
        encoder.adapter(PREVIEW1, ADAPTER)?;
    }
    Ok(encoder.validate(true).encode()?)
}

/// The parsed facts about a core module.
#[derive(Default)]
struct Module {
    imports: Vec<(String, String)>,
    exports: Vec<String>,
    /// Whether a bindings generator has already embedded a world.
    has_type: bool,
}

impl Module {
    fn of(bytes: &[u8]) -> Result<Self, Cause> {
        let mut module = Self::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import?;
                        let names = (import.module.to_owned(), import.name.to_owned());
                        module.imports.push(names);
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        module.exports.push(export?.name.to_owned());
                    }
                }
                Payload::CustomSection(section) => {
                    module.has_type |= section.name().starts_with("component-type");
                }
                _ => {}
            }
        }
        Ok(module)
    }

    /// Checks for mistakes that the component model's library reports less clearly or not at all.
    fn check(&self, file: &Path) -> Result<()> {
        for (from, name) in &self.imports {
            if let Some(advice) = unknown(from) {
                return Err(Error::CoreImport {
                    file: file.to_owned(),
                    import: format!("{from}.{name}"),
                    advice,
                });
            }
        }
        if self.exports.iter().any(|name| name.starts_with(NEW_NAMES)) {
            return Ok(());
        }
        let functions = FUNCTIONS.map(|function| format!("{}#{function}", wit::CONTROLLER));
        let names = functions.iter().map(String::as_str);
        let has = |name: &str| match name {
            REALLOC => self.exports.iter().any(|export| is_realloc(export)),
            _ => self.exports.iter().any(|export| export == name),
        };
        for name in ["memory"].into_iter().chain(names).chain([REALLOC]) {
            if !has(name) {
                return Err(Error::CoreExport {
                    file: file.to_owned(),
                    export: name.to_owned(),
                    advice: self.missing(name),
                });
            }
        }
        Ok(())
    }

    fn missing(&self, name: &str) -> &'static str {
        let is_program = self.exports.iter().any(|export| export == START);
        match name {
            _ if is_program => {
                "it is a program with a main; build it as a library (-mexec-model=reactor for C, C++ and Zig, -buildmode=c-shared for Go)"
            }
            "memory" => "it must export the memory that its functions use",
            REALLOC => "link the SDK, which defines it",
            _ => "link the SDK, and make sure that the linker keeps its exports",
        }
    }
}

fn is_realloc(export: &str) -> bool {
    export.starts_with("cabi_") && export.contains("realloc")
}

/// Returns advice about an import that neither the world nor WASI's adapter provides.
fn unknown(from: &str) -> Option<&'static str> {
    match from {
        PREVIEW1 | "$root" => None,
        // The component model's library judges interfaces (`vmhost:plugin/log@1.0.0`,
        // `[export]...`, `cm32p2|...`).
        _ if from.contains(':') || from.starts_with('[') || from.starts_with(NEW_NAMES) => None,
        "wasi_unstable" => Some(
            "that is WASI before preview 1; build it with a toolchain that targets wasm32-wasip1",
        ),
        "env" => Some("nothing provides it; link what defines it, or leave out what calls it"),
        _ => Some("nothing provides it; a plugin imports vmhost:plugin and WASI only"),
    }
}

#[cfg(test)]
mod tests;
