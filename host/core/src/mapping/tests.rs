use super::*;
use serde_json::{Value, json};

fn app() -> Gvk {
    Gvk::new("example.com", "v1", "App")
}

fn mapping(by: Value) -> Mapping {
    let by: MapBy = serde_json::from_value(by).unwrap();
    Mapping::compile(&by, &app()).unwrap().unwrap()
}

/// The names that a mapping finds in an object with this namespace (empty for none) and name.
fn names(by: Value, object: &Value, (namespace, name): (&str, &str), scope: Scope) -> Vec<String> {
    let name = ObjectName::new(Some(namespace), name);
    let object = object.to_string();
    let found = mapping(by).names(&object, &name, scope);
    found.iter().map(|named| named.name.to_string()).collect()
}

fn owner(api_version: &str, kind: &str, name: &str, controller: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": controller})
}

#[test]
fn it_is_written_as_a_word_or_an_object() {
    for (by, compiles) in [
        (json!("name"), true),
        (json!("owner"), true),
        (json!("controller"), true),
        (json!({"label": "example.com/parent"}), true),
        (json!({"field": "spec.refs[*].name"}), true),
        (json!("guest"), false),
        (json!({"index": "byName"}), false),
    ] {
        let read: MapBy = serde_json::from_value(by.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), by);
        assert_eq!(
            Mapping::compile(&read, &app()).unwrap().is_some(),
            compiles,
            "{by}"
        );
    }
    for bad in [
        json!("names"),
        json!({"label": 1}),
        json!({"label": "a", "field": "b"}),
        json!("label"),
    ] {
        assert!(serde_json::from_value::<MapBy>(bad).is_err());
    }
}

#[test]
fn nonsense_is_named() {
    for (by, names) in [
        (
            MapBy::Label("a b".into()),
            "map: \"a b\" is not a label key",
        ),
        (
            MapBy::Field("spec..x".into()),
            "map: \"spec..x\" is not a path",
        ),
    ] {
        let error = Mapping::compile(&by, &app()).unwrap_err().to_string();
        assert!(error.starts_with(names), "{error}");
    }
}

#[test]
fn the_same_name() {
    let none = json!({});
    let find = |at, scope| names(json!("name"), &none, at, scope);
    assert_eq!(find(("ns", "a"), Scope::Namespaced), ["ns/a"]);
    assert_eq!(find(("ns", "a"), Scope::Cluster), ["a"]);
    assert_eq!(find(("", "a"), Scope::Cluster), ["a"]);
    assert!(find(("", "a"), Scope::Namespaced).is_empty());
}

#[test]
fn owners_are_those_of_the_primary_kind() {
    let object = json!({"metadata": {"ownerReferences": [
        owner("example.com/v1", "App", "one", json!(null)),
        owner("example.com/v2beta1", "App", "two", json!(true)),
        owner("other.com/v1", "App", "other-group", json!(false)),
        owner("v1", "App", "core-group", json!(false)),
        owner("example.com/v1", "Apps", "other-kind", json!(false)),
        owner("example.com/v1", "App", "one", json!(false)),
        owner("example.com/v1", "App", "a/b", json!(false)),
        owner("example.com/v1", "App", "", json!(false)),
    ]}});
    let find = |by: &str, at, scope| names(json!(by), &object, at, scope);
    assert_eq!(
        find("owner", ("ns", "x"), Scope::Namespaced),
        ["ns/one", "ns/two"]
    );
    assert_eq!(find("owner", ("ns", "x"), Scope::Cluster), ["one", "two"]);
    assert_eq!(find("owner", ("", "x"), Scope::Cluster), ["one", "two"]);
    assert!(find("owner", ("", "x"), Scope::Namespaced).is_empty());
    assert_eq!(
        find("controller", ("ns", "x"), Scope::Namespaced),
        ["ns/two"]
    );

    let foreign = json!({"metadata": {"ownerReferences": [
        owner("apps/v1", "App", "same-name", json!(true)), owner("example.com/v1", "App", "one", json!(null))]}});
    let find = |by: &str| names(json!(by), &foreign, ("ns", "x"), Scope::Namespaced);
    assert!(
        find("controller").is_empty(),
        "another kind of the same name"
    );
    assert_eq!(find("owner"), ["ns/one"]);
}

#[test]
fn an_owner_is_named_with_its_uid() {
    let reference = |uid: &str| json!({"apiVersion": "example.com/v1", "kind": "App", "name": "a", "uid": uid, "controller": true});
    let object = json!({"metadata": {
        "labels": {"parent": "a"},
        "ownerReferences": [reference("first"), reference("second"), reference("first")],
    }});
    let object = object.to_string();
    let uids = |by: Value| {
        let name = ObjectName::new(Some("ns"), "x");
        let found = mapping(by).names(&object, &name, Scope::Namespaced);
        let uids = found.iter().map(|named| named.uid.as_deref());
        uids.map(|uid| uid.unwrap_or("any").to_owned())
            .collect::<Vec<_>>()
    };
    for by in ["owner", "controller"] {
        assert_eq!(uids(json!(by)), ["first", "second"], "{by}");
    }
    assert_eq!(uids(json!({"label": "parent"})), ["any"]);
}

