//! Answers reviews as the reviewed object says, and describes itself as a test writes it into its
//! bytes (see `kit::description`).
//!
//! The annotation `vmhost.test/<webhook>` holds the answer as JSON: an object is the verdict, which
//! allows if it says nothing else. `"read": "x"` in it adds the warning that the ConfigMap `x` of
//! the same namespace has in `data.word`, and `"tell": true` one with the facts of the review. A
//! text says what to do instead:
//!
//! | Text | What it does |
//! |---|---|
//! | `trap`, `spin` | traps; never returns |
//! | `nothing`, `twice`, `event` | returns no verdict, two, or one and an Event |
//! | `retry`, `requeue` | returns a verdict, and that outcome |
//! | `invalid` | returns a verdict that is none |
//!
//! A conversion turns `spec.size` of v1 into `spec.kilobytes` of v2, and back. Of an object with
//! `spec.fail` it says why it cannot be converted. A turn of a controller logs the object's text as
//! `SAW {...}`.

use kit::vmhost::plugin::cluster;
use kit::vmhost::plugin::log::{Level, log};
use kit::{Effect, Guest, Gvk, Next, ObjectKey, Other, Outcome, Request, parse};
use serde_json::{Value, json};

struct Reviewer;

impl Guest for Reviewer {
    fn describe() -> Result<String, String> {
        Ok(kit::description())
    }

    fn reconcile(request: Request) -> Outcome {
        let object = parse(request.object.as_deref().unwrap_or_default());
        match (&*request.key.kind.kind, &*request.key.kind.group) {
            ("Admission", "vmhost") => admit(&request, &object),
            ("Conversion", "vmhost") => answer("conversion", convert(&object)),
            _ => {
                let text = request.object.as_deref().unwrap_or("nothing");
                log(Level::Info, &format!("SAW {text}"));
                kit::done()
            }
        }
    }

    kit::no_map!();
}

fn other(name: &str, body: Value) -> Effect {
    Effect::Other(Other {
        name: name.into(),
        body: body.to_string(),
    })
}

fn answer(name: &str, body: Value) -> Outcome {
    does(vec![other(name, body)], Next::AwaitChange)
}

fn does(effects: Vec<Effect>, next: Next) -> Outcome {
    Outcome { effects, next }
}

fn admit(request: &Request, review: &Value) -> Outcome {
    let object = match &review["object"] {
        Value::Null => &review["oldObject"],
        object => object,
    };
    let annotations = &object["metadata"]["annotations"];
    let order = &annotations[format!("vmhost.test/{}", request.controller)];
    let order = order.as_str().map(parse).unwrap_or_else(|| json!({}));
    let yes = || other("admission", json!({"allowed": true}));
    let reviewed = || kit::event("Reviewed", "Review", "told to");
    match order.as_str() {
        None => answer("admission", verdict(request, review, order)),
        Some("trap") => panic!("told to"),
        Some("spin") => loop {
            std::hint::black_box(());
        },
        Some("nothing") => kit::done(),
        Some("twice") => does(vec![yes(), yes()], Next::AwaitChange),
        Some("event") => does(vec![yes(), reviewed()], Next::AwaitChange),
        Some("retry") => does(vec![yes()], Next::Retry("told to".into())),
        Some("requeue") => does(vec![yes()], Next::Requeue),
        Some(_) => answer("admission", json!({"allowed": "maybe"})),
    }
}

/// The verdict of an order, without what is no part of a verdict.
fn verdict(request: &Request, review: &Value, mut order: Value) -> Value {
    let mut warnings: Vec<Value> = Vec::new();
    if let Some(fields) = order.as_object_mut() {
        if let Some(name) = fields.remove("read") {
            warnings.push(json!(read(request, name.as_str().unwrap_or_default())));
        }
        if fields.remove("tell").is_some() {
            warnings.push(json!(facts(review)));
        }
        fields.entry("allowed").or_insert(json!(true));
        if !warnings.is_empty() {
            fields.insert("warnings".into(), Value::Array(warnings));
        }
    }
    order
}

/// `data.word` of a ConfigMap in the cache.
fn read(request: &Request, name: &str) -> String {
    let key = ObjectKey {
        kind: Gvk {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
        },
        namespace: request.key.namespace.clone(),
        name: name.into(),
    };
    match cluster::get(&key) {
        Ok(Some(found)) => parse(&found)["data"]["word"]
            .as_str()
            .unwrap_or("no word")
            .to_owned(),
        Ok(None) => "not found".into(),
        Err(error) => format!("{error:?}"),
    }
}

/// `version=1 CREATE configmaps dryRun=false old=false`.
fn facts(review: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!(
        "version={} {} {} dryRun={} old={}",
        text(&parse(&kit::description())["version"]),
        text(&review["operation"]),
        text(&review["resource"]["resource"]),
        review["dryRun"] == true,
        review["oldObject"].is_object(),
    )
}

fn convert(review: &Value) -> Value {
    let desired = review["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = review["objects"].as_array().cloned().unwrap_or_default();
    let mut converted = Vec::new();
    for mut object in objects {
        if let Some(reason) = object["spec"]["fail"].as_str() {
            return json!({ "failed": reason });
        }
        object["apiVersion"] = json!(desired);
        if let Some(spec) = object["spec"].as_object_mut() {
            let (from, to) = match desired.ends_with("/v2") {
                true => ("size", "kilobytes"),
                false => ("kilobytes", "size"),
            };
            if let Some(size) = spec.remove(from) {
                spec.insert(to.into(), size);
            }
        }
        converted.push(object);
    }
    json!({ "convertedObjects": converted })
}

kit::export!(Reviewer with_types_in kit);
