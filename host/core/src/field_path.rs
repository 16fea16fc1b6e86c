//! Paths into an object's JSON: `spec.volumes[*].secret.secretName`,
//! `metadata.labels["app.kubernetes.io/name"]`.
//!
//! This module owns how a path is written; `walk` follows its steps through a text. Neither knows
//! what the values mean (an index key, a selector's operand, an object's name).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod fields;
mod walk;

pub use fields::Fields;
pub use walk::Step;

use walk::Walk;

/// Maximum length of a path in bytes: nothing in an object lies deeper.
const LONGEST: usize = 1024;

/// A parsed path. It is printed and serialised as it was written.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FieldPath {
    text: Box<str>,
    /// Never empty; the first step is a `Key`.
    steps: Box<[Step]>,
}

/// A path that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a path such as `spec.volumes[*].name`: {reason}")]
pub struct FieldPathError {
    /// The path as it was written.
    pub path: String,
    /// Why the path is invalid; names the text at fault.
    pub reason: String,
}

impl FieldPath {
    /// The path to the uids of an object's owners.
    pub fn owner_uids() -> Self {
        let key = |name: &str| Step::Key(name.into());
        Self {
            text: "metadata.ownerReferences[*].uid".into(),
            steps: [
                key("metadata"),
                key("ownerReferences"),
                Step::All,
                key("uid"),
            ]
            .into(),
        }
    }

    /// Parses a path: names joined by dots, `[*]` for every item, `["any key"]` (a JSON string) for
    /// a key that contains dots or brackets.
    pub fn parse(text: &str) -> Result<Self, FieldPathError> {
        let fail = |reason| FieldPathError {
            path: crate::text::cut(text, LONGEST).into(),
            reason,
        };
        if text.len() > LONGEST {
            return Err(fail(format!("longer than {LONGEST} bytes")));
        }
        let (first, mut rest) = name(text).map_err(fail)?;
        let mut steps = vec![Step::Key(first.into())];
        while !rest.is_empty() {
            let step;
            (step, rest) = if let Some(after) = rest.strip_prefix('.') {
                let (name, after) = name(after).map_err(fail)?;
                (Step::Key(name.into()), after)
            } else if let Some(after) = rest.strip_prefix("[*]") {
                (Step::All, after)
            } else {
                let (key, after) = bracket(rest).map_err(fail)?;
                (Step::Key(key.into()), after)
            };
            steps.push(step);
        }
        Ok(Self {
            text: text.into(),
            steps: steps.into(),
        })
    }

    /// The steps from the object to the values. Never empty; the first one is a `Key`.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The longest prefix that consists of plain dotted names: pruning must keep it so that this
    /// path still finds its values. Never empty.
    pub fn root_dotted(&self) -> String {
        let mut root = String::new();
        for step in &self.steps {
            match step {
                Step::Key(key) if !key.is_empty() && !key.contains('.') => {
                    if !root.is_empty() {
                        root.push('.');
                    }
                    root.push_str(key);
                }
                _ => break,
            }
        }
        root
    }

    /// The values that the path names in an object's JSON, in the order of the text: strings
    /// unescaped; numbers as they are written; `true` and `false`.
    ///
    /// Null, objects, lists (without `[*]`) and missing fields give no values; neither does text
    /// that is not JSON. Text behind the last value that can match is not parsed.
    pub fn values<'a>(&self, json: &'a str) -> Vec<Cow<'a, str>> {
        let mut walk = Walk::along([&*self.steps]);
        if walk.read(json, true).is_err() && !walk.done {
            return Vec::new();
        }
        walk.found.into_iter().map(|(_, value)| value).collect()
    }
}

/// A name up to the next dot or bracket, and what follows it.
fn name(text: &str) -> Result<(&str, &str), String> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return Err(match text {
            "" => "a name is missing at its end".into(),
            _ => format!("a name is missing before {text:?}"),
        });
    }
    if let Some(bad) = name
        .chars()
        .find(|c| c.is_whitespace() || c.is_control() || matches!(c, ']' | '*' | '"' | '\'' | '\\'))
    {
        return Err(format!(
            "{bad:?} in {name:?} is not allowed in a plain name"
        ));
    }
    Ok((name, rest))
}

/// `["key"]` at the beginning of the text, and what follows it.
fn bracket(text: &str) -> Result<(String, &str), String> {
    let fail = || format!("{text:?} begins with neither `.name`, `[*]` nor `[\"key\"]`");
    let string = text.strip_prefix('[').ok_or_else(fail)?;
    if !string.starts_with('"') {
        return Err(fail());
    }
    let mut keys = serde_json::Deserializer::from_str(string).into_iter::<String>();
    let key = keys
        .next()
        .ok_or_else(fail)?
        .map_err(|_| format!("{text:?} contains no JSON string"))?;
    let rest = string[keys.byte_offset()..]
        .strip_prefix(']')
        .ok_or_else(|| format!("{text:?} has no `]` after the key"))?;
    Ok((key, rest))
}

impl FromStr for FieldPath {
    type Err = FieldPathError;
    fn from_str(text: &str) -> Result<Self, FieldPathError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for FieldPath {
    type Error = FieldPathError;
    fn try_from(text: String) -> Result<Self, FieldPathError> {
        Self::parse(&text)
    }
}

impl From<FieldPath> for String {
    fn from(path: FieldPath) -> Self {
        path.text.into()
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldPath({})", self.text)
    }
}

#[cfg(test)]
mod tests;
