//! Tests that a description of webhooks is read as Kubernetes' fields are, and that what is wrong
//! is named by its field.

use serde_json::{Value, json};

use super::*;
use crate::description::Description;

fn rule() -> Value {
    json!({
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        "operations": ["CREATE"],
    })
}

fn webhook() -> Value {
    json!({"name": "w", "type": "validating", "rules": [rule()]})
}

fn conversion() -> Value {
    json!({"name": "c", "group": "x.io", "kind": "Vm", "resource": "vms", "versions": ["v1", "v2"]})
}

/// A plugin that has these fields besides its name.
fn plugin(fields: Value) -> Result<Description, String> {
    let mut text = json!({"apiVersion": "vmhost/v1", "name": "p"});
    for (name, value) in fields.as_object().unwrap() {
        text[name] = value.clone();
    }
    Description::parse(&text.to_string()).map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        format!("{error} {}", source.unwrap_or_default())
    })
}

#[test]
fn a_plugin_may_only_answer_reviews() {
    let description = plugin(json!({"webhooks": [webhook()], "conversions": [conversion()]}));
    let description = description.unwrap();
    assert!(description.controllers.is_empty() && description.answers_reviews());
    let webhook = description.webhook("w").unwrap();
    assert_eq!(
        (
            webhook.timeout_seconds,
            webhook.failure_policy,
            webhook.side_effects
        ),
        (10, FailurePolicy::Fail, SideEffects::None)
    );
    assert_eq!(webhook.match_policy, MatchPolicy::Equivalent);
    assert_eq!(webhook.rules[0].scope, RuleScope::All);
    assert_eq!(
        description.conversion("c").unwrap().definition(),
        "vms.x.io"
    );
    let error = plugin(json!({})).unwrap_err();
    assert!(error.contains("a webhook or a conversion"), "{error}");
}

#[test]
fn what_is_wrong_is_named() {
    let with = |path: &str, value: Value| {
        let mut webhook = webhook();
        *webhook.pointer_mut(path).unwrap() = value;
        webhook
    };
    let added = |name: &str, value: Value| {
        let mut webhook = webhook();
        webhook[name] = value;
        webhook
    };
    let read = json!({"version": "v1", "kind": "ConfigMap"});
    for (webhook, names) in [
        (with("/name", json!("W")), "webhooks[0].name"),
        (with("/type", json!("both")), "unknown variant `both`"),
        (with("/rules", json!([])), "webhooks[0].rules"),
        (
            with("/rules/0/apiGroups", json!([])),
            "webhooks[0].rules[0].apiGroups",
        ),
        (
            with("/rules/0/apiGroups", json!(["*", "apps"])),
            "leave the others out",
        ),
        (
            with("/rules/0/resources", json!(["Pods"])),
            "webhooks[0].rules[0].resources",
        ),
        (
            with("/rules/0/resources", json!(["pods/"])),
            "webhooks[0].rules[0].resources",
        ),
        (
            with("/rules/0/operations", json!([])),
            "webhooks[0].rules[0].operations",
        ),
        (
            with("/rules/0/operations", json!(["*", "CREATE"])),
            "leave the others out",
        ),
        (
            with("/rules/0/operations", json!(["PATCH"])),
            "unknown variant `PATCH`",
        ),
        (
            added("timeoutSeconds", json!(31)),
            "webhooks[0].timeoutSeconds",
        ),
        (
            added("failurePolicy", json!("Deny")),
            "unknown variant `Deny`",
        ),
        (
            added("sideEffects", json!("Some")),
            "unknown variant `Some`",
        ),
        (
            added("reinvocationPolicy", json!("IfNeeded")),
            "webhooks[0].reinvocationPolicy",
        ),
        (
            added("namespaceSelector", json!({"labels": {}})),
            "unknown field `labels`",
        ),
        (
            added("objectSelector", json!({"matchLabels": {"a b": "c"}})),
            "webhooks[0].objectSelector.matchLabels.a b",
        ),
        (
            added(
                "objectSelector",
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            ),
            "webhooks[0].objectSelector.matchExpressions[0].values",
        ),
        (
            added("matchConditions", json!([{"name": "x", "expression": " "}])),
            "webhooks[0].matchConditions[0].expression",
        ),
        (added("reads", json!([read, read])), "webhooks[0].reads[1]"),
        (
            added(
                "reads",
                json!([{"version": "v1", "kind": "ConfigMap", "map": "name"}]),
            ),
            "webhooks[0].reads[0].map",
        ),
        (added("url", json!("https://x")), "unknown field `url`"),
    ] {
        let error = plugin(json!({"webhooks": [webhook]})).unwrap_err();
        assert!(error.contains(names), "{error} does not name {names}");
    }
}

