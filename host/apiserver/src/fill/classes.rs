//! The classes of claims and ingresses that name none.
//!
//! Follows the admission plugins `DefaultStorageClass` and `DefaultIngressClass`. Must not know
//! what a class means.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::meta;
use crate::state::Inner;

/// A kind of classes.
struct Classes {
    storage: &'static str,
    /// The annotations of which one marks a class as the default.
    marks: &'static [&'static str],
    /// The field of a spec that names a class, and the annotation that did so in older objects.
    named_by: (&'static str, &'static str),
}

const STORAGE: Classes = Classes {
    storage: "storage.k8s.io/storageclasses",
    marks: &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ],
    named_by: (
        "storageClassName",
        "volume.beta.kubernetes.io/storage-class",
    ),
};

const INGRESS: Classes = Classes {
    storage: "networking.k8s.io/ingressclasses",
    marks: &["ingressclass.kubernetes.io/is-default-class"],
    named_by: ("ingressClassName", "kubernetes.io/ingress.class"),
};

/// Names the class of a new claim.
pub(super) fn claim(inner: &Inner, new: &mut Value) {
    STORAGE.name(inner, new);
}

/// Names the class of a new ingress.
pub(super) fn ingress(inner: &Inner, new: &mut Value) {
    INGRESS.name(inner, new);
}

impl Classes {
    fn name(&self, inner: &Inner, new: &mut Value) {
        let (field, annotation) = self.named_by;
        let is_annotated = annotated(new, annotation).is_some();
        // What is no object is refused by the schema.
        let spec = new.get_mut("spec").filter(|spec| spec.is_object());
        let Some(spec) = spec.filter(|spec| !is_annotated && spec[field].is_null()) else {
            return;
        };
        if let Some(name) = self.default(inner) {
            spec[field] = json!(name);
        }
    }

    /// Returns the name of the default class. Of several, the newest one counts, and of equally old
    /// ones the first by name.
    fn default(&self, inner: &Inner) -> Option<String> {
        let all = inner.store.list(self.storage, None);
        let marked = |mark: &&str, class: &Value| annotated(class, mark) == Some("true");
        let defaults = all.filter(|(_, class)| self.marks.iter().any(|mark| marked(mark, class)));
        // They come in the order of their names.
        let newest = defaults
            .min_by_key(|(_, class)| Reverse(meta::text(class, "creationTimestamp").to_owned()));
        newest.map(|(key, _)| key.name.clone())
    }
}

fn annotated<'a>(object: &'a Value, annotation: &str) -> Option<&'a str> {
    meta::get(object, "annotations")?.get(annotation)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Key;
    use crate::state::State;

    #[test]
    fn the_newest_default_class_counts() {
        let state = State::new();
        let name = |new: &Value| {
            let mut new = new.clone();
            state.read(|inner| claim(inner, &mut new));
            new["spec"]["storageClassName"].clone()
        };
        let claim = json!({ "metadata": {}, "spec": {} });
        assert_eq!(name(&claim), Value::Null);
        for (class, second, is_default) in [
            ("a", "02", "true"),
            ("b", "03", "true"),
            ("c", "03", "true"),
            ("d", "04", "false"),
        ] {
            let object = json!({ "metadata": {
                "name": class,
                "creationTimestamp": format!("2026-01-01T00:00:{second}Z"),
                "annotations": { "storageclass.kubernetes.io/is-default-class": is_default },
            } });
            state.write(|inner| {
                let storage = STORAGE.storage.into();
                inner.store.put(&storage, Key::new("", class), object)
            });
        }
        assert_eq!(name(&claim), "b");
        // An empty name is one too: the claim wants no class.
        for asked in ["", "other"] {
            let claim = json!({ "metadata": {}, "spec": { "storageClassName": asked } });
            assert_eq!(name(&claim), asked);
        }
        let annotations = json!({ "volume.beta.kubernetes.io/storage-class": "other" });
        let old = json!({ "metadata": { "annotations": annotations }, "spec": {} });
        assert_eq!(name(&old), Value::Null);
        let no_spec = json!({ "metadata": {}, "spec": "x" });
        assert_eq!(name(&no_spec), Value::Null);
    }
}
