//! Records how a component was built, in the standard section `producers`. This module knows no
//! language's tools.
//!
//! Without the stamp, the origin is lost: QuickJS and CPython leave their own languages (Rust and
//! C) in the section, and a stripped component has no section.

use wasm_encoder::{ComponentSection, Encode as _, ProducersField, ProducersSection};

/// How a component was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The language.
    pub language: &'static str,
    /// The SDK's version, if it is one that `vmhost new` wrote.
    pub sdk: Option<String>,
    /// The main tool and its version.
    pub tool: (String, String),
}

/// The name of the SDKs, the same for all languages.
const SDK: &str = "vmhost-plugin";

/// Adds the stamp to a component.
pub(crate) fn stamp(component: &mut Vec<u8>, stamp: &Stamp) {
    let mut producers = ProducersSection::new();
    let mut field = |name: &str, value: &str, version: &str| {
        producers.field(name, ProducersField::new().value(value, version));
    };
    field("language", stamp.language, "");
    if let Some(version) = &stamp.sdk {
        field("sdk", SDK, version);
    }
    let mut by = ProducersField::new();
    by.value(&stamp.tool.0, &stamp.tool.1);
    by.value("vmhost", env!("CARGO_PKG_VERSION"));
    producers.field("processed-by", &by);
    component.push(producers.id());
    producers.encode(component);
}