#[test]
fn conversions_and_names_are_checked() {
    let with = |name: &str, value: Value| {
        let mut conversion = conversion();
        conversion[name] = value;
        json!({"conversions": [conversion]})
    };
    for (fields, names) in [
        (with("versions", json!(["v1"])), "conversions[0].versions"),
        (
            with("versions", json!(["v1", "v1"])),
            "conversions[0].versions[1]",
        ),
        (
            with("versions", json!(["v1", "2"])),
            "conversions[0].versions[1]",
        ),
        (with("group", json!("")), "conversions[0].group"),
        (with("kind", json!("vm")), "conversions[0].kind"),
        (
            with("resource", json!("vms/status")),
            "conversions[0].resource",
        ),
        (
            json!({"conversions": [conversion(), conversion()]}),
            "converts the same kind",
        ),
        (
            json!({"webhooks": [webhook(), webhook()]}),
            "webhooks[1].name",
        ),
        (
            json!({
                "controllers": [{"name": "w", "timer": {"once": true}}],
                "webhooks": [webhook()],
            }),
            "webhooks[0].name",
        ),
    ] {
        let error = plugin(fields).unwrap_err();
        assert!(error.contains(names), "{error} does not name {names}");
    }
}

/// The published schema and the types name the same fields.
#[test]
fn the_published_schema_has_every_field() {
    let schema: Value = serde_json::from_str(include_str!(
        "../../../../../wit/v1/description.schema.json"
    ))
    .unwrap();
    let mut full = webhook();
    let selector = json!({
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
    });
    let reads = json!([{"version": "v1", "kind": "ConfigMap"}]);
    full["type"] = json!("mutating");
    full["namespaceSelector"] = selector.clone();
    full["objectSelector"] = selector;
    full["matchConditions"] = json!([{"name": "x", "expression": "true"}]);
    full["reinvocationPolicy"] = json!("IfNeeded");
    full["reads"] = reads.clone();
    let mut converted = conversion();
    converted["reads"] = reads;
    let description = plugin(json!({"webhooks": [full], "conversions": [converted]})).unwrap();
    let value = serde_json::to_value(description).unwrap();
    let fields = |value: &Value| {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let (defs, webhook) = (&schema["$defs"], &value["webhooks"][0]);
    for (of, published) in [
        (webhook, &defs["webhook"]["properties"]),
        (&webhook["rules"][0], &defs["rule"]["properties"]),
        (&webhook["objectSelector"], &defs["selector"]["properties"]),
        (
            &webhook["objectSelector"]["matchExpressions"][0],
            &defs["selector"]["properties"]["matchExpressions"]["items"]["properties"],
        ),
        (
            &webhook["matchConditions"][0],
            &defs["webhook"]["properties"]["matchConditions"]["items"]["properties"],
        ),
        (&value["conversions"][0], &defs["conversion"]["properties"]),
    ] {
        assert_eq!(fields(of), fields(published));
    }
}

#[test]
fn a_selector_is_written_as_kubectl_does() {
    let selector: SelectorObject = serde_json::from_value(json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "env", "operator": "NotIn", "values": ["prod"]},
            {"key": "x.io/on", "operator": "Exists"},
            {"key": "legacy", "operator": "DoesNotExist"},
        ],
    }))
    .unwrap();
    let text = selector.to_string();
    assert_eq!(
        text,
        "app=web,tier in (a,b),env notin (prod),x.io/on,!legacy"
    );
    assert!(crate::LabelSelector::parse(&text).is_ok());
    assert_eq!(SelectorObject::default().to_string(), "");
}
