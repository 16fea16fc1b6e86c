//! Finds the keys that a change of an object concerns, by a declared mapping. A running host and a
//! preview use the same functions with different stores.
//!
//! This module must not know where the stores are, or what becomes of a key.

use std::collections::HashSet;

use vmhost_core::{Mapping, NamedPrimary, ObjectName, Scope};

/// Returns the primaries that these texts of an object name, each once. `is_key` returns whether a
/// primary exists. Both scopes are tried, because only the primary's store shows whether the kind
/// is namespaced; a name that is not in the store is not a key. An owner reference names an object
/// by uid, so a later object of the same name is not the owner.
pub fn named<'t>(
    mapping: &Mapping,
    object: &ObjectName,
    texts: impl IntoIterator<Item = &'t str>,
    is_key: impl Fn(&NamedPrimary<'_>) -> bool,
) -> HashSet<ObjectName> {
    let mut names = HashSet::new();
    for text in texts {
        for scope in [Scope::Namespaced, Scope::Cluster] {
            for found in mapping.names(text, object, scope) {
                if is_key(&found) {
                    names.insert(found.name);
                }
            }
        }
    }
    names
}

/// Returns whether a primary, whose index holds the name of an object, means this object: both are
/// in the same namespace, or one of them is cluster-scoped.
pub fn may_mean(primary: &ObjectName, object: &ObjectName) -> bool {
    let namespace = primary.namespace();
    object.namespace().is_none() || namespace.is_none() || namespace == object.namespace()
}

#[cfg(test)]
mod tests {
    use vmhost_core::{Gvk, MapBy};

    use super::*;

    #[test]
    fn only_names_that_are_keys_are_found() {
        let kind = Gvk::new("", "v1", "Pod");
        let mapping = Mapping::compile(&MapBy::Label("of".into()), &kind).unwrap();
        let object = ObjectName::new(Some("a"), "x");
        let text = |name: &str| format!(r#"{{"metadata":{{"labels":{{"of":"{name}"}}}}}}"#);
        let (old, new) = (text("one"), text("two"));
        let texts = [old.as_str(), new.as_str()];
        let is_key = |found: &NamedPrimary<'_>| found.name.namespace() == Some("a");
        let names = named(&mapping.unwrap(), &object, texts, is_key);
        let wanted = ["one", "two"].map(|name| ObjectName::new(Some("a"), name));
        assert_eq!(names, HashSet::from(wanted));
    }

    #[test]
    fn an_index_means_objects_of_the_same_namespace() {
        let of = |namespace| ObjectName::new(namespace, "x");
        for (primary, object, means) in [
            (Some("a"), Some("a"), true),
            (Some("a"), Some("b"), false),
            (None, Some("b"), true),
            (Some("a"), None, true),
        ] {
            assert_eq!(may_mean(&of(primary), &of(object)), means);
        }
    }
}
