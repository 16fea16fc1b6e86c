//! Checks that this host can run a finished component. Runs and links nothing.

use std::path::Path;

use vmhost_engine::Facts;
use wasmparser::Parser;

use crate::{Error, Result, wit};

/// Returns an error if this host cannot run the component. The error names the toolchain option
/// that corrects it.
pub fn check(file: &Path, component: &[u8]) -> Result<()> {
    let refuse = |problem| {
        Err(Error::Component {
            file: file.to_owned(),
            problem,
        })
    };
    if !Parser::is_component(component) {
        return refuse("is not a component: `vmhost build` turns it into one".to_owned());
    }
    let facts = Facts::of(component).map_err(|error| Error::NoWasm {
        file: file.to_owned(),
        source: error.into(),
    })?;
    if let (Some(import), Some(advice)) = (facts.unknown.first(), facts.advice()) {
        return refuse(format!("imports {import}: {advice}"));
    }
    let known = |contract: &String| contract.starts_with(wit::CONTRACT_MAJOR);
    if !facts.contract.as_ref().is_some_and(known) {
        let exports = match facts.exports.join(", ") {
            none if none.is_empty() => "nothing".to_owned(),
            exports => exports,
        };
        return refuse(format!(
            "is not a plugin: it exports {exports}, not {} (world {:?} of wit/v1)",
            wit::CONTROLLER,
            wit::WORLD
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{Stamp, stamp};

    /// Returns a component whose imports and exports are empty.
    fn component(imports: &[&str], exports: &[&str], more: &str) -> Vec<u8> {
        let mut text = String::from("(component");
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

    fn refused(imports: &[&str], exports: &[&str]) -> String {
        let component = component(imports, exports, "");
        check(Path::new("x.wasm"), &component)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn an_import_that_nobody_provides_is_refused_with_what_avoids_it() {
        let error = refused(&["wasi:http/types@0.2.3"], &[wit::CONTROLLER]);
        assert_eq!(
            error,
            "x.wasm imports wasi:http/types@0.2.3: the host has no wasi:http; leave out what makes HTTP requests, or send them through vmhost:http (wit/http-v1)"
        );
    }

    #[test]
    fn another_world_is_no_plugin() {
        assert_eq!(
            refused(&[], &["wasi:cli/run@0.2.0"]),
            "x.wasm is not a plugin: it exports wasi:cli/run@0.2.0, not vmhost:plugin/controller@1.0.0 (world \"plugin\" of wit/v1)"
        );
        assert!(refused(&[], &[]).contains("it exports nothing"));
        assert!(refused(&[], &["vmhost:plugin/controller@2.0.0"]).contains("is not a plugin"));
        let core = wat::parse_str("(module)").unwrap();
        assert_eq!(
            check(Path::new("x.wasm"), &core).unwrap_err().to_string(),
            "x.wasm is not a component: `vmhost build` turns it into one"
        );
    }

    #[test]
    fn a_stamp_tells_best_who_made_it() {
        let of_rust =
            r#"(core module (@producers (language "Rust" "") (processed-by "rustc" "1.95.0")))"#;
        let mut component = component(&["vmhost:plugin/log@1.0.0"], &[wit::CONTROLLER], of_rust);
        let about = Stamp {
            language: "TypeScript",
            sdk: Some("0.1.0".to_owned()),
            tool: ("componentize-qjs".to_owned(), "0.4.5".to_owned()),
        };
        stamp(&mut component, &about);
        check(Path::new("x.wasm"), &component).unwrap();
        let facts = Facts::of(&component).unwrap();
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
