//! Paths from a schema to one of its fields: `.spec.replicas`, `['a.b']`.
//!
//! Owns their grammar. Follows `ValidFieldPath` of k8s.io/apiextensions-apiserver
//! `pkg/apiserver/schema/cel`. Must not know what a path is for.

use serde_json::Value;

/// Returns the path of a keyword or a place below another.
pub(crate) fn child(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Resolves a path against a schema. Returns it in the form of error messages (`spec.labels[x]`),
/// and the schema of the field; an error says what is wrong.
pub fn resolve<'s>(
    path: &str,
    schema: &'s Value,
    brackets: bool,
) -> Result<(String, &'s Value), String> {
    let (mut found, mut shown, mut rest) = (schema, String::new(), path);
    while !rest.is_empty() {
        let name;
        (name, rest) = match rest.strip_prefix('.') {
            Some(after) => {
                let end = after.find(['.', '[', ']']).unwrap_or(after.len());
                let (name, after) = after.split_at(end);
                if name.is_empty() && after.is_empty() {
                    return Err("unexpected end of JSON path".to_owned());
                }
                (name.to_owned(), after)
            }
            None if rest.starts_with('[') && !brackets => {
                return Err("array notation is not allowed".to_owned());
            }
            None => bracket(rest)?,
        };
        let missing = || "does not refer to a valid field".to_owned();
        let here = found;
        let below = |keyword: &str| here.get(keyword).filter(|below| below.is_object());
        if let Some(properties) = below("properties") {
            found = properties.get(&name).ok_or_else(missing)?;
            if !shown.is_empty() {
                shown.push('.');
            }
            shown.push_str(&name);
        } else {
            found = below("additionalProperties").ok_or_else(missing)?;
            shown.push_str(&format!("[{name}]"));
        }
    }
    Ok((shown, found))
}

/// Reads `['name']`, and returns the text after it.
fn bracket(text: &str) -> Result<(String, &str), String> {
    let Some(inner) = text.strip_prefix('[') else {
        let end = text.find(['.', '[', ']']).unwrap_or(text.len()).max(1);
        let token = text.get(..end).unwrap_or(text);
        return Err(format!("expected [ or . but got: {token}"));
    };
    let Some(quoted) = inner.strip_prefix('\'') else {
        return Err(format!("expected single quoted string but got {inner}"));
    };
    let mut name = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => {
                let after = quoted
                    .get(at + 1..)
                    .and_then(|after| after.strip_prefix(']'));
                let after = after.ok_or_else(|| "unexpected end of JSON path".to_owned())?;
                return Ok((name, after));
            }
            '\\' => name.push(match chars.next() {
                Some((_, 'a')) => '\u{7}',
                Some((_, 'b')) => '\u{8}',
                Some((_, 'f')) => '\u{c}',
                Some((_, 'n')) => '\n',
                Some((_, 'r')) => '\r',
                Some((_, 't')) => '\t',
                Some((_, 'v')) => '\u{b}',
                Some((_, c @ ('\'' | '\\'))) => c,
                _ => return Err("invalid string literal: invalid escape char".to_owned()),
            }),
            c => name.push(c),
        }
    }
    Err("unexpected end of JSON path".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_fields_of_the_schema() {
        let schema = json!({ "properties": {
            "spec": { "properties": { "a.b": { "type": "string" } } },
            "map": { "additionalProperties": { "type": "integer" } },
        } });
        let shown = |path: &str| resolve(path, &schema, true).map(|(shown, _)| shown);
        assert_eq!(shown(".spec"), Ok("spec".to_owned()));
        assert_eq!(shown(".spec['a.b']"), Ok("spec.a.b".to_owned()));
        assert_eq!(shown(".map['x']"), Ok("map[x]".to_owned()));
        assert_eq!(shown(".map.x"), Ok("map[x]".to_owned()));
        for bad in [".none", "spec", ".spec.", ".spec['a.b'", ".spec[0]"] {
            assert!(shown(bad).is_err(), "{bad}");
        }
        assert!(resolve(".spec['a.b']", &schema, false).is_err());
    }
}
