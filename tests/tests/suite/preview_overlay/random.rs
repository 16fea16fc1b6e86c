//! Random objects and random writes to them.
//!
//! This module must not know which server answers a write.

use anyhow::{Context, Result};
use bytes::Bytes;
use fastrand::Rng;
use http::{Method, Request, header};
use kube::Client;
use serde_json::{Map, Value, json};
use vmhost_apiserver::Overlay;
use vmhost_tests::net;

/// The group of widgets.
pub const GROUP: &str = "overlay.vmhost.dev";

const NAMES: [&str; 3] = ["a", "b", "c"];
const MANAGERS: [&str; 3] = ["one", "two", "three"];
const WIDGET: [&str; 13] = [
    "size", "color", "mode", "note", "count", "disks", "ports", "zones", "args", "env", "selector",
    "nested", "pinned",
];
const DEPLOYMENT: [&str; 4] = [
    "replicas",
    "minReadySeconds",
    "paused",
    "revisionHistoryLimit",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Widget,
    ConfigMap,
    Deployment,
}

impl Kind {
    fn names(self) -> (String, &'static str, &'static str) {
        match self {
            Kind::Widget => (format!("{GROUP}/v1"), "Widget", "widgets"),
            Kind::ConfigMap => ("v1".into(), "ConfigMap", "configmaps"),
            Kind::Deployment => ("apps/v1".into(), "Deployment", "deployments"),
        }
    }

    pub fn collection(self, namespace: &str) -> String {
        let (api_version, _, plural) = self.names();
        net::collection(&api_version, namespace, plural)
    }

    /// Returns some fields. In a merge patch, some of them are removed.
    fn content(self, rng: &mut Rng, removes: bool) -> Value {
        match self {
            Kind::Widget => json!({ "spec": some(rng, &WIDGET, removes, widget) }),
            Kind::ConfigMap => json!({ "data": some(rng, &NAMES, removes, text) }),
            Kind::Deployment => {
                let mut spec = some(rng, &DEPLOYMENT, removes, deployment);
                if rng.bool() {
                    let annotations = some(rng, &NAMES, false, text);
                    let inside = json!({ "containers": [container(rng)] });
                    spec["template"] =
                        json!({ "metadata": { "annotations": annotations }, "spec": inside });
                }
                json!({ "spec": spec })
            }
        }
    }

    /// Returns an object to create. Its maps cannot become empty, because kube-apiserver would
    /// leave empty maps out of some objects.
    pub fn object(self, rng: &mut Rng, name: &str) -> Value {
        let mut object = self.content(rng, false);
        match self {
            Kind::Widget => {}
            Kind::ConfigMap => object["data"]["kept"] = json!("0"),
            Kind::Deployment => {
                let labels = json!({ "app": name });
                let metadata = json!({ "labels": labels, "annotations": { "kept": "0" } });
                let spec = json!({ "containers": [container(rng)] });
                object["spec"]["selector"] = json!({ "matchLabels": labels });
                object["spec"]["template"] = json!({ "metadata": metadata, "spec": spec });
            }
        }
        let mut object = named(self, rng, name, object);
        object["metadata"]["labels"]["kept"] = json!("0");
        object
    }
}

/// Adds the names of an object, and some labels.
fn named(kind: Kind, rng: &mut Rng, name: &str, mut object: Value) -> Value {
    let (api_version, kind, _) = kind.names();
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object["metadata"] = json!({ "name": name, "labels": some(rng, &NAMES, false, text) });
    object
}

/// An object of the cluster.
pub struct Subject {
    pub kind: Kind,
    pub name: String,
}

/// A write as a client sends it.
#[derive(Debug)]
pub struct Write {
    pub method: Method,
    /// The path, with a query.
    pub path: String,
    pub media: &'static str,
    pub body: Value,
}

impl Write {
    /// Returns a write to an object, or to the object's collection.
    pub fn random(rng: &mut Rng, subject: &Subject, namespace: &str) -> Write {
        let Subject { kind, name } = subject;
        let collection = kind.collection(namespace);
        let manager = pick(rng, &MANAGERS);
        let status = *kind == Kind::Widget && rng.u8(..4) == 0;
        let door = if status { "/status" } else { "" };
        let path = |name: &str| format!("{collection}/{name}{door}?fieldManager={manager}");
        let patch = |path: String, media, body| Write {
            method: Method::PATCH,
            path,
            media,
            body,
        };
        let apply = "application/apply-patch+yaml";
        match rng.u8(..10) {
            0..=3 => {
                let body = match status {
                    true => shown(rng),
                    false => kind.content(rng, false),
                };
                let mut body = named(*kind, rng, name, body);
                if status {
                    body["metadata"] = json!({ "name": name });
                }
                let path = format!("{}&force={}", path(name), rng.bool());
                patch(path, apply, body)
            }
            4 | 5 => {
                let body = match status {
                    true => shown(rng),
                    false => changed(*kind, rng),
                };
                patch(path(name), "application/merge-patch+json", body)
            }
            6 | 7 => {
                let body = steps(*kind, rng);
                let path = format!("{collection}/{name}?fieldManager={manager}");
                patch(path, "application/json-patch+json", body)
            }
            8 => {
                let body = kind.object(rng, "applied");
                let path = format!("{collection}/applied?fieldManager={manager}");
                patch(path, apply, body)
            }
            _ => Write {
                method: Method::POST,
                path: format!("{collection}?fieldManager={manager}"),
                media: "application/json",
                body: kind.object(rng, "created"),
            },
        }
    }

    pub async fn send(&self, client: &Client, dry: bool) -> Result<(u16, Value)> {
        let dry = if dry { "&dryRun=All" } else { "" };
        let (method, path) = (self.method.clone(), format!("{}{dry}", self.path));
        net::send(client, method, &path, self.media, &self.body).await
    }

