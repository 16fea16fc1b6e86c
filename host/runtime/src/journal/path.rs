//! The form of a field's path in the document: `spec.replicas`, `spec.containers[0].image`,
//! `metadata.labels["app.kubernetes.io/name"]`; and JSON pointers, which name the fields of a JSON
//! patch.
//!
//! It owns the two forms. It must not know objects, or what a path is for.

use serde_json::Value;

/// Appends the name of a member to a path.
pub(crate) fn push(path: &mut String, name: &str) {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if name.is_empty() || !name.bytes().all(is_plain) {
        *path += &format!("[{}]", Value::from(name));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    *path += name;
}

/// Splits a path into the names of members and the numbers of items.
pub(crate) fn steps(path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let step;
        (step, rest) = match rest.strip_prefix('[') {
            Some(bracket) => in_bracket(bracket),
            None => {
                let name = rest.strip_prefix('.').unwrap_or(rest);
                let end = name.find(['.', '[']).unwrap_or(name.len());
                (name[..end].to_owned(), &name[end..])
            }
        };
        steps.push(step);
    }
    steps
}

/// Returns the name or the number behind an opening bracket, and what follows the closing one.
fn in_bracket(text: &str) -> (String, &str) {
    let mut names = serde_json::Deserializer::from_str(text).into_iter::<String>();
    if let Some(Ok(name)) = names.next() {
        let rest = &text[names.byte_offset()..];
        return (name, rest.strip_prefix(']').unwrap_or(rest));
    }
    let (number, rest) = text.split_once(']').unwrap_or((text, ""));
    (number.to_owned(), rest)
}

/// Splits a JSON pointer into the names of members and the numbers of items.
pub(crate) fn pointer_steps(pointer: &str) -> Vec<String> {
    let steps = pointer.split('/').skip(1);
    steps
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect()
}

/// Converts a JSON pointer to a path. A step that can be the number of an item counts as one, since
/// the pointer does not tell.
pub(crate) fn from_pointer(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer_steps(pointer) {
        if is_item(&step) {
            path += &format!("[{step}]");
        } else {
            push(&mut path, &step);
        }
    }
    path
}

/// Returns whether a step can be the number of an item. `-` is the end of a list in a JSON pointer.
pub(crate) fn is_item(step: &str) -> bool {
    step == "-" || (!step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_splits_into_the_names_that_it_was_made_of() {
        let names = ["spec", "a.b/c", "", "x-y", "_z9", "9z", "q\"]\\", "é"];
        let mut path = String::new();
        for name in names {
            push(&mut path, name);
        }
        assert!(
            path.starts_with(r#"spec["a.b/c"][""].x-y._z9.9z["q\"]\\"]"#),
            "{path}"
        );
        assert_eq!(steps(&path), names);
        assert_eq!(steps("spec.list[12].x"), ["spec", "list", "12", "x"]);
        assert_eq!(steps(r#"["a"][0]"#), ["a", "0"]);
        assert!(steps("").is_empty());
    }

    #[test]
    fn a_broken_path_ends() {
        for path in ["[", "[\"a", ".", "..", "a[", "]", "[]"] {
            steps(path);
        }
    }

    #[test]
    fn a_pointer_becomes_a_path() {
        for (pointer, path) in [
            ("", ""),
            ("/spec/replicas", "spec.replicas"),
            ("/spec/list/0/x", "spec.list[0].x"),
            ("/metadata/finalizers/-", "metadata.finalizers[-]"),
            ("/metadata/labels/a~1b~01", r#"metadata.labels["a/b~1"]"#),
        ] {
            assert_eq!(from_pointer(pointer), path);
        }
    }
}
