//! Tests that written forms can be read, and that an expectation has one meaning.

use serde_json::json;
use vmhost_core::{Apply, Create, Delete, Effect, Event, Gvk, ObjectKey, ObjectName, Other, Patch};

use super::*;

fn settled(text: &str) -> Result<Expectation, &'static str> {
    serde_json::from_str::<Expectation>(text).unwrap().settle()
}

fn in_cluster(body: &str) -> Effect {
    Effect::Other(Other {
        name: "in-cluster".into(),
        body: body.into(),
    })
}

#[test]
fn an_effect_for_a_named_cluster_has_one_meaning() {
    let key = r#"{"apiVersion":"v1","kind":"Pod","name":"x"}"#;
    let written = |text: String| EffectForm::from(&in_cluster(&text));
    let plain = format!(
        r#"{{"cluster":null,"effect":{{"patch":{{"key":{key},"type":"merge","body":{{"a":2.0}}}}}}}}"#
    );
    let wanted = json!({ "other": { "name": "in-cluster", "body": {
        "cluster": null,
        "effect": { "patch": {
            "key": { "apiVersion": "v1", "kind": "Pod", "name": "x" },
            "type": "merge", "body": { "a": 2 },
        } },
    } } });
    assert_eq!(serde_json::to_value(written(plain)).unwrap(), wanted);
    // What is left out is as good as false.
    let apply = r#"{"cluster":"a","effect":{"apply":{"object":{}}}}"#;
    let whole = r#"{"effect":{"apply":{"force":false,"object":{}}},"cluster":"a"}"#;
    assert_eq!(written(apply.into()), written(whole.into()));
    // Without a cluster it is no effect for a named cluster.
    let homeless = written(apply.replace(r#""cluster":"a","#, ""));
    let text = json!({ "other": { "name": "in-cluster", "body": {
        "effect": { "apply": { "object": {} } },
    } } });
    assert_eq!(serde_json::to_value(homeless).unwrap(), text);
}

#[test]
fn a_body_is_json_and_its_numbers_are_numbers() {
    let effect = Effect::Patch(Patch {
        key: ObjectKey {
            kind: Gvk::new("apps", "v1", "Deployment"),
            name: ObjectName::new(Some("a"), "x"),
        },
        subresource: Some("status".into()),
        kind: PatchType::Merge,
        body: r#"{"b":2.0,"a":[1e3,0.5]}"#.into(),
        if_version: None,
    });
    let written = serde_json::to_value(EffectForm::from(&effect)).unwrap();
    let wanted = json!({ "patch": {
        "key": { "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "a", "name": "x" },
        "subresource": "status", "type": "merge", "body": { "a": [1000, 0.5], "b": 2 },
    } });
    assert_eq!(written, wanted);
    let expected = settled(&json!({ "effects": [wanted], "next": "awaitChange" }).to_string());
    assert_eq!(
        expected.unwrap().effects.unwrap(),
        [EffectForm::from(&effect)]
    );
}

#[test]
fn every_effect_is_read_as_it_is_written() {
    let key = ObjectKey {
        kind: Gvk::new("", "v1", "Pod"),
        name: ObjectName::new(None, "x"),
    };
    let object = r#"{"kind":"Pod"}"#.to_owned();
    for effect in [
        Effect::Apply(Apply {
            object: object.clone(),
            subresource: None,
            force: true,
            create_if_absent: false,
            if_version: Some("7".into()),
        }),
        Effect::Create(Create { object }),
        Effect::Delete(Delete {
            key: key.clone(),
            uid: Some("u".into()),
            if_version: None,
            propagation: Some(Propagation::Orphan),
        }),
        Effect::Event(Event {
            kind: EventType::Warning,
            reason: "Odd".into(),
            action: String::new(),
            note: "odd".into(),
            related: Some(key),
        }),
        Effect::Other(Other {
            name: "teleport".into(),
            body: "{}".into(),
        }),
        in_cluster(r#"{"cluster":"east","effect":{"create":{"object":{"kind":"Pod"}}}}"#),
        in_cluster("no JSON"),
    ] {
        let form = EffectForm::from(&effect);
        let text = serde_json::to_string(&form).unwrap();
        assert_eq!(serde_json::from_str::<EffectForm>(&text).unwrap(), form);
    }
}

#[test]
fn an_expectation_says_one_thing() {
    for good in [
        r#"{"next":"finalized"}"#,
        r#"{"effects":[],"next":{"requeueAfterMs":5},"logs":[]}"#,
        r#"{"keys":[{"name":"x"}]}"#,
        r#"{"error":"trapped","logs":[]}"#,
        r#"{"allowed":false,"status":{"code":403}}"#,
        r#"{"allowed":true,"patch":[],"warnings":["w"],"auditAnnotations":{}}"#,
        r#"{"objects":[]}"#,
    ] {
        assert!(settled(good).is_ok(), "{good}");
    }
    for (bad, says) in [
        ("{}", "next is missing"),
        (r#"{"effects":[]}"#, "next is missing"),
        (r#"{"next":"requeue","error":"x"}"#, "only one of"),
        (r#"{"effects":[],"keys":[]}"#, "only one of"),
        (r#"{"allowed":true,"objects":[]}"#, "only one of"),
        (r#"{"next":"requeue","patch":[]}"#, "allowed is missing"),
    ] {
        assert!(settled(bad).unwrap_err().contains(says), "{bad}");
    }
}
