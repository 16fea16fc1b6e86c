//! One difference between what two versions want in a turn. Plain data. This module must not know
//! how versions are compared.

use serde_json::Value;

use crate::journal::path;
use crate::journal::story::{Effect, Field};

/// How two versions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum What {
    /// Both versions want it, but in different ways.
    Changed,
    /// Only the live version wants it.
    Missing,
    /// Only the candidate wants it.
    Extra,
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) what: What,
    /// The kind that the effect writes, with its subresource: `Machine/status`. Empty if the
    /// difference is not about an effect.
    pub(crate) kind: String,
    /// The effect of the candidate, or else of the live version, with the fields that differ. A
    /// field's old value is the live version's. Beside effects there are the verbs `next` (what
    /// comes next), `order` (of the effects) and `call` (how the call ended).
    pub(crate) effect: Effect,
}

impl Difference {
    /// Returns the places that differ, in general form. A place without a path stands for the whole
    /// effect.
    pub(crate) fn paths(&self) -> Vec<String> {
        match self.what {
            What::Changed => {
                let fields = self.effect.fields.iter();
                fields.map(|field| self.place_of(field)).collect()
            }
            What::Missing | What::Extra => vec![String::new()],
        }
    }

    /// Returns the place of a field of this difference. The ends of two calls make one place for
    /// each pair of ends, because a live version that missed its deadline once must not hide a
    /// candidate that traps.
    pub(crate) fn place_of(&self, field: &Field) -> String {
        match (self.effect.verb.as_str(), &field.old, &field.new) {
            ("call", Some(Value::String(live)), Some(Value::String(other))) => {
                format!("{live} -> {other}")
            }
            _ => general(&field.path),
        }
    }
}

/// Returns the path with `[*]` for the number of each item: `spec.list[*].x`.
pub(crate) fn general(at: &str) -> String {
    let mut general = String::new();
    for step in path::steps(at) {
        match path::is_item(&step) {
            true => general += "[*]",
            false => path::push(&mut general, &step),
        }
    }
    general
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_alike() {
        for (path, expected) in [
            ("", ""),
            ("spec.replicas", "spec.replicas"),
            ("spec.list[12].x[0]", "spec.list[*].x[*]"),
            ("metadata.finalizers[-]", "metadata.finalizers[*]"),
            (r#"metadata.labels["a.b/c"]"#, r#"metadata.labels["a.b/c"]"#),
        ] {
            assert_eq!(general(path), expected);
        }
    }
}
