//! Tests that an answer is one effect and nothing else, and that nothing else is ever "allowed".

use serde_json::json;
use vmhost_core::{Event, EventType, Other};

use super::*;

fn description() -> Description {
    let webhook = |name: &str, kind: &str| {
        json!({"name": name, "type": kind, "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"],
        }]})
    };
    let text = json!({
        "apiVersion": "vmhost/v1",
        "name": "p",
        "webhooks": [webhook("validates", "validating"), webhook("mutates", "mutating")],
    });
    Description::parse(&text.to_string()).unwrap()
}

fn other(name: &str, body: &Value) -> Effect {
    Effect::Other(Other {
        name: name.to_owned(),
        body: body.to_string(),
    })
}

fn outcome(effects: Vec<Effect>, next: Next) -> Outcome {
    Outcome { effects, next }
}

fn admitted(webhook: &str, body: Value) -> Result<Verdict, Unanswered> {
    let effects = vec![other("admission", &body)];
    admission(&description(), webhook, outcome(effects, Next::AwaitChange))
}

#[test]
fn a_verdict_is_read_in_full() {
    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {}}]);
    let verdict = admitted(
        "mutates",
        json!({
            "allowed": true,
            "patch": patch,
            "warnings": ["soon gone"],
            "auditAnnotations": {"a": "b"},
        }),
    );
    let verdict = verdict.unwrap();
    assert!(verdict.allowed && verdict.status.is_none());
    assert_eq!(verdict.patch.map(Value::Array), Some(patch));
    assert_eq!(verdict.warnings, ["soon gone"]);
    assert_eq!(verdict.audit_annotations["a"], "b");
    let denied = json!({"allowed": false, "status": {"message": "no", "code": 418}});
    let verdict = admitted("validates", denied).unwrap();
    assert!(!verdict.allowed);
    assert_eq!(verdict.status.unwrap()["code"], 418);
    let empty = json!({"allowed": true, "patch": [], "status": null});
    assert_eq!(admitted("validates", empty).unwrap().patch, None);
}

#[test]
fn what_is_no_verdict_is_a_failure() {
    let yes = json!({"allowed": true});
    let event = || {
        Effect::Event(Event {
            kind: EventType::Normal,
            reason: "R".into(),
            action: "A".into(),
            note: "n".into(),
            related: None,
        })
    };
    let verdict = || other("admission", &yes);
    let done = Next::AwaitChange;
    for (outcome, says) in [
        (outcome(vec![], done.clone()), "it gave no answer"),
        (
            outcome(vec![verdict(), verdict()], done.clone()),
            "2 effects",
        ),
        (outcome(vec![verdict(), event()], done.clone()), "2 effects"),
        (outcome(vec![event()], done.clone()), "the effect `event`"),
        (
            outcome(vec![other("conversion", &yes)], done.clone()),
            "`other`",
        ),
        (
            outcome(vec![verdict()], Next::Retry("no cloud".into())),
            "no cloud",
        ),
        (
            outcome(vec![verdict()], Next::Fail("broken".into())),
            "broken",
        ),
        (outcome(vec![verdict()], Next::Requeue), "another turn"),
        (
            outcome(vec![verdict()], Next::RequeueAfterMs(5)),
            "another turn",
        ),
        (outcome(vec![verdict()], Next::Finalized), "another turn"),
    ] {
        let reason = match admission(&description(), "mutates", outcome) {
            Err(Unanswered::Failed(reason)) => reason,
            found => panic!("{found:?} is no failure"),
        };
        assert!(reason.contains(says), "{reason} does not say {says}");
    }
    for body in [
        json!({}),
        json!({"allowed": "true"}),
        json!({"allowed": true, "uid": "u"}),
        json!({"allowed": true, "status": "no"}),
        json!({"allowed": true, "auditAnnotations": {"a": 1}}),
        json!(true),
    ] {
        assert!(admitted("mutates", body.clone()).is_err(), "{body}");
    }
    let patch = json!({"allowed": true, "patch": [{"op": "remove", "path": "/a"}]});
    assert!(admitted("validates", patch.clone()).is_err());
    assert!(admitted("mutates", patch.clone()).is_ok());
    assert!(admitted("nothing", patch).is_err());
}

#[test]
fn a_conversion_returns_objects_or_says_why_not() {
    let converted = |body: Value| {
        let effects = vec![other("conversion", &body)];
        let outcome = outcome(effects, Next::AwaitChange);
        let converted = conversion(outcome)?;
        let texts = converted.iter().map(|object| object.get().to_owned());
        Ok::<Vec<String>, Unanswered>(texts.collect())
    };
    let objects = json!({"convertedObjects": [{"a": 1.0}, {}]});
    assert_eq!(converted(objects).unwrap(), ["{\"a\":1.0}", "{}"]);
    let error = converted(json!({"failed": "no such disk"})).unwrap_err();
    assert_eq!(error, Unanswered::Failed("no such disk".to_owned()));
    for body in [
        json!({}),
        json!({"convertedObjects": [], "failed": "both"}),
        json!({"convertedObjects": {}}),
    ] {
        assert!(converted(body.clone()).is_err(), "{body}");
    }
}
