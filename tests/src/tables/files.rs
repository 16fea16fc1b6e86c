//! The files of the tables: compressed JSON in the crates that embed them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

/// How hard a table is compressed: it is written once and embedded in each program.
const LEVEL: u8 = 10;
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/apiserver");

/// All tables of one version of Kubernetes.
#[derive(Debug, PartialEq)]
pub struct Tables {
    /// Names, verbs, subresources, columns and selectable fields of each kind and version.
    pub kinds: Value,
    /// The schemas, by name.
    pub definitions: Value,
    /// What is said about the schemas and their fields, by name.
    pub descriptions: Value,
}

fn path(name: &str) -> PathBuf {
    let folder = match name {
        "kinds" => "src/builtin",
        _ => "schema/src/builtin",
    };
    Path::new(FOLDER).join(folder).join(format!("{name}.zz"))
}

fn load(name: &str) -> Result<Value> {
    let path = path(name);
    let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let text = miniz_oxide::inflate::decompress_to_vec_zlib(&bytes)
        .map_err(|error| anyhow!("decompressing {}: {error}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("reading {}", path.display()))
}

fn store(name: &str, value: &Value) -> Result<()> {
    let path = path(name);
    let text = serde_json::to_vec(value)?;
    let bytes = miniz_oxide::deflate::compress_to_vec_zlib(&text, LEVEL);
    fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
}

impl Tables {
    /// Reads the tables that are checked in.
    pub fn checked_in() -> Result<Tables> {
        Ok(Tables {
            kinds: load("kinds")?,
            definitions: load("definitions")?,
            descriptions: load("descriptions")?,
        })
    }

    /// Replaces the tables that are checked in.
    pub fn check_in(&self) -> Result<()> {
        store("kinds", &self.kinds)?;
        store("definitions", &self.definitions)?;
        store("descriptions", &self.descriptions)
    }

    /// Returns all tables as one value, whose kinds are found by name instead of by place.
    pub fn whole(&self) -> Value {
        let kinds = self.kinds.as_array().into_iter().flatten();
        let kinds = kinds.map(|row| {
            let part = |name: &str| row[name].as_str().unwrap_or_default();
            let name = format!("{}/{}/{}", part("group"), part("version"), part("kind"));
            (name, row.clone())
        });
        serde_json::json!({
            "kinds": Value::Object(kinds.collect()),
            "definitions": self.definitions,
            "descriptions": self.descriptions,
        })
    }
}

/// Returns what differs between two values, one line each: `-` what only the first has, `+` what
/// only the second has.
pub fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare(before, after, "", &mut lines);
    lines
}

fn compare(before: &Value, after: &Value, path: &str, lines: &mut Vec<String>) {
    if let (Value::Object(before), Value::Object(after)) = (before, after) {
        for (name, value) in before {
            match after.get(name) {
                Some(other) => compare(value, other, &format!("{path}/{name}"), lines),
                None => lines.push(format!("- {path}/{name} {value}")),
            }
        }
        let added = after.iter().filter(|(name, _)| !before.contains_key(*name));
        lines.extend(added.map(|(name, value)| format!("+ {path}/{name} {value}")));
    } else if before != after {
        lines.push(format!("- {path} {before}"));
        lines.push(format!("+ {path} {after}"));
    }
}
