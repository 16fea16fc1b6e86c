//! The sources of the data of claims, which stand in two fields.
//!
//! Follows k8s.io/kubernetes `pkg/api/persistentvolumeclaim`. Must not know classes.

use serde_json::{Map, Value};

/// Completes a claim that has its source in one of the fields. In the older one a new claim has
/// only a claim or a snapshot; anything else there is dropped.
pub(super) fn sources(live: Option<&Value>, object: &mut Value) {
    let had = |field: &str| live.is_some_and(|live| live["spec"][field].is_object());
    let had_source = had("dataSource") || had("dataSourceRef");
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let source = spec.get("dataSource").and_then(Value::as_object);
    let reference = spec.get("dataSourceRef").and_then(Value::as_object);
    let is_near = |of: &Map<String, Value>| text(of, "namespace").is_empty();
    let copied = match (source, reference) {
        (Some(source), None) if had_source || is_known(source) => {
            Some(("dataSourceRef", copy(source)))
        }
        (Some(_), None) => None,
        (None, Some(reference)) if is_near(reference) => Some(("dataSource", copy(reference))),
        _ => return,
    };
    match copied {
        Some((field, value)) => drop(spec.insert(field.to_owned(), value)),
        None => drop(spec.remove("dataSource")),
    }
}

fn text<'a>(of: &'a Map<String, Value>, field: &str) -> &'a str {
    of.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_known(source: &Map<String, Value>) -> bool {
    matches!(
        (text(source, "kind"), text(source, "apiGroup")),
        ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
    )
}

fn copy(source: &Map<String, Value>) -> Value {
    let own = ["apiGroup", "kind", "name"].into_iter();
    let fields = own.filter_map(|field| Some((field.to_owned(), source.get(field)?.clone())));
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_source_stands_in_both_fields() {
        let claim = json!({ "kind": "PersistentVolumeClaim", "name": "a" });
        let other = json!({ "apiGroup": "x.y", "kind": "Z", "name": "a" });
        let far = json!({ "kind": "PersistentVolumeClaim", "name": "a", "namespace": "n" });
        let of = |live: Option<&Value>, spec: Value| {
            let mut object = json!({ "spec": spec });
            sources(live, &mut object);
            object["spec"].take()
        };
        let both = |of: &Value| json!({ "dataSource": of, "dataSourceRef": of });
        assert_eq!(of(None, json!({ "dataSource": claim })), both(&claim));
        assert_eq!(of(None, json!({ "dataSourceRef": other })), both(&other));
        assert_eq!(of(None, json!({ "dataSource": other })), json!({}));
        let far = json!({ "dataSourceRef": far });
        assert_eq!(of(None, far.clone()), far);
        let live = json!({ "spec": both(&other) });
        let kept = of(Some(&live), json!({ "dataSource": other }));
        assert_eq!(kept, both(&other));
    }
}