#[test]
fn a_primary_of_the_core_group_has_no_slash_in_its_version() {
    let primary = Gvk::new("", "v1", "ConfigMap");
    let owners = Mapping::compile(&MapBy::Owner, &primary).unwrap().unwrap();
    let object = json!({"metadata": {"ownerReferences": [
        owner("v1", "ConfigMap", "core", json!(null)), owner("x.io/v1", "ConfigMap", "foreign", json!(null))]}});
    let object = object.to_string();
    let found = owners.names(
        &object,
        &ObjectName::new(Some("ns"), "x"),
        Scope::Namespaced,
    );
    let name = ObjectName::new(Some("ns"), "core");
    let uid = Some("u".into());
    assert_eq!(found, [NamedPrimary { name, uid }]);
}

#[test]
fn a_label_names_the_primary() {
    let find = |value: Value, scope| {
        let object = json!({"metadata": {"labels": {"example.com/parent": value, "b": "c"}}});
        names(
            json!({"label": "example.com/parent"}),
            &object,
            ("ns", "x"),
            scope,
        )
    };
    assert_eq!(find(json!("a"), Scope::Namespaced), ["ns/a"]);
    assert_eq!(find(json!("a"), Scope::Cluster), ["a"]);
    for bad in [
        json!(""),
        json!("a/b"),
        json!("."),
        json!("a b"),
        json!(null),
        json!(1),
    ] {
        assert!(find(bad.clone(), Scope::Namespaced).is_empty(), "{bad}");
    }
    assert!(
        names(
            json!({"label": "a"}),
            &json!({}),
            ("ns", "x"),
            Scope::Namespaced
        )
        .is_empty()
    );
}

#[test]
fn a_field_names_primaries() {
    let object = json!({"spec": {"refs": [{"n": "a"}, {"n": "other/b"}, {"n": "a"}, {"n": 7}, {"n": ""}, {"n": "-x/b"}, {"n": "ns/"}, {"n": "/a"},
        {"n": "a/b/c"}, {"n": "x".repeat(254)}, {"n": "tab\t"}, {"n": null}, {}]}});
    let by = json!({"field": "spec.refs[*].n"});
    let find = |at, scope| names(by.clone(), &object, at, scope);
    assert_eq!(
        find(("ns", "x"), Scope::Namespaced),
        ["ns/a", "other/b", "ns/7"]
    );
    assert_eq!(find(("", "x"), Scope::Namespaced), ["other/b"]);
    assert_eq!(find(("ns", "x"), Scope::Cluster), ["a", "7"]);
    assert_eq!(mapping(by.clone()).field().as_deref(), Some("spec.refs"));
    assert_eq!(mapping(json!("owner")).field(), None);
}

#[test]
fn what_is_no_object_names_nothing() {
    for by in [
        json!("owner"),
        json!("controller"),
        json!({"label": "a"}),
        json!({"field": "a[*]"}),
    ] {
        for text in ["", "{", "[]", r#"{"metadata":{"ownerReferences":{}}}"#] {
            let found = mapping(by.clone()).names(
                text,
                &ObjectName::new(Some("ns"), "x"),
                Scope::Namespaced,
            );
            assert!(found.is_empty(), "{by} {text}");
        }
    }
}

#[test]
fn a_cycle_of_owners_is_one_step_each() {
    let of = |name: &str| json!({"metadata": {"ownerReferences": [owner("example.com/v1", "App", name, json!(true))]}});
    for by in ["owner", "controller"] {
        assert_eq!(
            names(json!(by), &of("b"), ("ns", "a"), Scope::Namespaced),
            ["ns/b"]
        );
        assert_eq!(
            names(json!(by), &of("a"), ("ns", "b"), Scope::Namespaced),
            ["ns/a"]
        );
        assert_eq!(
            names(json!(by), &of("a"), ("ns", "a"), Scope::Namespaced),
            ["ns/a"]
        );
    }
}

#[test]
fn ten_thousand_owners_are_each_named_once() {
    let owners: Vec<Value> = (0..20_000)
        .map(|n| {
            owner(
                "example.com/v1",
                "App",
                &format!("app-{}", n % 10_000),
                json!(null),
            )
        })
        .collect();
    let found = names(
        json!("owner"),
        &json!({"metadata": {"ownerReferences": owners}}),
        ("ns", "x"),
        Scope::Namespaced,
    );
    assert_eq!(found.len(), 10_000);
    assert_eq!((&*found[0], &*found[9_999]), ("ns/app-0", "ns/app-9999"));
}
