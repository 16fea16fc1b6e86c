//! Reads JSON files. Each error names the file, and the field and the position in it. This module
//! must not know what the files are for.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads a JSON file. Returns `None` if it does not exist.
pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    let Some(text) = text(file)? else {
        return Ok(None);
    };
    let parsed = parse(&text).map(Some);
    parsed.with_context(|| file.display().to_string())
}

/// Reads a JSON file. Also returns the text of its value.
pub(crate) fn read_with_text(file: &Path) -> Result<Option<(Value, String)>> {
    let Some(text) = text(file)? else {
        return Ok(None);
    };
    let value = parse(&text).with_context(|| file.display().to_string())?;
    Ok(Some((value, text.trim().to_owned())))
}

/// Returns the text of one member of the object in a JSON file. Returns `None` if the object lacks
/// it.
pub(crate) fn member(file: &Path, name: &str) -> Result<Option<String>> {
    let Some(text) = text(file)? else {
        return Ok(None);
    };
    // If the file is not valid, that is reported when it is read as a whole.
    let members = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(&text);
    let found = members.ok().and_then(|mut members| members.remove(name));
    let text = found.map(|found| found.get().to_owned());
    Ok(text.filter(|text| text != "null"))
}

fn text(file: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => Ok(Some(text.with_context(|| file.display().to_string())?)),
    }
}

/// Parses JSON. The error names the field, the line and the column.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let reason = anyhow::Error::new(error.into_inner());
        match path.as_str() {
            "." | "?" => reason,
            _ => reason.context(path),
        }
    })?;
    json.end()?;
    Ok(value)
}