    pub async fn write_to(&self, overlay: &Overlay) -> Result<(u16, Value)> {
        let request = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(header::CONTENT_TYPE, self.media)
            .body(Bytes::from(self.body.to_string()))?;
        let answer = overlay.answer(request).await;
        let body = serde_json::from_slice(answer.body()).context("the overlay's answer")?;
        Ok((answer.status().as_u16(), body))
    }
}

pub fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.usize(..from.len())]
}

/// Returns at least one of the fields. With `removes`, some of them are null.
fn some(
    rng: &mut Rng,
    fields: &[&str],
    removes: bool,
    value: fn(&mut Rng, &str) -> Value,
) -> Value {
    let mut all = Map::new();
    for field in fields {
        match rng.u8(..6) {
            0 => drop(all.insert((*field).to_owned(), value(rng, field))),
            1 if removes => drop(all.insert((*field).to_owned(), Value::Null)),
            _ => {}
        }
    }
    if all.is_empty() {
        let field = pick(rng, fields);
        all.insert((*field).to_owned(), value(rng, field));
    }
    Value::Object(all)
}

fn text(rng: &mut Rng, _: &str) -> Value {
    (*pick(rng, &["1", "2", "3"])).into()
}

/// Returns some of the names, each once.
fn names(rng: &mut Rng) -> Vec<&'static str> {
    let mut names = NAMES.to_vec();
    rng.shuffle(&mut names);
    names.truncate(rng.usize(1..=NAMES.len()));
    names
}

fn widget(rng: &mut Rng, field: &str) -> Value {
    match field {
        "size" => json!(rng.u8(..3)),
        // The last value is not allowed.
        "color" => json!(pick(rng, &["red", "green", "blue", "mauve"])),
        "mode" => json!(pick(rng, &["auto", "manual"])),
        "note" => text(rng, field),
        "count" => pick(rng, &[json!(1), json!("1"), json!("2")]).clone(),
        "disks" => {
            let disks = names(rng).into_iter();
            disks
                .map(|name| json!({ "name": name, "size": rng.u8(..3) }))
                .collect()
        }
        "ports" => {
            let other = json!({ "port": 80, "protocol": "UDP", "name": text(rng, "") });
            json!([{ "port": 80 }, other, { "port": 443, "name": text(rng, "") }])
        }
        "zones" | "args" => json!(names(rng)),
        "nested" => json!({ "a": text(rng, ""), "deep": { "c": text(rng, "") } }),
        "pinned" => json!({ *pick(rng, &["a", "b"]): text(rng, "") }),
        _ => some(rng, &NAMES, false, text),
    }
}

// No field has a zero value, because kube-apiserver leaves zero values out of some fields.
fn deployment(rng: &mut Rng, field: &str) -> Value {
    match field {
        "paused" => json!(true),
        _ => json!(rng.u8(1..4)),
    }
}

fn container(rng: &mut Rng) -> Value {
    let env: Vec<Value> = std::iter::once("kept")
        .chain(names(rng))
        .map(|name| json!({ "name": name, "value": text(rng, "") }))
        .collect();
    json!({
        "name": "main",
        "image": pick(rng, &["nginx:1", "nginx:2"]),
        "env": env,
        "ports": [{ "containerPort": 80 }],
    })
}

/// Returns a status of a widget.
fn shown(rng: &mut Rng) -> Value {
    let conditions: Vec<Value> = names(rng)
        .into_iter()
        .map(|name| json!({ "type": name, "status": text(rng, "") }))
        .collect();
    json!({ "status": { "phase": text(rng, ""), "conditions": conditions } })
}

/// Returns a merge patch.
fn changed(kind: Kind, rng: &mut Rng) -> Value {
    let labels = some(rng, &NAMES, true, text);
    match rng.u8(..8) {
        // A version that is not the object's.
        0 => json!({ "metadata": { "resourceVersion": "1", "labels": labels } }),
        1 => json!({ "metadata": { "finalizers": ["test.vmhost.dev/x"] } }),
        2 => json!({ "metadata": { "labels": labels } }),
        _ => kind.content(rng, true),
    }
}

/// Returns a JSON patch, some of whose steps fail.
fn steps(kind: Kind, rng: &mut Rng) -> Value {
    let (first, second) = match kind {
        Kind::Widget => ("/spec/size", "/spec/color"),
        Kind::ConfigMap => ("/data/a", "/data/b"),
        Kind::Deployment => ("/spec/replicas", "/spec/template/spec/containers/0/image"),
    };
    let value = |rng: &mut Rng, path: &str| match (kind, path) {
        (Kind::Widget, "/spec/size") => json!(rng.u8(..3)),
        (Kind::Widget, _) => json!(pick(rng, &["red", "green"])),
        (Kind::Deployment, "/spec/replicas") => json!(rng.u8(1..4)),
        _ => text(rng, ""),
    };
    let steps = (0..rng.u8(1..4)).map(|_| {
        let path = if rng.bool() { first } else { second };
        match rng.u8(..6) {
            0 => json!({ "op": "test", "path": path, "value": value(rng, path) }),
            1 if kind != Kind::Deployment => json!({ "op": "remove", "path": path }),
            2 => {
                let mut labels = some(rng, &NAMES, false, text);
                labels["kept"] = json!("0");
                json!({ "op": "add", "path": "/metadata/labels", "value": labels })
            }
            3 => json!({ "op": "replace", "path": path, "value": value(rng, path) }),
            _ => json!({ "op": "add", "path": path, "value": value(rng, path) }),
        }
    });
    steps.collect()
}
