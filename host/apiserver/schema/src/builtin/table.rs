//! The table of definitions: compressed in the program, indexed on first use, parsed entry by
//! entry.
//!
//! Must not know what a definition means.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::Schema;
use crate::parse;

struct Definition {
    text: &'static str,
    value: OnceLock<Value>,
    schema: OnceLock<Schema>,
}

static TEXT: LazyLock<String> = LazyLock::new(|| inflate(include_bytes!("definitions.zz")));

static TABLE: LazyLock<BTreeMap<&'static str, Definition>> = LazyLock::new(|| {
    let text: &'static str = TEXT.as_str();
    // The table is embedded and a test parses it, so the result is never empty.
    let rows: BTreeMap<&'static str, &'static RawValue> =
        serde_json::from_str(text).unwrap_or_default();
    rows.into_iter()
        .map(|(name, raw)| {
            let definition = Definition {
                text: raw.get(),
                value: OnceLock::new(),
                schema: OnceLock::new(),
            };
            (name, definition)
        })
        .collect()
});

/// Decompresses an embedded table; empty if it is damaged.
pub fn inflate(compressed: &[u8]) -> String {
    miniz_oxide::inflate::decompress_to_vec_zlib(compressed)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// Returns the names of all definitions.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.keys().copied()
}

/// Returns a definition: a schema whose `$ref`s are names of other definitions, without
/// descriptions.
pub fn definition(name: &str) -> Option<&'static Value> {
    let found = TABLE.get(name)?;
    let parsed = || serde_json::from_str(found.text).unwrap_or_default();
    Some(found.value.get_or_init(parsed))
}

/// Returns whether a definition refers to itself.
pub(super) fn is_recursive(name: &str) -> bool {
    let reference = format!("\"$ref\":\"{name}\"");
    TABLE
        .get(name)
        .is_some_and(|found| found.text.contains(&reference))
}

/// Returns the schema of a definition, which `expand` writes without references.
pub(super) fn schema(name: &str, expand: fn(&str) -> Value) -> Option<&'static Schema> {
    let found = TABLE.get(name)?;
    Some(
        found
            .schema
            .get_or_init(|| Schema::of(parse::trusted(&expand(name)))),
    )
}
