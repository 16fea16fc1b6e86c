use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn compile(description: Value) -> Predicate {
    Predicate::compile(&serde_json::from_value(description).unwrap()).unwrap()
}

/// Builds an object with this metadata and spec.
fn object(metadata: Value, spec: Value) -> String {
    json!({"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "spec": spec}).to_string()
}

#[test]
fn descriptions_are_read_and_written() {
    let full = json!({"changed": ["generation", "labels", "annotations", "resourceVersion"],
        "labelSelector": "a=b", "fieldSelector": "spec.a=b", "cel": "object.spec.a == 1"});
    let read: PredicateDescription = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), full);
    assert_eq!(
        serde_json::to_value(PredicateDescription::default()).unwrap(),
        json!({})
    );
    for bad in [
        json!({"change": []}),
        json!({"changed": ["spec"]}),
        json!({"cel": 1}),
    ] {
        assert!(serde_json::from_value::<PredicateDescription>(bad).is_err());
    }
}

#[test]
fn a_condition_that_does_not_compile_is_named() {
    for (description, names) in [
        (
            json!({"labelSelector": "a in 1"}),
            "labelSelector: \"a in 1\"",
        ),
        (json!({"fieldSelector": "spec"}), "fieldSelector: \"spec\""),
        (
            json!({"cel": "object.spec.a =="}),
            "cel: not a CEL expression",
        ),
    ] {
        let description = serde_json::from_value(description).unwrap();
        let error = Predicate::compile(&description).unwrap_err().to_string();
        assert!(error.starts_with(names), "{error}");
    }
}

#[test]
fn an_end_is_never_swallowed() {
    let never = compile(json!({"changed": ["generation"], "labelSelector": "no=no",
        "fieldSelector": "spec.no=no", "cel": "false"}));
    let old = object(json!({"uid": "1", "generation": 1}), json!({}));
    let deleting = |uid: &str| {
        object(
            json!({"uid": uid, "generation": 1, "deletionTimestamp": "2026-01-01T00:00:00Z"}),
            json!({}),
        )
    };
    let other = object(json!({"uid": "2", "generation": 1}), json!({}));
    for (old, new, expected) in [
        (Some(&*old), None, Wakes::Yes),
        (None, None, Wakes::Yes),
        (Some(&*old), Some(&*deleting("1")), Wakes::Yes),
        (None, Some(&*deleting("1")), Wakes::Yes),
        (Some(&*old), Some(&*other), Wakes::Yes),
        (Some(&*deleting("1")), Some(&*deleting("1")), Wakes::No),
        (Some(&*old), Some(&*old), Wakes::No),
        (None, Some(&*old), Wakes::No),
    ] {
        assert_eq!(never.wakes(old, new), expected, "{old:?} {new:?}");
    }
}

