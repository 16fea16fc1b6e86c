//! Which names of a definition are accepted: another definition of its group may have them already.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/controller/status`. Must not know conditions.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::builtin::DEFINITIONS;
use crate::meta;
use crate::state::Inner;

/// Why a name is not accepted: a reason and its text.
pub(super) type Conflict = (&'static str, String);

/// The names that the other definitions of a group have.
#[derive(Default)]
struct Used {
    resources: HashSet<String>,
    kinds: HashSet<String>,
}

/// Returns the accepted names of a definition, and the last conflict.
pub(super) fn accept(inner: &Inner, definition: &Value) -> (Value, Option<Conflict>) {
    let used = used(inner, definition);
    let asked = &definition["spec"]["names"];
    let mut accepted = definition["status"]["acceptedNames"].clone();
    if !accepted.is_object() {
        accepted = json!({ "kind": "", "plural": "" });
    }
    let mut conflict = None;
    for (name, reason, taken) in [
        ("plural", "PluralConflict", &used.resources),
        ("singular", "SingularConflict", &used.resources),
        ("shortNames", "ShortNamesConflict", &used.resources),
        ("kind", "KindConflict", &used.kinds),
        ("listKind", "ListKindConflict", &used.kinds),
    ] {
        let mine = texts(&accepted[name]);
        let new = texts(&asked[name]);
        let lost: Vec<String> = new
            .iter()
            .filter(|name| !mine.contains(name) && taken.contains(**name))
            .map(|name| format!("{name:?} is already in use"))
            .collect();
        match lost.as_slice() {
            [] => copy(&mut accepted, asked, name),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    copy(&mut accepted, asked, "categories");
    (accepted, conflict)
}

fn used(inner: &Inner, definition: &Value) -> Used {
    let mut used = Used::default();
    for (_, other) in inner.store.list(DEFINITIONS, None) {
        if meta::text(&other, "uid") == meta::text(definition, "uid")
            || other["spec"]["group"] != definition["spec"]["group"]
        {
            continue;
        }
        let names = &other["status"]["acceptedNames"];
        for name in ["plural", "singular", "shortNames"] {
            used.resources
                .extend(texts(&names[name]).into_iter().map(str::to_owned));
        }
        for name in ["kind", "listKind"] {
            used.kinds
                .extend(texts(&names[name]).into_iter().map(str::to_owned));
        }
    }
    used
}

/// Returns a text, or the texts of a list; empty ones are left out.
fn texts(value: &Value) -> Vec<&str> {
    let texts: Vec<&str> = match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}

fn copy(to: &mut Value, from: &Value, name: &str) {
    if let Some(map) = to.as_object_mut() {
        match from.get(name) {
            Some(value) => map.insert(name.to_owned(), value.clone()),
            None => map.remove(name),
        };
    }
}
