//! Runs `tests/cases/apply.json` against a minimal server. Its `about` describes the format.

use serde_json::{Value, json};
use vmhost_schema::Schema;

use super::LATER;
use crate::*;

const TABLE: &str = include_str!("../../../../../tests/cases/apply.json");

/// A minimal server for the table: one object of one kind.
struct Server {
    schema: Schema,
    name: String,
    object: Option<Value>,
}

/// The HTTP status, and the object or a `Status`.
type Answer = (u64, Value);

fn refusal(code: u64, message: impl ToString) -> Answer {
    (code, json!({ "message": message.to_string() }))
}

impl Server {
    fn named(&self, body: &Value) -> Value {
        let over = |mut out: Value, body: &Value| {
            for (name, value) in body.as_object().into_iter().flatten() {
                out[name.as_str()] = value.clone();
            }
            out
        };
        let metadata = over(
            json!({"name": self.name, "namespace": "default"}),
            &body["metadata"],
        );
        let mut out = over(
            json!({"apiVersion": "cases.vmhost.dev/v1", "kind": "Widget"}),
            body,
        );
        out["metadata"] = metadata;
        out
    }

    fn run(&mut self, step: &Value) -> Answer {
        let status = step["subresource"] == "status";
        let Some(name) = step["manager"].as_str() else {
            return refusal(422, "fieldManager is required");
        };
        let manager = Manager {
            name,
            api_version: "cases.vmhost.dev/v1",
            subresource: if status { "status" } else { "" },
            reset: if status { RESET_STATUS } else { RESET_MAIN },
            empty: None,
        };
        let body = &step["body"];
        let verb = step["verb"].as_str().unwrap();
        let mut new = match (verb, &self.object) {
            ("apply", live) => {
                let applied = self.named(body);
                if live.is_none() && status {
                    return refusal(404, "not found");
                }
                if live.is_none() && applied["metadata"].get("uid").is_some() {
                    return refusal(409, "uid mismatch");
                }
                let force = step["force"] == true;
                match apply(
                    Some(&self.schema),
                    live.as_ref(),
                    &applied,
                    &manager,
                    force,
                    LATER,
                ) {
                    Ok(new) => new,
                    Err(ApplyError::Conflict(conflicts)) => {
                        let causes: Vec<Value> = conflicts
                            .iter()
                            .map(|c| json!({"reason": "FieldManagerConflict", "message": c.message, "field": c.field}))
                            .collect();
                        return (409, json!({"details": {"causes": causes}}));
                    }
                    Err(error @ ApplyError::Undeclared(_)) => return refusal(500, error),
                    Err(error @ ApplyError::Invalid(_)) => return refusal(400, error),
                }
            }
            ("create", _) => self.named(body),
            ("put" | "merge-patch", Some(live)) => {
                let mut new = live.clone();
                json_merge(&mut new, body);
                new
            }
            ("json-patch", Some(live)) => json_patch(live, body),
            other => panic!("{other:?}"),
        };
        if verb != "apply" {
            self.schema.prune(&mut new);
        }
        self.schema.apply_defaults(&mut new);
        let causes: Vec<Value> = self
            .schema
            .validate(&new)
            .iter()
            .map(|c| json!({"reason": c.reason.name(), "message": c.message, "field": c.field}))
            .collect();
        if !causes.is_empty() {
            return (422, json!({"details": {"causes": causes}}));
        }
        self.put_back(&mut new, status);
        if verb != "apply" {
            track_update(
                Some(&self.schema),
                self.object.as_ref(),
                &mut new,
                &manager,
                LATER,
            );
        }
        self.store(new)
    }

    /// Restores the fields that the endpoint cannot write, as for a kind with a status subresource.
    fn put_back(&self, new: &mut Value, status: bool) {
        let live = self.object.clone().unwrap_or(json!({}));
        let list = new["metadata"]["managedFields"].take();
        if status {
            let kept = new["status"].take();
            *new = live;
            set(new, "status", kept);
        } else {
            set(new, "status", live["status"].clone());
        }
        set(&mut new["metadata"], "managedFields", list);
    }

