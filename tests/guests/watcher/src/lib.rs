//! One controller for each way to be woken, over VMs with the label `case` set to its name. Each
//! follows the orders in its object; see `kit::orders`. The controller `reader` runs the query in
//! `data.query` of its ConfigMap and logs the answer as `READ {...}`; only the plugin that a
//! query's `plugin` names runs it. For a ConfigMap that the guest maps, `data.vm` names the VM;
//! before mapping, the guest reads the ConfigMap `data.live` past the cache.

use kit::vmhost::plugin::cluster::{self, IndexMatch, Query, ReadError};
use kit::vmhost::plugin::log::{Level, log};
use kit::{Guest, Gvk, MapRequest, ObjectKey, ObjectName, Outcome, Request, orders, parse};
use serde_json::{Value, json};

struct Watcher;

/// The name, found by its first words; the plugin's name follows, padded with spaces.
static NAME: [u8; 32] = *b"VMHOST-NAME-watcher             ";

fn plugin() -> String {
    // Prevents constant folding, because tests patch the bytes.
    let name = &std::hint::black_box(&NAME)[b"VMHOST-NAME-".len()..];
    String::from_utf8_lossy(name).trim_end().to_owned()
}

impl Guest for Watcher {
    fn describe() -> Result<String, String> {
        let vm = |case: &str, more: Value| {
            let mut watched = json!({ "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine", "labelSelector": format!("case={case}") });
            merge(&mut watched, more);
            watched
        };
        let config_map = |more: Value| {
            let mut watched = json!({ "version": "v1", "kind": "ConfigMap" });
            merge(&mut watched, more);
            watched
        };
        let controller = |name: &str, primary: Value, more: Value| {
            let mut controller = json!({ "name": name, "primary": vm(name, primary) });
            merge(&mut controller, more);
            controller
        };
        let watches = |map: Value| json!({ "watches": [config_map(json!({ "map": map }))] });
        let mut description = json!({
            "apiVersion": "vmhost/v1",
            "name": plugin(),
            "controllers": [
                controller("owner", json!({}), json!({ "owns": [config_map(json!({}))] })),
                controller("labelled", json!({}), watches(json!({ "label": "vmhost.test/vm" }))),
                controller("field", json!({}), watches(json!({ "field": "data.vm" }))),
                controller("named", json!({}), watches(json!("name"))),
                controller("indexed", json!({ "indexes": { "image": "spec.image" } }), watches(json!({ "index": "image" }))),
                controller("guest", json!({}), json!({ "watches": [config_map(json!({ "map": "guest", "labelSelector": "vmhost.test/guest" }))] })),
                controller("fielded", json!({}), json!({ "watches": [{ "version": "v1", "kind": "Secret", "fieldSelector": "type=vmhost.test/shown", "map": "name" }] })),
                controller("generation", json!({ "predicates": { "changed": ["generation"] } }), json!({})),
                controller("cel", json!({ "wantedFields": ["spec.image"], "predicates": { "cel": "oldObject == null || object.spec.status != oldObject.spec.status" } }), json!({})),
                controller("history", json!({}), json!({ "previous": true, "eventSource": "history-keeper" })),
                controller("bounded", json!({}), json!({ "retry": { "maxRetries": 2 } })),
                controller("hot", json!({}), json!({})),
                {
                    "name": "reader",
                    "primary": config_map(json!({ "labelSelector": "vmhost.test/read" })),
                    "reads": [
                        { "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine", "indexes": { "image": "spec.image", "missing": "spec.nothing.here" } },
                        { "version": "v1", "kind": "Secret", "metadataOnly": true },
                        { "version": "v1", "kind": "ServiceAccount", "live": true },
                    ],
                },
            ],
            "permissions": [
                { "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine", "verbs": ["create", "patch", "delete"] },
                { "version": "v1", "kind": "ConfigMap", "verbs": ["create", "patch", "delete"] },
                { "version": "v1", "kind": "Secret", "verbs": ["create", "patch"] },
            ],
        });
        // Under another name, the plugin has no timers, and no finalizer that two plugins would
        // share.
        if let (Some(controllers), "watcher") =
            (description["controllers"].as_array_mut(), &*plugin())
        {
            let finalizer = json!({ "finalizer": "test.vmhost.dev/cleanup" });
            controllers.push(controller("cleanup", json!({}), finalizer));
            controllers.push(json!({ "name": "tick", "timer": { "everyMs": 200 } }));
            controllers.push(json!({ "name": "once", "timer": { "once": true } }));
        }
        Ok(description.to_string())
    }

