//! Tests that the rules find the sensitive values, and only these.

use serde_json::json;

use super::*;

fn rules(sensitive: &[&str]) -> Rules {
    let parsed = sensitive.iter().map(|text| text.parse().unwrap());
    Rules::new(parsed.collect())
}

/// The value, which is at this JSON pointer of an object, with `*` in place of each sensitive
/// scalar.
fn hidden(rules: &Rules, of: KindOf<'_>, at: &str, mut value: Value) -> Value {
    let at = path::pointer_steps(at);
    for place in rules.places(of) {
        place.each(&at, &mut value, &mut |scalar| *scalar = "*".into());
    }
    value
}

fn object(rules: &Rules, object: Value) -> Value {
    let copy = object.clone();
    hidden(rules, KindOf::value(&copy).unwrap(), "", object)
}

#[test]
fn secrets_and_the_last_apply_are_sensitive_without_a_flag() {
    let rules = rules(&[]);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "data": { "a": "eA==", "gone": null }, "stringData": { "b": ["x", { "y": 1 }] },
        "metadata": { "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{}", "other": "o",
        } },
    });
    assert_eq!(
        object(&rules, secret),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "data": { "a": "*", "gone": null }, "stringData": { "b": ["*", { "y": "*" }] },
            "metadata": { "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "*", "other": "o",
            } },
        })
    );
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "b" } });
    assert_eq!(object(&rules, map.clone()), map);
    let other = json!({ "apiVersion": "x.io/v1", "kind": "Secret", "data": { "a": "b" } });
    assert_eq!(object(&rules, other.clone()), other);
    assert!(rules.concern(&Gvk::new("", "v1", "Secret")));
    assert!(!rules.concern(&Gvk::new("", "v1", "ConfigMap")));
}

#[test]
fn a_kind_is_named_with_or_without_group_and_version() {
    let database = |group: &str| Gvk::new(group, "v1", "Database");
    for (text, anywhere, in_group, in_core) in [
        ("Database", true, true, true),
        ("database.example.com", false, true, false),
        ("Database.v2beta1.example.com", false, true, false),
        ("Database.v1", false, false, true),
        ("Database.vault.io", false, false, false),
    ] {
        let sensitive: Sensitive = text.parse().unwrap();
        assert_eq!(
            sensitive.is_of(&database("example.com")),
            in_group,
            "{text}"
        );
        assert_eq!(sensitive.is_of(&database("")), in_core, "{text}");
        let rules = rules(&[text]);
        assert_eq!(rules.concern(&database("other.org")), anywhere, "{text}");
        assert_eq!(rules.concern(&database("example.com")), in_group, "{text}");
        assert_eq!(rules.concern(&database("")), in_core, "{text}");
        assert!(!rules.concern(&Gvk::new("example.com", "v1", "Table")));
    }
}

#[test]
fn a_path_reaches_through_lists_and_takes_all_that_is_below() {
    let users = || json!({ "users": [{ "token": "t", "name": "n" }], "token": "x" });
    for path in ["spec.users[*].token", "spec.users.token"] {
        let rules = rules(&[&format!("Db.x.io={path}")]);
        let db = json!({ "apiVersion": "x.io/v1", "kind": "Db", "spec": users() });
        assert_eq!(
            object(&rules, db)["spec"],
            json!({ "users": [{ "token": "*", "name": "n" }], "token": "x" })
        );
        let of = KindOf::text("Db.v1.x.io");
        for (at, value, expected) in [
            ("/spec", users(), "users"),
            ("/spec/users/0/token", json!("t"), "*"),
            ("/spec/users/-", json!({ "token": "t" }), "token"),
            ("/spec/users/0/name", json!("n"), "n"),
            ("/spec/users/0/token/deep", json!("t"), "*"),
            ("/status/token", json!("s"), "s"),
        ] {
            let hidden = hidden(&rules, of, at, value);
            match expected {
                "users" => assert_eq!(hidden["users"][0]["token"], "*"),
                "token" => assert_eq!(hidden["token"], "*"),
                text => assert_eq!(hidden, text, "{at}"),
            }
        }
    }
}

#[test]
fn a_kind_without_a_path_is_sensitive_besides_its_names() {
    let rules = rules(&["Db"]);
    let db = json!({
        "apiVersion": "x.io/v1", "kind": "Db", "metadata": { "name": "a" },
        "spec": { "a": 1 }, "status": true,
    });
    let masked = object(&rules, db);
    assert_eq!(masked["spec"]["a"], "*");
    assert_eq!(masked["status"], "*");
    assert_eq!(masked["metadata"]["name"], "a");
    let of = KindOf::text("Db a");
    assert_eq!(hidden(&rules, of, "/spec/a", json!(1)), "*");
    assert_eq!(hidden(&rules, of, "/metadata/name", json!("a")), "a");
}

#[test]
fn a_value_that_cannot_be_parsed_is_refused_with_the_text_at_fault() {
    for (text, at_fault) in [
        ("", r#""""#),
        ("=spec", r#""""#),
        ("Secret/x", r#""Secret/x""#),
        ("Database..io", r#""""#),
        ("Database=", "in the path"),
        ("Database=spec.", "in the path"),
        ("Database=spec[0]", "[0]"),
    ] {
        let error = text.parse::<Sensitive>().unwrap_err();
        assert!(error.reason.contains(at_fault), "{error}");
        let start = format!("--sensitive {text:?} is not KIND");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}