    fn store(&mut self, mut new: Value) -> Answer {
        let code = if self.object.is_none() { 201 } else { 200 };
        match &self.object {
            None => {
                new["metadata"]["uid"] = json!("u");
                new["metadata"]["resourceVersion"] = json!("1");
            }
            Some(live) => {
                keep_times(live, &mut new);
                if *live != new {
                    let version: u64 = live["metadata"]["resourceVersion"]
                        .as_str()
                        .unwrap()
                        .parse()
                        .unwrap();
                    new["metadata"]["resourceVersion"] = json!((version + 1).to_string());
                }
            }
        }
        self.object = Some(new.clone());
        (code, new)
    }
}

fn set(object: &mut Value, name: &str, value: Value) {
    let map = object.as_object_mut().unwrap();
    if value.is_null() {
        map.remove(name);
    } else {
        map.insert(name.to_owned(), value);
    }
}

fn json_merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        if !patch.is_null() {
            *target = patch.clone();
        }
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            json_merge(&mut target[name.as_str()], value);
        }
    }
}

/// Applies a JSON patch, of which the table uses `add` and `replace` only.
fn json_patch(live: &Value, patch: &Value) -> Value {
    let mut new = live.clone();
    for step in patch.as_array().unwrap() {
        let (parent, last) = step["path"].as_str().unwrap().rsplit_once('/').unwrap();
        match new.pointer_mut(parent).unwrap() {
            Value::Array(items) => items.push(step["value"].clone()),
            other => other[last] = step["value"].clone(),
        }
    }
    new
}

fn differences(want: &Value, got: &Value, path: &str, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(want), Value::Object(_)) => {
            for (name, want) in want {
                differences(want, &got[name.as_str()], &format!("{path}.{name}"), out);
            }
        }
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
            for (index, (want, got)) in want.iter().zip(got).enumerate() {
                differences(want, got, &format!("{path}[{index}]"), out);
            }
        }
        (want, got) if want == got => {}
        (want, got) => out.push(format!("{path}: want {want}, got {got}")),
    }
}

pub(super) fn owners(object: &Value) -> Value {
    let mut out = json!({});
    for entry in object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let parts = ["manager", "operation", "subresource"]
            .map(|name| entry[name].as_str().unwrap_or_default());
        out[parts.join("/").trim_end_matches('/')] = entry["fieldsV1"].clone();
    }
    out
}

fn sorted(causes: &Value) -> Vec<String> {
    let mut out: Vec<String> = causes
        .as_array()
        .into_iter()
        .flatten()
        .map(Value::to_string)
        .collect();
    out.sort();
    out
}

fn judge(
    step: &Value,
    (code, got): &Answer,
    before: Option<&Value>,
    now: Option<&Value>,
) -> Vec<String> {
    if step["code"] != json!(code) {
        return vec![format!("code {code}: {got}")];
    }
    let mut out = Vec::new();
    if let Some(want) = step.get("object") {
        differences(want, got, "", &mut out);
    }
    if let Some(want) = step.get("owners")
        && *want != owners(got)
    {
        out.push(format!("owners: want {want}, got {}", owners(got)));
    }
    if let Some(want) = step.get("causes")
        && sorted(want) != sorted(&got["details"]["causes"])
    {
        out.push(format!("causes: got {}", got["details"]["causes"]));
    }
    // Only a whole server can produce the other refusal texts.
    if let (Some(want), Some(message)) = (step["message"].as_str(), got["message"].as_str())
        && !message.contains(want)
    {
        out.push(format!("message: got {message}"));
    }
    if step["unchanged"] == true && before != now {
        out.push(format!("changed: {before:?} -> {now:?}"));
    }
    out
}

#[test]
fn the_table_of_cases() {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let schema = &table["crd"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let schema = Schema::parse(schema).unwrap();
    let mut failures = Vec::new();
    for case in table["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut server = Server {
            schema: schema.clone(),
            name: name.to_owned(),
            object: None,
        };
        for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let before = server.object.clone();
            let answer = server.run(step);
            for text in judge(step, &answer, before.as_ref(), server.object.as_ref()) {
                failures.push(format!("{name} step {}: {text}", index + 1));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
