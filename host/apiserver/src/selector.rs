//! Label and field selectors.
//!
//! Owns their grammar and when an object matches. The kind's data says which fields are selectable.
//! Must not know where objects are kept.

mod text;

use serde_json::{Value, json};

pub(crate) use text::text;

use crate::jsonpath::JsonPath;
use crate::kinds::Target;
use crate::object::Shown;
use crate::status::ApiError;

/// The selector of a list or watch; an empty one matches everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<LabelRule>,
    fields: Vec<FieldRule>,
}

#[derive(Clone, Debug, PartialEq)]
enum LabelRule {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

#[derive(Clone, Debug)]
struct FieldRule {
    /// Whether the field is one of the metadata.
    of_metadata: bool,
    paths: Vec<JsonPath>,
    equal: bool,
    value: String,
}

impl Selector {
    /// Parses both selectors of a request.
    pub fn parse(target: &Target, labels: &str, fields: &str) -> Result<Selector, ApiError> {
        let label_rules = parse_labels(labels)
            .map_err(|why| ApiError::bad_request(format!("unable to parse requirement: {why}")))?;
        let mut field_rules = Vec::new();
        for term in fields.split(',').map(str::trim).filter(|t| !t.is_empty()) {
            let (name, equal, value) = split_field(term).ok_or_else(|| {
                ApiError::bad_request(format!(
                    "invalid field selector: {fields:?}; can't understand {term:?}"
                ))
            })?;
            let paths = target.selectable(name).ok_or_else(|| {
                let refusal = target.kind.unknown_field.replace("{}", name);
                ApiError::bad_request(refusal)
            })?;
            field_rules.push(FieldRule {
                of_metadata: matches!(name, "metadata.name" | "metadata.namespace"),
                paths,
                equal,
                value,
            });
        }
        Ok(Selector {
            labels: label_rules,
            fields: field_rules,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether an object matches, and reads no more of it than is needed for that.
    pub fn accepts(&self, shown: &Shown) -> bool {
        if self.is_empty() {
            return true;
        }
        match self.fields.iter().all(|rule| rule.of_metadata) {
            true => self.matches(&shown.head()),
            false => self.matches(&shown.object()),
        }
    }

    /// Returns whether an object matches. `object` is in the version of the request.
    pub fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object.get("metadata")?.get("labels")?.get(key)?.as_str();
        let number = |key: &str| label(key)?.parse::<i64>().ok();
        let labels = self.labels.iter().all(|rule| match rule {
            LabelRule::In(key, values) => label(key).is_some_and(|v| values.iter().any(|w| w == v)),
            LabelRule::NotIn(key, values) => {
                label(key).is_none_or(|v| values.iter().all(|w| w != v))
            }
            LabelRule::Exists(key) => label(key).is_some(),
            LabelRule::Absent(key) => label(key).is_none(),
            LabelRule::Greater(key, than) => number(key).is_some_and(|n| n > *than),
            LabelRule::Less(key, than) => number(key).is_some_and(|n| n < *than),
        });
        labels
            && self
                .fields
                .iter()
                .all(|rule| (rule.text(object) == rule.value) == rule.equal)
    }
}

/// Returns whether labels match a label selector, or a map of labels. An invalid selector matches
/// nothing.
pub(crate) fn covers(selector: &Value, labels: Option<&Value>) -> bool {
    let rules = text(selector).and_then(|text| parse_labels(&text).ok());
    rules.is_some_and(|labels_of| {
        let selector = Selector {
            labels: labels_of,
            fields: Vec::new(),
        };
        selector.matches(&json!({ "metadata": { "labels": labels } }))
    })
}

impl FieldRule {
    fn text(&self, object: &Value) -> String {
        match self.paths.iter().find_map(|path| path.first(object)) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }
}

fn split_field(term: &str) -> Option<(&str, bool, String)> {
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((name, value)) = term.split_once(operator) {
            return Some((name.trim(), equal, value.replace('\\', "")));
        }
    }
    None
}

fn parse_labels(text: &str) -> Result<Vec<LabelRule>, String> {
    let mut rules = Vec::new();
    for term in split_outside_parentheses(text) {
        let term = term.trim();
        if term.is_empty() {
            if text.trim().is_empty() {
                continue;
            } else {
                return Err("found ',', expected: identifier".to_owned());
            }
        }
        rules.push(parse_label(term)?);
    }
    Ok(rules)
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_label(term: &str) -> Result<LabelRule, String> {
    if let Some(key) = term.strip_prefix('!') {
        return Ok(LabelRule::Absent(key_of(key)?));
    }
    for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((key, value)) = term.split_once(operator) {
            let (key, values) = (key_of(key)?, vec![value_of(value)?]);
            return Ok(if negated {
                LabelRule::NotIn(key, values)
            } else {
                LabelRule::In(key, values)
            });
        }
    }
    for operator in ['>', '<'] {
        if let Some((key, value)) = term.split_once(operator) {
            let value = value
                .trim()
                .parse()
                .map_err(|_| format!("{value:?} is not an integer"))?;
            let key = key_of(key)?;
            return Ok(if operator == '>' {
                LabelRule::Greater(key, value)
            } else {
                LabelRule::Less(key, value)
            });
        }
    }
    if let Some((head, values)) = term.split_once('(') {
        let values = values
            .strip_suffix(')')
            .ok_or_else(|| format!("{term:?} lacks ')'"))?;
        let values = values
            .split(',')
            .map(value_of)
            .collect::<Result<Vec<_>, _>>()?;
        let mut words = head.split_whitespace();
        let key = key_of(words.next().unwrap_or_default())?;
        return match (words.next(), words.next()) {
            (Some("in"), None) => Ok(LabelRule::In(key, values)),
            (Some("notin"), None) => Ok(LabelRule::NotIn(key, values)),
            _ => Err(format!(
                "found {head:?}, expected: in, notin, =, ==, !=, gt, lt"
            )),
        };
    }
    Ok(LabelRule::Exists(key_of(term)?))
}

fn key_of(text: &str) -> Result<String, String> {
    let text = text.trim();
    let good = !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!("invalid label key {text:?}"))
    }
}

fn value_of(text: &str) -> Result<String, String> {
    let text = text.trim();
    let good = text.len() <= 63
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if good {
        Ok(text.to_owned())
    } else {
        Err(format!("invalid label value: {text:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_of_both_forms() {
        let object = json!({ "metadata": { "labels": { "app": "web", "n": "5" } } });
        let matches = |text: &str| {
            let labels = parse_labels(text).unwrap();
            Selector {
                labels,
                fields: Vec::new(),
            }
            .matches(&object)
        };
        for yes in [
            "",
            "app",
            "app=web",
            "app==web,n=5",
            "app in (web, db)",
            "app notin (db)",
            "!gone",
            "x!=y",
            "n>4",
        ] {
            assert!(matches(yes), "{yes}");
        }
        for no in [
            "!app",
            "app=db",
            "app in (db,x),n",
            "gone",
            "app!=web",
            "n<5",
            "app notin (web)",
        ] {
            assert!(!matches(no), "{no}");
        }
        for bad in [
            "app in web",
            "a b c",
            "=x",
            "app=a b",
            "a,,b",
            "app in (web",
        ] {
            assert!(parse_labels(bad).is_err(), "{bad}");
        }
    }
}
