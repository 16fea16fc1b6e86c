//! The conformance guest in Rust. `../../README.md` describes each case.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use vmhost_plugin::{
    Batch, Change, Description, Error, HttpError, HttpRequest, MapRequest, Next, ObjectName, Outcome, Patch, Policy, Request, Result, Review, Verdict,
};

mod describe;
mod effects;
mod reads;
mod reviews;

struct Conformance;

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    case: String,
    number: Value,
    huge: Value,
    text: String,
    empty: String,
    deep: Value,
}

/// How often the case `state` was called in this instance.
static CALLS: AtomicU32 = AtomicU32::new(0);

impl Policy for Conformance {
    fn describe() -> Description {
        describe::description()
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let spec = request.object::<Case>()?.map(|object| object.spec).unwrap_or_default();
        match spec.case.as_str() {
            "" | "echo" => answer(request, echo(request)),
            "effects" => effects::all(),
            "in-cluster" => effects::in_clusters(),
            "http" => answer(request, http()?),
            "get" => answer(request, reads::get()?),
            "get-many" => answer(request, reads::get_many()?),
            "list" => answer(request, reads::list()?),
            "live" => answer(request, reads::live()?),
            "read-errors" => answer(request, reads::errors()),
            "settings" => answer(request, reads::settings()),
            "log" => {
                log();
                answer(request, Value::Null)
            }
            "number" => answer(request, json!([spec.number, spec.huge])),
            "null" => answer(request, nulls(request)?),
            "text" => answer(request, json!([spec.text, spec.empty])),
            "deep" => answer(request, json!(depth(&spec.deep))),
            "size" => answer(request, json!(request.object.as_deref().unwrap_or_default().len())),
            "senses" => answer(request, senses()),
            "error" => Err(Error::new("broken on purpose")),
            "crash" => Ok(crash(request)),
            "memory" => Ok(take_memory()),
            "loop" => Ok(turn_round()),
            "state" => answer(request, json!(CALLS.fetch_add(1, Ordering::Relaxed))),
            other => Ok(next(other).unwrap_or_else(|| Outcome::fail(format!("unknown case {other}")))),
        }
    }

    fn map_changes(request: &MapRequest) -> Result<Vec<ObjectName>> {
        if request.controller != "cases" {
            return Err(Error::new(format!("cannot map {}", request.controller)));
        }
        request.changes.iter().map(name_of).collect()
    }

    fn admit(review: &Review) -> Result<Verdict> {
        reviews::admit(review)
    }

    fn convert(batch: Batch) -> Result<Vec<Value>> {
        reviews::convert(batch)
    }
}

vmhost_plugin::export!(Conformance);

fn answer(request: &Request, value: Value) -> Result<Outcome> {
    Ok(Outcome::await_change().with(Patch::merge(&request.key, &json!({ "answer": value }))?))
}

fn echo(request: &Request) -> Value {
    let kind = &request.key.kind;
    json!({
        "controller": request.controller,
        "key": {"group": kind.group, "version": kind.version, "kind": kind.kind, "namespace": request.key.namespace, "name": request.key.name},
        "object": request.object,
        "previous": request.previous,
        "deleting": request.deleting,
        "attempt": request.attempt,
        "last": request.last.as_ref().map(|last| json!({"effect": last.effect, "code": last.code, "reason": last.reason, "message": last.message})),
    })
}

fn next(case: &str) -> Option<Outcome> {
    Some(match case {
        "next-await-change" => Outcome::await_change(),
        "next-requeue-after" => Outcome::requeue_after_ms(u32::MAX),
        "next-requeue" => Outcome::requeue(),
        "next-retry" => Outcome::retry("later, \"please\""),
        "next-fail" => Outcome { effects: Vec::new(), next: Next::Fail("never: ☃".into()) },
        "next-finalized" => Outcome::finalized(),
        _ => return None,
    })
}

fn http() -> Result<Value> {
    let request = HttpRequest::post("http://api.example.com:8080/v1/machines").header("content-type", "application/json");
    let made = request.header("x-case", "http").body(r#"{"n":"☃"}"#).send()?;
    let error = HttpRequest::get("https://denied.example.com/").send().err().map(|error| match error {
        HttpError::Denied(_) => "denied",
        HttpError::Invalid(_) => "invalid",
        HttpError::NotSent(_) => "not-sent",
        HttpError::NoAnswer(_) => "no-answer",
        HttpError::TooLarge(_) => "too-large",
    });
    Ok(json!({"status": made.status(), "type": made.header("content-type"), "body": made.text(), "error": error}))
}

fn log() {
    let line = "one\ntwo ☃";
    vmhost_plugin::trace!("{line}");
    vmhost_plugin::debug!("{line}");
    vmhost_plugin::info!("{line}");
    vmhost_plugin::warn!("{line}");
    vmhost_plugin::error!("{line}");
    println!("printed");
}

/// Distinguishes null from missing, which an `Option` alone cannot.
fn nulls(request: &Request) -> Result<Value> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        spec: std::collections::BTreeMap<&'a str, &'a RawValue>,
    }
    let object: Object<'_> = serde_json::from_str(request.object.as_deref().unwrap_or_default())?;
    let word = |name| match object.spec.get(name) {
        None => "missing",
        Some(value) if value.get() == "null" => "null",
        Some(_) => "value",
    };
    Ok(json!([word("a"), word("b"), word("c")]))
}

fn senses() -> Value {
    let started = Instant::now();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let order: Vec<u32> = (0..20).collect::<HashSet<_>>().into_iter().collect();
    json!({"wall": wall.as_nanos() as u64, "order": order, "elapsed": started.elapsed().as_nanos() as u64})
}

fn depth(value: &Value) -> u32 {
    match value {
        Value::Array(items) => 1 + items.first().map_or(0, depth),
        _ => 0,
    }
}

fn crash(request: &Request) -> Outcome {
    let nothing: Vec<Outcome> = Vec::new();
    nothing[request.attempt as usize].clone()
}

fn take_memory() -> Outcome {
    let mut held = Vec::new();
    loop {
        held.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}

fn turn_round() -> Outcome {
    loop {
        std::hint::black_box(());
    }
}

fn name_of(change: &Change) -> Result<ObjectName> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        namespace: Option<String>,
        name: String,
    }
    let text = change.new.as_deref().or(change.old.as_deref()).unwrap_or_default();
    let Metadata { namespace, name } = serde_json::from_str::<Object>(text)?.metadata;
    Ok(ObjectName { namespace, name })
}