#[test]
fn only_what_is_named_counts_as_a_change() {
    let base = json!({"uid": "1", "resourceVersion": "1", "generation": 1, "labels": {"a": "1", "b": "2"}, "annotations": {"x": "y"}});
    let with = |field: &str, value: Value| {
        let mut metadata = base.clone();
        metadata[field] = value;
        object(metadata, json!({}))
    };
    let old = object(base.clone(), json!({}));
    for (changed, new, expected) in [
        (json!([]), old.clone(), true),
        (json!(["generation"]), old.clone(), false),
        (json!(["generation"]), with("generation", json!(2)), true),
        (json!(["generation"]), with("generation", Value::Null), true),
        (json!(["generation"]), with("labels", json!({})), false),
        (json!(["labels"]), with("labels", json!({"a": "1"})), true),
        (
            json!(["labels"]),
            with("labels", json!({"a": "1", "b": "3"})),
            true,
        ),
        (json!(["labels"]), with("labels", Value::Null), true),
        (json!(["labels"]), with("annotations", json!({})), false),
        (
            json!(["annotations"]),
            with("annotations", json!({"x": "z"})),
            true,
        ),
        (json!(["annotations"]), with("labels", json!({})), false),
        (
            json!(["resourceVersion"]),
            with("resourceVersion", json!("2")),
            true,
        ),
        (json!(["resourceVersion"]), old.clone(), false),
        (
            json!(["labels", "generation"]),
            with("generation", json!(2)),
            true,
        ),
    ] {
        let predicate = compile(json!({"changed": changed}));
        assert_eq!(
            predicate.wakes(Some(&old), Some(&new)).wakes(),
            expected,
            "{changed} {new}"
        );
        assert_eq!(
            predicate.wakes(None, Some(&new)),
            Wakes::Yes,
            "a new object differs"
        );
    }
    let order = |text: &str| format!(r#"{{"metadata":{{"labels":{text},"annotations":{text}}}}}"#);
    let (old, new) = (
        order(r#"{"a":"1","b":"2"}"#),
        order(r#"{ "b":"2", "\u0061":"1"}"#),
    );
    let maps = compile(json!({"changed": ["labels", "annotations"]}));
    assert_eq!(
        maps.wakes(Some(&old), Some(&new)),
        Wakes::No,
        "the order says nothing"
    );
    let (none, null) = (r#"{"metadata":{}}"#, order("null"));
    assert_eq!(maps.wakes(Some(none), Some(&null)), Wakes::No);
    assert_eq!(maps.wakes(Some(none), Some(&order("{}"))), Wakes::No);
}

#[test]
fn one_that_leaves_a_selection_is_told() {
    let of =
        |label: &str, node: &str| object(json!({"labels": {"app": label}}), json!({"node": node}));
    for description in [
        json!({"labelSelector": "app in (web)"}),
        json!({"fieldSelector": "metadata.labels.app=web,spec.node!=z"}),
        json!({"cel": "object.metadata.labels.app == 'web' || (oldObject != null && oldObject.metadata.labels.app == 'web')"}),
    ] {
        let predicate = compile(description.clone());
        for (old, new, expected) in [
            (Some("web"), "web", true),
            (Some("web"), "db", true),
            (Some("db"), "web", true),
            (Some("db"), "db", false),
            (None, "web", true),
            (None, "db", false),
        ] {
            let old = old.map(|old| of(old, "a"));
            let wakes = predicate.wakes(old.as_deref(), Some(&of(new, "a")));
            assert_eq!(
                wakes,
                if expected { Wakes::Yes } else { Wakes::No },
                "{description} {old:?} {new}"
            );
        }
    }
    let empty = compile(json!({"labelSelector": "", "fieldSelector": ""}));
    assert_eq!(empty.wakes(None, Some(&of("x", "y"))), Wakes::Yes);
}

#[test]
fn all_conditions_have_to_hold() {
    let all = compile(
        json!({"changed": ["generation"], "labelSelector": "app=web", "fieldSelector": "spec.node=a",
        "cel": "object.spec.n > 1"}),
    );
    let of = |generation: i64, label: &str, node: &str, n: i64| {
        object(
            json!({"generation": generation, "labels": {"app": label}}),
            json!({"node": node, "n": n}),
        )
    };
    let old = of(1, "-", "-", 0);
    for (new, expected) in [
        (of(2, "web", "a", 2), true),
        (of(1, "web", "a", 2), false),
        (of(2, "db", "a", 2), false),
        (of(2, "web", "b", 2), false),
        (of(2, "web", "a", 1), false),
    ] {
        assert_eq!(all.wakes(Some(&old), Some(&new)).wakes(), expected, "{new}");
    }
}

#[test]
fn what_cannot_be_decided_wakes_and_is_told() {
    let cel = compile(json!({"cel": "object.spec.n == 1"}));
    let wakes = cel.wakes(None, Some(r#"{"metadata":{}}"#));
    assert_eq!(wakes, Wakes::Error("cel: no such key: spec".into()));
    assert!(wakes.wakes());
    let labels = compile(json!({"labelSelector": "a"}));
    let wakes = labels.wakes(None, Some("no object"));
    assert_eq!(
        wakes,
        Wakes::Error("the object's metadata cannot be read".into())
    );
    assert_eq!(
        compile(json!({})).wakes(None, Some("not looked at")),
        Wakes::Yes
    );
}

#[test]
fn the_fields_are_what_pruning_keeps() {
    for (description, fields) in [
        (json!({}), Some(&[][..])),
        (
            json!({"changed": ["generation"], "labelSelector": "a"}),
            Some(&[]),
        ),
        (
            json!({"fieldSelector": "spec.a[*].b=1,metadata.name=x,kind=y", "cel": "object.status.p == oldObject.metadata.name"}),
            Some(&["spec.a", "status.p"]),
        ),
        (
            json!({"fieldSelector": "spec.a=1", "cel": "object != oldObject"}),
            None,
        ),
    ] {
        let expected = fields.map(|fields| fields.iter().map(|&f| f.to_owned()).collect());
        assert_eq!(
            compile(description.clone()).fields(),
            expected,
            "{description}"
        );
    }
}

fn pairs() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        4 => prop::collection::btree_map("[ab\"\u{e9}]", "[1\n]?", 0..3).prop_map(|map| json!(map)),
    ]
}

fn metadata() -> impl Strategy<Value = Value> {
    (pairs(), pairs(), prop::option::of(0..3_i64), "[12]").prop_map(|(labels, annotations, generation, version)| {
        json!({"uid": "u", "labels": labels, "annotations": annotations, "generation": generation, "resourceVersion": version})
    })
}

proptest! {
    #[test]
    fn changes_are_what_a_tree_shows(old in metadata(), new in metadata()) {
        let (old_text, new_text) = (object(old.clone(), json!({})), object(new.clone(), json!({})));
        for field in ["labels", "annotations", "generation", "resourceVersion"] {
            let empty = |value: &Value| match value {
                Value::Object(map) if map.is_empty() => Value::Null,
                value => value.clone(),
            };
            let wakes = compile(json!({"changed": [field]})).wakes(Some(&old_text), Some(&new_text));
            let differs = empty(&old[field]) != empty(&new[field]);
            prop_assert_eq!(wakes, if differs { Wakes::Yes } else { Wakes::No }, "{}", field);
        }
    }
}
