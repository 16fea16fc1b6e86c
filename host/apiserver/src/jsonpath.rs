//! The part of kubectl's JSONPath that printer columns, scale paths and selectable fields use.
//!
//! Owns parsing and evaluation of one path. Must not know its use.

use serde_json::Value;

/// A parsed path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Where {
        path: JsonPath,
        equal: bool,
        to: Value,
    },
}

impl JsonPath {
    /// Parses a path with or without the outer braces and the leading dot. `None` for unsupported
    /// syntax.
    pub fn parse(text: &str) -> Option<JsonPath> {
        let text = text.trim();
        let text = text
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .unwrap_or(text);
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut steps = Vec::new();
        if !rest.starts_with(['.', '[']) && !rest.is_empty() {
            rest = step_field(rest, &mut steps)?;
        }
        while !rest.is_empty() {
            rest = match rest.strip_prefix('.') {
                Some("") => "",
                Some(field) if field.starts_with('[') => field,
                Some(field) => step_field(field, &mut steps)?,
                None => step_bracket(rest.strip_prefix('[')?, &mut steps)?,
            };
        }
        Some(JsonPath { steps })
    }

    /// Returns every value that the path reaches.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found
                .into_iter()
                .flat_map(|value| step.apply(value))
                .collect();
        }
        found
    }

    /// Returns the first value that the path reaches.
    pub fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.find(value).into_iter().next().filter(|v| !v.is_null())
    }

    /// Returns the fields of a path of plain fields; `None` if it is not one.
    pub fn fields(&self) -> Option<Vec<&str>> {
        let mut fields = Vec::new();
        for step in &self.steps {
            let Step::Field(name) = step else {
                return None;
            };
            fields.push(name.as_str());
        }
        Some(fields)
    }

    /// Sets the value at a path of plain fields. Returns `false` if the path is not one, or leads
    /// through a value that is not an object.
    pub fn set(&self, value: &mut Value, to: Value) -> bool {
        let mut at = value;
        for step in &self.steps {
            let (Step::Field(name), Value::Object(map)) = (step, at) else {
                return false;
            };
            at = map
                .entry(name.clone())
                .or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
        *at = to;
        true
    }
}

impl Step {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Step::Field(name), Value::Object(map)) => map.get(name).into_iter().collect(),
            (Step::Index(index), Value::Array(items)) => {
                let at = if *index < 0 {
                    items.len() as i64 + index
                } else {
                    *index
                };
                usize::try_from(at)
                    .ok()
                    .and_then(|at| items.get(at))
                    .into_iter()
                    .collect()
            }
            (Step::All, Value::Array(items)) => items.iter().collect(),
            (Step::All, Value::Object(map)) => map.values().collect(),
            (Step::Where { path, equal, to }, Value::Array(items)) => items
                .iter()
                .filter(|item| (path.first(item) == Some(to)) == *equal)
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// Parses a field name up to the next dot or bracket; a backslash escapes the next character.
fn step_field<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            _ => name.push(c),
        }
    }
    if name.is_empty() {
        return None;
    }
    steps.push(if name == "*" {
        Step::All
    } else {
        Step::Field(name)
    });
    text.get(end..)
}

fn step_bracket<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    if let Some(filter) = text.strip_prefix("?(") {
        let (inside, rest) = filter.split_once(")]")?;
        let (path, equal, to) = match inside.split_once("==") {
            Some((path, to)) => (path, true, to),
            None => {
                let (path, to) = inside.split_once("!=")?;
                (path, false, to)
            }
        };
        let path = JsonPath::parse(path.trim().strip_prefix('@')?)?;
        steps.push(Step::Where {
            path,
            equal,
            to: literal(to.trim())?,
        });
        return Some(rest);
    }
    if let Some(quote @ ('\'' | '"')) = text.chars().next() {
        let (name, rest) = text.get(1..)?.split_once(quote)?;
        steps.push(Step::Field(name.replace('\\', "")));
        return rest.strip_prefix(']');
    }
    let (inside, rest) = text.split_once(']')?;
    match inside.trim() {
        "*" => steps.push(Step::All),
        number => steps.push(Step::Index(number.parse().ok()?)),
    }
    Some(rest)
}

fn literal(text: &str) -> Option<Value> {
    let quoted = |q: char| text.strip_prefix(q).and_then(|t| t.strip_suffix(q));
    match quoted('\'').or_else(|| quoted('"')) {
        Some(text) => Some(Value::String(text.to_owned())),
        None => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_reach_what_kubectl_would_show() {
        let object = json!({
            "metadata": { "annotations": { "a.b/c": "deep" } },
            "status": { "conditions": [
                { "type": "Synced", "status": "False" }, { "type": "Ready", "status": "True" },
            ], "n": [1, 2, 3] },
        });
        let first = |path: &str| JsonPath::parse(path).unwrap().first(&object).cloned();
        assert_eq!(
            first(".status.conditions[?(@.type==\"Ready\")].status"),
            Some(json!("True"))
        );
        assert_eq!(
            first(".status.conditions[?(@.type=='Synced')].status"),
            Some(json!("False"))
        );
        assert_eq!(first(".metadata.annotations.a\\.b/c"), Some(json!("deep")));
        assert_eq!(
            first(".metadata.annotations['a\\.b/c']"),
            Some(json!("deep"))
        );
        assert_eq!(first("{.status.n[-1]}"), Some(json!(3)));
        assert_eq!(first("status.n[0]"), Some(json!(1)));
        assert_eq!(first(".status.nothing"), None);
        assert_eq!(
            JsonPath::parse(".status.n[*]").unwrap().find(&object).len(),
            3
        );
        assert_eq!(JsonPath::parse(".a[?(broken"), None);
    }

    #[test]
    fn set_makes_the_way() {
        let mut object = json!({ "spec": {} });
        assert!(
            JsonPath::parse(".spec.deep.replicas")
                .unwrap()
                .set(&mut object, json!(3))
        );
        assert_eq!(object, json!({ "spec": { "deep": { "replicas": 3 } } }));
    }
}