    fn reconcile(request: Request) -> Outcome {
        if request.controller == "reader" {
            read(&request);
            return kit::done();
        }
        orders::obey(&request)
    }

    fn map_changes(request: MapRequest) -> Result<Vec<ObjectName>, String> {
        let mut names = Vec::new();
        for change in &request.changes {
            for text in [&change.old, &change.new].into_iter().flatten() {
                let object = parse(text);
                if let Some(name) = object["data"]["live"].as_str() {
                    let _ = cluster::get_live(&beside(&object, name));
                }
                match object["data"]["problem"].as_str() {
                    Some("trap") => panic!("told to"),
                    Some(problem) => return Err(problem.into()),
                    None => {}
                }
                names.extend(object["data"]["vm"].as_str().map(|name| ObjectName {
                    namespace: object["metadata"]["namespace"].as_str().map(Into::into),
                    name: name.into(),
                }));
            }
        }
        log(
            Level::Info,
            &format!("MAPPED {} changes", request.changes.len()),
        );
        Ok(names)
    }
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

/// Returns the key of another ConfigMap in the same namespace.
fn beside(object: &Value, name: &str) -> ObjectKey {
    ObjectKey {
        kind: Gvk {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
        },
        namespace: object["metadata"]["namespace"].as_str().map(Into::into),
        name: name.into(),
    }
}

fn read(request: &Request) {
    let object = request.object.as_deref().map(parse).unwrap_or_default();
    let asked = parse(object["data"]["query"].as_str().unwrap_or_default());
    let text = |name: &str| asked[name].as_str().map(str::to_owned);
    if text("plugin").is_some_and(|of| of != plugin()) {
        return;
    }
    let kind = Gvk {
        group: text("group").unwrap_or_default(),
        version: "v1".into(),
        kind: text("kind").unwrap_or_default(),
    };
    let live = asked["live"] == true;
    let answer = if let Some(name) = text("get") {
        let namespace = text("namespace");
        let key = ObjectKey {
            kind,
            namespace,
            name,
        };
        let found = if live {
            cluster::get_live(&key)
        } else {
            cluster::get(&key)
        };
        found.map(|object| json!(object.as_deref().map(parse)))
    } else {
        let query = Query {
            kind,
            namespace: text("namespace"),
            label_selector: text("labels"),
            index: asked["index"].as_array().map(|pair| IndexMatch {
                name: pair[0].as_str().unwrap_or_default().into(),
                value: pair[1].as_str().unwrap_or_default().into(),
            }),
            owner: text("owner"),
            metadata_only: asked["metadataOnly"] == true,
            limit: asked["limit"].as_u64().unwrap_or_default() as u32,
            continue_: None,
        };
        pages(query, live)
    };
    let answer = answer.unwrap_or_else(|error| json!({ "error": name(&error) }));
    log(
        Level::Info,
        &format!(
            "READ {}",
            json!({ "name": request.key.name, "answer": answer })
        ),
    );
}

/// Reads all pages; returns the names and the number of pages.
fn pages(mut query: Query, live: bool) -> Result<Value, ReadError> {
    let (mut names, mut pages, mut last) = (Vec::new(), 0, Value::Null);
    loop {
        let page = if live {
            cluster::list_live(&query)?
        } else {
            cluster::list(&query)?
        };
        pages += 1;
        for object in page.objects.iter().map(|text| parse(text)) {
            names.push(object["metadata"]["name"].clone());
            last = object;
        }
        query.continue_ = page.continue_;
        if query.continue_.is_none() {
            return Ok(json!({ "names": names, "pages": pages, "last": last }));
        }
    }
}

fn name(error: &ReadError) -> String {
    match error {
        ReadError::NotWatched(what) => format!("not watched: {what}"),
        ReadError::TooLarge(limit) => format!("too large: {limit}"),
        ReadError::Invalid(reason) => format!("invalid: {reason}"),
        ReadError::Unavailable(reason) => format!("unavailable: {reason}"),
    }
}

kit::export!(Watcher with_types_in kit);
