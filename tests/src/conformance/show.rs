//! Converts an outcome to JSON for comparison.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use vmhost_core::{Effect, Next, ObjectKey, Other, Outcome, PatchType};

/// Returns the effects and `next`. JSON from the guest is parsed, because spaces and the order of
/// members depend on the language.
pub fn outcome(outcome: &Outcome) -> Result<Value> {
    let effects: Vec<Value> = outcome.effects.iter().map(effect).collect::<Result<_>>()?;
    Ok(json!({"effects": effects, "next": next(&outcome.next)}))
}

/// Returns the body of an outcome that is a single merge patch.
pub fn parse_body(outcome: &Outcome) -> Result<&str> {
    match (&outcome.effects[..], &outcome.next) {
        ([Effect::Patch(patch)], Next::AwaitChange)
            if patch.kind == PatchType::Merge
                && patch.subresource.is_none()
                && patch.if_version.is_none() =>
        {
            Ok(&patch.body)
        }
        _ => bail!("not an answer: {outcome:?}"),
    }
}

fn next(next: &Next) -> Value {
    match next {
        Next::AwaitChange => json!("await-change"),
        Next::RequeueAfterMs(ms) => json!({"requeue-after-ms": ms}),
        Next::Requeue => json!("requeue"),
        Next::Retry(text) => json!({"retry": text}),
        Next::Fail(text) => json!({"fail": text}),
        Next::Finalized => json!("finalized"),
    }
}

fn effect(effect: &Effect) -> Result<Value> {
    let parse = |text: &str| {
        serde_json::from_str::<Value>(text).with_context(|| format!("{text} is not JSON"))
    };
    Ok(match effect {
        Effect::Apply(apply) => json!({"apply": {
            "object": parse(&apply.object)?,
            "subresource": apply.subresource,
            "force": apply.force,
            "create-if-absent": apply.create_if_absent,
            "if-version": apply.if_version,
        }}),
        Effect::Patch(patch) => json!({"patch": {
            "key": key(&patch.key),
            "subresource": patch.subresource,
            "type": match patch.kind { PatchType::Merge => "merge", PatchType::Json => "json" },
            "body": parse(&patch.body)?,
            "if-version": patch.if_version,
        }}),
        Effect::Create(create) => json!({"create": parse(&create.object)?}),
        Effect::Delete(delete) => json!({"delete": {
            "key": key(&delete.key),
            "uid": delete.uid,
            "if-version": delete.if_version,
            "propagation": delete.propagation.map(|propagation| propagation.as_str()),
        }}),
        Effect::Event(event) => json!({"event": {
            "type": event.kind.as_str(),
            "reason": event.reason,
            "action": event.action,
            "note": event.note,
            "related": event.related.as_ref().map(key),
        }}),
        // The form of what is written in another cluster, without what it leaves out.
        Effect::Other(other) if other.name == Other::IN_CLUSTER => {
            let body = parse(&other.body)?;
            let mut shown = without_nulls(body.clone());
            // Left out, it would be no name of a cluster.
            if let Some(cluster) = body.get("cluster") {
                shown["cluster"] = cluster.clone();
            }
            json!({"other": other.name, "body": shown})
        }
        Effect::Other(other) => json!({"other": other.name}),
    })
}

/// Returns a value without the members that are null; each SDK decides whether it writes these.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let given = members.into_iter().filter(|(_, value)| !value.is_null());
            let given = given.map(|(name, value)| (name, without_nulls(value)));
            Value::Object(given.collect())
        }
        value => value,
    }
}

fn key(key: &ObjectKey) -> Value {
    json!([key.kind.to_string(), key.name.namespace(), key.name.name()])
}
