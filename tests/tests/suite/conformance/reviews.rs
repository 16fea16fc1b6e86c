//! Reviews on the guest of each language: verdicts, patches, conversions, and failures that are no
//! verdict.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use vmhost_core::description::{admission_kind, conversion_kind};
use vmhost_core::{Effect, Gvk, Next, Object, ObjectName, Outcome, Request, Trace};

use super::{Guest, same};

/// A number that a double does not hold.
const EXACT: i64 = 9_007_199_254_740_993;

/// Checks all cases of the page's section about reviews.
pub(super) async fn check(
    guest: &Guest,
    results: &mut Vec<(&'static str, &'static str)>,
) -> Result<()> {
    for (case, webhook, request, wanted) in admissions() {
        let outcome = ask(guest, webhook, admission_kind(), &request).await;
        let told = outcome.and_then(|outcome| answer(&outcome, "admission"));
        let checked = told.and_then(|told| same(told, wanted));
        checked.with_context(|| format!("review {case}"))?;
        results.push((case, "yes"));
    }
    let failing = request(json!({"case": "error"}));
    let outcome = ask(guest, "guard", admission_kind(), &failing).await?;
    ensure!(
        outcome.effects.is_empty()
            && matches!(&outcome.next, Next::Retry(text) if text.contains("broken on purpose")),
        "review error: {outcome:?}"
    );
    results.push(("review error", "yes"));
    check_conversions(guest, results).await
}

/// Returns the case, the webhook, the request, and the wanted answer.
fn admissions() -> Vec<(&'static str, &'static str, Value, Value)> {
    let allowed = |name: &str, value: Value| json!({"allowed": true, name: value});
    let denied = |message: &str, reason: &str, code: u16| json!({"allowed": false, "status": {"message": message, "reason": reason, "code": code}});
    let of = |case: &str| request(json!({"case": case}));
    let mut careful = allowed("warnings", json!(["careful: ☃"]));
    careful["auditAnnotations"] = json!({"user": "jane"});
    let mut deletion = request(json!({}));
    deletion["operation"] = json!("DELETE");
    deletion["oldObject"] = object("v1", json!({"case": "delete"}));
    deletion["object"] = Value::Null;
    let told = [
        "u-9", "UPDATE", "Case", "cases", "status", "x", "default", "dry run",
    ];
    let spec = json!({"case": "mutate", "number": EXACT, "list": [1, 2, 3], "old": 1, "text": "a"});
    let patch = json!([
        {"op": "add", "path": "/spec/a~1b~0c", "value": {"x": null}},
        {"op": "add", "path": "/spec/list/1", "value": 9},
        {"op": "remove", "path": "/spec/old"},
        {"op": "replace", "path": "/spec/text", "value": "b"},
    ]);
    let operations = json!([
        {"op": "add", "path": "/spec/a", "value": 1},
        {"op": "remove", "path": "/spec/b"},
    ]);
    let unchanged = json!({"case": "same", "float": 1.5, "number": EXACT, "null": null, "☃": []});
    vec![
        ("allow", "guard", of("allow"), careful),
        (
            "deny",
            "guard",
            of("deny"),
            denied("no: ☃", "Forbidden", 403),
        ),
        (
            "deny-as",
            "guard",
            of("deny-as"),
            denied("taken", "Conflict", 409),
        ),
        (
            "delete",
            "guard",
            deletion,
            allowed("warnings", json!(["deleted"])),
        ),
        (
            "review",
            "guard",
            of("review"),
            allowed("warnings", json!(told)),
        ),
        (
            "operations",
            "defaults",
            of("operations"),
            allowed("patch", operations),
        ),
        ("mutate", "defaults", request(spec), allowed("patch", patch)),
        (
            "same",
            "defaults",
            request(unchanged),
            json!({"allowed": true}),
        ),
    ]
}

async fn check_conversions(
    guest: &Guest,
    results: &mut Vec<(&'static str, &'static str)>,
) -> Result<()> {
    let old = |value: &str| object("v1", json!({"case": value, "number": EXACT}));
    let new = |value: &str| object("v2", json!({"name": value, "number": EXACT}));
    let objects = json!([old("one"), new("two"), old("three")]);
    for (version, wanted) in [
        ("v2", json!([new("one"), new("two"), new("three")])),
        ("v1", json!([old("one"), old("two"), old("three")])),
    ] {
        let told = convert(guest, version, &objects).await?;
        same(told, json!({"convertedObjects": wanted})).context("convert")?;
    }
    let nothing = convert(guest, "v2", &json!([])).await?;
    same(nothing, json!({"convertedObjects": []})).context("convert")?;
    results.push(("convert", "yes"));
    let told = convert(guest, "v2", &json!([old("one"), old("bad")])).await?;
    let text = told["failed"].as_str().unwrap_or_default();
    ensure!(
        text.ends_with("bad on purpose") && told["convertedObjects"].is_null(),
        "convert error: {told}"
    );
    results.push(("convert error", "yes"));
    Ok(())
}

async fn convert(guest: &Guest, version: &str, objects: &Value) -> Result<Value> {
    let desired = format!("conformance.vmhost.dev/{version}");
    let batch = json!({"desiredAPIVersion": desired, "objects": objects});
    let outcome = ask(guest, "convert", conversion_kind(), &batch).await?;
    answer(&outcome, "conversion")
}

async fn ask(guest: &Guest, name: &str, kind: Gvk, about: &Value) -> Result<Outcome> {
    let key = ObjectName::new(None, "u-9");
    let request = Request {
        controller: name,
        kind: &kind,
        name: &key,
        object: Some(Object::with_text(key.clone(), "", 0, &about.to_string())),
        previous: None,
        deleting: false,
        attempt: 0,
        last: None,
    };
    let reader = Arc::new(guest.reader.clone());
    let trace = &mut Trace::default();
    Ok(guest.plugin.call(&request, reader, trace, || ()).await?)
}

/// Returns the body of the only effect, which must have this name.
fn answer(outcome: &Outcome, name: &str) -> Result<Value> {
    match (outcome.effects.as_slice(), &outcome.next) {
        ([Effect::Other(other)], Next::AwaitChange) if other.name == name => {
            serde_json::from_str(&other.body).with_context(|| other.body.clone())
        }
        _ => bail!("not an answer: {outcome:?}"),
    }
}

/// Returns a request to update a Case to this spec.
fn request(spec: Value) -> Value {
    let group = "conformance.vmhost.dev";
    json!({
        "uid": "u-9",
        "kind": {"group": group, "version": "v1", "kind": "Case"},
        "resource": {"group": group, "version": "v1", "resource": "cases"},
        "subResource": "status",
        "requestKind": {"group": group, "version": "v1", "kind": "Case"},
        "name": "x",
        "namespace": "default",
        "operation": "UPDATE",
        "userInfo": {"username": "jane", "uid": "u-1", "groups": ["system:authenticated"], "extra": {"a": ["b"]}},
        "object": object("v1", spec),
        "oldObject": object("v1", json!({})),
        "dryRun": true,
        "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
    })
}

fn object(version: &str, spec: Value) -> Value {
    let api_version = format!("conformance.vmhost.dev/{version}");
    let metadata = json!({"name": "x", "namespace": "default", "uid": "u-9"});
    json!({"apiVersion": api_version, "kind": "Case", "metadata": metadata, "spec": spec})
}
