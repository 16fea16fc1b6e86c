//! What a build writes into a component about its making, in the section `producers` that all tools know. Knows no language's tools.
//!
//! Without it nobody could tell: what QuickJS and CPython leave there says Rust and C, and a stripped component says nothing.

use wasm_encoder::{ComponentSection, Encode as _, ProducersField, ProducersSection};

/// How a component was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The language.
    pub language: &'static str,
    /// The SDK's version, if it is one that `vmhost new` wrote.
    pub sdk: Option<String>,
    /// The tool that did most, and its version.
    pub tool: (String, String),
}

/// The SDKs, whatever their language calls them.
const SDK: &str = "vmhost-plugin";

/// Adds it to a component.
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
