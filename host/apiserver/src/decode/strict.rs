//! What strict validation finds in a body, in the words and the order of a real server.
//!
//! Must not know which fields a kind has.

use std::fmt;

use super::{Found, MOST, read_json};

/// A field that a body gives twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Twice {
    /// In JSON: its path.
    Field(String),
    /// In YAML: the line of the value that is given again, and the key.
    Key(usize, String),
}

impl fmt::Display for Twice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Twice::Field(path) => write!(f, "duplicate field {path:?}"),
            Twice::Key(line, key) => write!(f, "line {line}: key {key:?} already set in map"),
        }
    }
}

/// Returns a text for each field that a body gives twice and for each that its kind does not have.
/// With the JSON of a built-in kind, in the order of that text, and no more than [`MOST`].
pub(crate) fn faults(twice: &[Twice], unknown: &[String], json: Option<&[u8]>) -> Vec<String> {
    let mut all: Vec<(Option<&str>, String)> = Vec::with_capacity(twice.len() + unknown.len());
    all.extend(twice.iter().map(|field| match field {
        Twice::Field(path) => (Some(path.as_str()), field.to_string()),
        Twice::Key(..) => (None, field.to_string()),
    }));
    let texts = unknown.iter();
    all.extend(texts.map(|path| (Some(path.as_str()), format!("unknown field {path:?}"))));
    if let Some(json) = json.filter(|_| all.len() > 1) {
        // Each is looked for at every field of the body, of which all may be unknown.
        all.truncate(MOST);
        sort(&mut all, json);
    }
    all.into_iter().map(|(_, text)| text).collect()
}

/// Sorts faults by the place of their fields in a body.
fn sort(faults: &mut [(Option<&str>, String)], json: &[u8]) {
    let paths = faults.iter().filter_map(|(path, _)| *path);
    let mut found = Found {
        wanted: paths.map(|path| (path, None)).collect(),
        ..Found::default()
    };
    // What cannot be read as JSON has no order.
    if read_json(json, &mut found).is_ok() {
        let place = |path: &str| found.wanted.iter().find(|(wanted, _)| *wanted == path);
        let place = |path: &Option<&str>| path.and_then(place).and_then(|(_, place)| *place);
        faults.sort_by_key(|(path, _)| place(path));
    }
}

/// Returns the faults in one text, as strict validation refuses them.
pub(crate) fn refusal(twice: &[Twice], unknown: &[String], json: Option<&[u8]>) -> String {
    let all = faults(twice, unknown, json);
    if !matches!(twice, [Twice::Key(..), ..]) {
        return all.join(", ");
    }
    let (lines, rest) = all.split_at(twice.len());
    let mut parts = vec![format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "))];
    parts.extend_from_slice(rest);
    parts.join(", ")
}
