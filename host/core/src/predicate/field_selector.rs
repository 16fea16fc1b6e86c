//! Field selectors over any path: `spec.nodeName=a,status.phase!=Failed`. The grammar is that of
//! k8s.io/apimachinery/pkg/fields, with `FieldPath` for the names. This module must not know by
//! which fields a server selects.

use crate::field_path::FieldPath;

/// A parsed field selector that the host itself evaluates; an empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    path: FieldPath,
    equals: bool,
    value: String,
}

impl FieldSelector {
    /// Parses a selector. The error names the text at fault. In a value, `\,`, `\=` and `\\` escape
    /// the second character.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        split(text)
            .map(Term::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns whether this object's text satisfies every term. A missing field counts as the empty
    /// string. For a path with several values (`[*]`), `=` needs one equal value, and `!=` needs
    /// all values to differ.
    pub fn matches(&self, object: &str) -> bool {
        self.0.iter().all(|term| {
            let values = term.path.values(object);
            let found = if values.is_empty() {
                term.value.is_empty()
            } else {
                values.contains(&term.value.as_str().into())
            };
            found == term.equals
        })
    }

    /// Returns whether an object that is created with this text may satisfy every term later: the
    /// API server generates the name, and sets fields that are missing.
    pub fn may_match(&self, object: &str) -> bool {
        self.0.iter().all(|term| {
            let values = term.path.values(object);
            if values.is_empty() {
                // The host cannot predict a name that the server generates.
                return !(term.equals && term.path.root_dotted() == "metadata.name");
            }
            values.contains(&term.value.as_str().into()) == term.equals
        })
    }

    /// The dotted paths that the selector reads.
    pub fn fields(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|term| term.path.root_dotted())
    }
}

impl Term {
    fn parse(part: &str) -> Result<Self, String> {
        let wrong =
            || format!("{part:?} is not of the form `spec.nodeName=x` or `spec.nodeName!=x`");
        let at = outside(part)
            .into_iter()
            .find_map(|(at, c)| (c == '=').then_some(at))
            .ok_or_else(wrong)?;
        let (path, value) = (&part[..at], &part[at + 1..]);
        let (path, equals) = path
            .strip_suffix('!')
            .map_or((path, true), |path| (path, false));
        let value = if equals {
            value.strip_prefix('=').unwrap_or(value)
        } else {
            value
        };
        Ok(Self {
            path: FieldPath::parse(path.trim()).map_err(|error| error.to_string())?,
            equals,
            value: unescape(value.trim()).ok_or_else(wrong)?,
        })
    }
}

/// The characters that are neither inside `["key"]` nor escaped by a backslash, with their byte
/// offsets.
fn outside(text: &str) -> Vec<(usize, char)> {
    let mut found = Vec::new();
    let (mut quoted, mut previous) = (false, ' ');
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '"' if quoted => quoted = false,
            '"' if previous == '[' => quoted = true,
            _ if quoted => {}
            _ => found.push((at, c)),
        }
        previous = c;
    }
    found
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    let commas: Vec<usize> = outside(text)
        .into_iter()
        .filter_map(|(at, c)| (c == ',').then_some(at))
        .collect();
    let starts = std::iter::once(0).chain(commas.clone().into_iter().map(|at| at + 1));
    let ends = commas.into_iter().chain(std::iter::once(text.len()));
    starts.zip(ends).map(|(start, end)| &text[start..end])
}

/// As Go's `fields.UnescapeValue`: only these three characters are escaped, and an escape is
/// mandatory.
fn unescape(value: &str) -> Option<String> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => plain.push(
                characters
                    .next()
                    .filter(|c| matches!(c, '\\' | ',' | '='))?,
            ),
            '=' => return None,
            _ => plain.push(c),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_any_path() {
        let object = r#"{"spec":{"nodeName":"a","n":3,"on":true,"z":null,"c":[{"p":1},{"p":2}],"k,=\"]":"odd"},"e":"x,y=\\"}"#;
        for (selector, expected) in [
            ("", true),
            (" ", true),
            ("spec.nodeName=a", true),
            ("spec.nodeName==a", true),
            ("spec.nodeName = a ", true),
            ("spec.nodeName!=a", false),
            ("spec.nodeName=b", false),
            ("spec.nodeName=a,spec.n=3,spec.on=true", true),
            ("spec.nodeName=a,spec.n=4", false),
            ("spec.missing=", true),
            ("spec.missing!=x", true),
            ("spec.missing=x", false),
            ("spec.z=", true),
            ("spec.z!=", false),
            ("spec.nodeName!=", true),
            ("spec.c[*].p=2", true),
            ("spec.c[*].p=3", false),
            ("spec.c[*].p!=2", false),
            ("spec.c[*].p!=3", true),
            (r#"spec["k,=\"]"]=odd"#, true),
            (r#"spec["k,=\"]"]!=odd,spec.n=3"#, false),
            (r"e=x\,y\=\\", true),
            (r"e=x\,y\=\\,spec.n=3", true),
        ] {
            let parsed = FieldSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(object), expected, "{selector}");
        }
    }

    #[test]
    fn what_an_object_lacks_may_come() {
        let object = r#"{"metadata":{"generateName":"a-"},"spec":{"nodeName":"a"}}"#;
        for (selector, expected) in [
            ("spec.nodeName=a,status.phase=Pending", true),
            ("spec.nodeName=b,status.phase=Pending", false),
            ("spec.nodeName!=a", false),
            ("spec.nodeName!=b,metadata.name!=x", true),
            ("metadata.name=a-1", false),
            ("", true),
        ] {
            let parsed = FieldSelector::parse(selector).unwrap();
            assert_eq!(parsed.may_match(object), expected, "{selector}");
        }
    }

    #[test]
    fn nonsense_is_named() {
        for (selector, names) in [
            ("spec.a", "\"spec.a\" is not of the form"),
            ("spec.a=1,", "\"\" is not of the form"),
            (",", "\"\" is not of the form"),
            ("=1", "a name is missing"),
            ("a=b=c", "\"a=b=c\" is not of the form"),
            (r"a=\x", "is not of the form"),
            (r"a=\", "is not of the form"),
            ("spec[0]=1", "\"[0]\" begins with neither"),
            (r#"a["x=1,b=2"#, "is not of the form"),
        ] {
            let error = FieldSelector::parse(selector).unwrap_err();
            assert!(error.contains(names), "{selector}: {error}");
        }
    }

    #[test]
    fn the_fields_are_what_pruning_keeps() {
        let selector = FieldSelector::parse(r#"spec.c[*].p=1,metadata.labels["a.b"]!=x"#).unwrap();
        assert_eq!(
            selector.fields().collect::<Vec<_>>(),
            ["spec.c", "metadata.labels"]
        );
    }
}
