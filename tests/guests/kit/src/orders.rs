//! A guest that follows orders in its object, so that a test needs no guest of its own for each
//! effect. The annotation `vmhost.test/turn` holds the outcome of its turns as JSON,
//! `vmhost.test/deleting` that of clean-up turns, and `vmhost.test/gone` that of turns in which the
//! object is gone (if the controller gets the previous object). The guest logs every turn as
//! `TURN {...}`, with the object's whole text if the object has the annotation `vmhost.test/echo`.
//!
//! ```json
//! { "effects": [{ "merge": { "spec": { "status": "complete" } } },
//!               { "json": [{ "op": "test", "path": "/spec/status", "value": "creating" }] },
//!               { "apply": { "apiVersion": "v1", "kind": "ConfigMap" },
//!                 "force": true, "createIfAbsent": true, "subresource": "status" },
//!               { "create": { "apiVersion": "v1", "kind": "ConfigMap" } },
//!               { "delete": { "version": "v1", "kind": "ConfigMap", "name": "x" } },
//!               { "event": { "reason": "Completed", "note": "done" } },
//!               { "other": "teleport", "body": { "to": "east" } }],
//!   "next": "await-change" | "requeue" | { "requeue-after-ms": 5 } | { "retry": "why" }
//!           | { "fail": "why" } | "finalized",
//!   "once": true, "trap": true }
//! ```
//! `merge`, `json` and `delete` concern that object unless a `key` beside them names another one.
//! With `once`, the order is followed on the first attempt only, and later attempts do nothing. The
//! number of the attempt replaces `$attempt` anywhere.

use serde_json::{Value, json};

use crate::vmhost::plugin::log::{Level, log};
use crate::{
    Apply, Create, Delete, Effect, Gvk, Next, ObjectKey, Other, Outcome, Patch, PatchType, Request,
    parse,
};

/// Runs one turn.
pub fn obey(request: &Request) -> Outcome {
    let object = parse(request.object.as_deref().unwrap_or_default());
    log(Level::Info, &format!("TURN {}", turn(request, &object)));
    let previous = parse(request.previous.as_deref().unwrap_or_default());
    let (ordering, annotation) = match request.object {
        None => (&previous, "/metadata/annotations/vmhost.test~1gone"),
        Some(_) if request.deleting => (&object, "/metadata/annotations/vmhost.test~1deleting"),
        Some(_) => (&object, "/metadata/annotations/vmhost.test~1turn"),
    };
    let orders = ordering.pointer(annotation).and_then(Value::as_str);
    // Allows an order to change something on every attempt.
    let orders = orders.map(|text| text.replace("$attempt", &request.attempt.to_string()));
    let orders: Value = match orders.as_deref().map(serde_json::from_str) {
        Some(Ok(orders)) => orders,
        Some(Err(error)) => return ends(Next::Fail(format!("vmhost.test/turn: {error}"))),
        None => return crate::done(),
    };
    if orders["trap"] == true {
        panic!("told to");
    }
    if orders["once"] == true && (request.attempt > 0 || request.last.is_some()) {
        return crate::done();
    }
    let effects = orders["effects"].as_array().into_iter().flatten();
    Outcome {
        effects: effects.map(|order| effect(request, order)).collect(),
        next: next(&orders["next"]),
    }
}

fn turn(request: &Request, object: &Value) -> Value {
    let last = request.last.as_ref();
    json!({
        "controller": request.controller,
        "name": request.key.name,
        "uid": object.pointer("/metadata/uid"),
        "resourceVersion": object.pointer("/metadata/resourceVersion"),
        "status": object.pointer("/spec/status"),
        "text": echoed(request, object),
        "gone": request.object.is_none(),
        "attempt": request.attempt,
        "deleting": request.deleting,
        "previous": request.previous.as_deref().map(version),
        "last": last.map(|last| json!({
            "effect": last.effect, "code": last.code, "reason": last.reason, "message": last.message,
        })),
    })
}

/// Returns the whole text that the host passed, for objects with the annotation.
fn echoed<'a>(request: &'a Request, object: &Value) -> Option<&'a str> {
    object.pointer("/metadata/annotations/vmhost.test~1echo")?;
    request.object.as_deref()
}

fn ends(next: Next) -> Outcome {
    Outcome {
        effects: Vec::new(),
        next,
    }
}

fn next(order: &Value) -> Next {
    let text = |name: &str| order[name].as_str().map(str::to_owned);
    if order == "finalized" {
        Next::Finalized
    } else if order == "requeue" {
        Next::Requeue
    } else if let Some(after) = order["requeue-after-ms"].as_u64() {
        Next::RequeueAfterMs(after as u32)
    } else if let Some(why) = text("retry") {
        Next::Retry(why)
    } else if let Some(why) = text("fail") {
        Next::Fail(why)
    } else {
        Next::AwaitChange
    }
}

fn effect(request: &Request, order: &Value) -> Effect {
    let text = |name: &str| order[name].as_str().map(str::to_owned);
    let patch = |type_, body: &Value| {
        Effect::Patch(Patch {
            key: key(request, &order["key"]),
            subresource: text("subresource"),
            type_,
            body: body.to_string(),
            if_version: text("ifVersion"),
        })
    };
    if order["merge"].is_object() {
        patch(PatchType::Merge, &order["merge"])
    } else if order["json"].is_array() {
        patch(PatchType::Json, &order["json"])
    } else if order["apply"].is_object() {
        Effect::Apply(Apply {
            object: order["apply"].to_string(),
            subresource: text("subresource"),
            force: order["force"] == true,
            create_if_absent: order["createIfAbsent"] == true,
            if_version: text("ifVersion"),
        })
    } else if order["create"].is_object() {
        Effect::Create(Create {
            object: order["create"].to_string(),
        })
    } else if order["delete"].is_object() {
        let (uid, if_version) = (text("uid"), text("ifVersion"));
        Effect::Delete(Delete {
            key: key(request, &order["delete"]),
            uid,
            if_version,
            propagation: None,
        })
    } else if order["event"].is_object() {
        let text = |name: &str| order["event"][name].as_str().unwrap_or_default();
        crate::event(text("reason"), text("action"), text("note"))
    } else {
        Effect::Other(Other {
            name: text("other").unwrap_or_else(|| order.to_string()),
            body: match &order["body"] {
                Value::Null => "{}".into(),
                body => body.to_string(),
            },
        })
    }
}

/// Returns the object's own key, or the one that the order names, by default in the object's
/// namespace.
fn key(request: &Request, order: &Value) -> ObjectKey {
    let text = |name: &str| order[name].as_str().map(str::to_owned);
    match text("kind") {
        None => request.key.clone(),
        Some(kind) => ObjectKey {
            kind: Gvk {
                group: text("group").unwrap_or_default(),
                version: text("version").unwrap_or_default(),
                kind,
            },
            namespace: text("namespace").or_else(|| request.key.namespace.clone()),
            name: text("name").unwrap_or_default(),
        },
    }
}

/// Returns `metadata.resourceVersion` of an object's text.
fn version(text: &str) -> Value {
    parse(text)["metadata"]["resourceVersion"].clone()
}
