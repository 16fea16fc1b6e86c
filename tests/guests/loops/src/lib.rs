//! Misbehaves as its object says in `spec.mode`: a mode for each warning about a key, and some for
//! what else a record shows.
//!
//! | Mode | What its turns do |
//! |---|---|
//! | `good` | completes an object that is creating |
//! | `self-waking` | writes `spec.count` + 1 |
//! | `write-unchanged` | sets `spec.status` to what it is, and comes again after 200 ms |
//! | `fights-with` | sets `spec.replicas` to 1 whenever it is not |
//! | `never-quiet` | nothing, and comes again after 100 ms |
//! | `waiting-on` | is retried until there is a ConfigMap `missing` |
//! | `finalizer-stuck` | is retried for ever when the object is to be deleted |
//! | `invalid` | writes a text into `spec.count` |
//! | `live` | completes an object that is creating, with what it reads live of a ConfigMap `live` |
//! | `outside` | deletes a ConfigMap, which no grant allows |
//! | `secret` | copies the Secret of its name and the setting `password` to a ConfigMap; fails |
//!
//! The controllers `stuck` and `secrets` have the objects whose label `case` is set to their name.

use kit::vmhost::plugin::{cluster, config};
use kit::{
    Create, Delete, Effect, Guest, Gvk, Next, ObjectKey, Outcome, Patch, PatchType, Request, parse,
};
use serde_json::{Value, json};

struct Loops;

const DESCRIPTION: &str = r#"{
  "apiVersion": "vmhost/v1",
  "name": "loops",
  "controllers": [
    {
      "name": "objects",
      "primary": { "group": "test.vmhost.dev", "version": "v1", "kind": "Loop", "labelSelector": "!case" },
      "reads": [{ "version": "v1", "kind": "ConfigMap" }]
    },
    {
      "name": "stuck",
      "primary": { "group": "test.vmhost.dev", "version": "v1", "kind": "Loop", "labelSelector": "case=stuck" },
      "finalizer": "test.vmhost.dev/stuck"
    },
    {
      "name": "secrets",
      "primary": { "group": "test.vmhost.dev", "version": "v1", "kind": "Loop", "labelSelector": "case=secrets" },
      "watches": [{ "version": "v1", "kind": "Secret", "map": "name" }]
    }
  ],
  "permissions": [
    { "group": "test.vmhost.dev", "version": "v1", "kind": "Loop", "verbs": ["patch"] },
    { "version": "v1", "kind": "ConfigMap", "verbs": ["create"] }
  ]
}"#;

impl Guest for Loops {
    fn describe() -> Result<String, String> {
        Ok(DESCRIPTION.into())
    }

    fn reconcile(request: Request) -> Outcome {
        let Some(object) = request.object.as_deref().map(parse) else {
            return kit::done();
        };
        let spec = &object["spec"];
        let count = spec["count"].as_i64().unwrap_or_default();
        match spec["mode"].as_str().unwrap_or_default() {
            "good" if spec["status"] == "creating" => {
                sets(&request, "status", json!("complete"), Next::AwaitChange)
            }
            "self-waking" => sets(&request, "count", json!(count + 1), Next::AwaitChange),
            "write-unchanged" => {
                let same = spec["status"].clone();
                sets(&request, "status", same, Next::RequeueAfterMs(200))
            }
            "fights-with" if spec["replicas"] != 1 => {
                sets(&request, "replicas", json!(1), Next::AwaitChange)
            }
            "never-quiet" => ends(Next::RequeueAfterMs(100)),
            "waiting-on" => wait_for(&beside(&request, "ConfigMap", "missing")),
            "finalizer-stuck" if request.deleting => ends(Next::Retry("it is still used".into())),
            "invalid" => sets(&request, "count", json!("many"), Next::AwaitChange),
            "live" if spec["status"] == "creating" => {
                let found = match cluster::get_live(&beside(&request, "ConfigMap", "live")) {
                    Ok(Some(found)) => parse(&found)["data"]["word"].clone(),
                    Ok(None) => json!("nothing"),
                    Err(error) => json!(format!("{error:?}")),
                };
                sets(&request, "status", found, Next::AwaitChange)
            }
            "outside" => {
                let delete = Effect::Delete(Delete {
                    key: beside(&request, "ConfigMap", "another"),
                    uid: None,
                    if_version: None,
                    propagation: None,
                });
                does(delete, Next::AwaitChange)
            }
            "secret" => tell(&request),
            _ => kit::done(),
        }
    }

    kit::no_map!();
}

/// Returns the key of an object of the core group, in the same namespace.
fn beside(request: &Request, kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        kind: Gvk {
            group: String::new(),
            version: "v1".into(),
            kind: kind.into(),
        },
        namespace: request.key.namespace.clone(),
        name: name.into(),
    }
}

fn ends(next: Next) -> Outcome {
    Outcome {
        effects: Vec::new(),
        next,
    }
}

fn does(effect: Effect, next: Next) -> Outcome {
    Outcome {
        effects: vec![effect],
        next,
    }
}

/// Sets one field of the object's spec.
fn sets(request: &Request, field: &str, value: Value, next: Next) -> Outcome {
    let patch = Effect::Patch(Patch {
        key: request.key.clone(),
        subresource: None,
        type_: PatchType::Merge,
        body: json!({ "spec": { field: value } }).to_string(),
        if_version: None,
    });
    does(patch, next)
}

fn wait_for(key: &ObjectKey) -> Outcome {
    match cluster::get(key) {
        Ok(Some(_)) => kit::done(),
        Ok(None) => ends(Next::Retry("what it needs is not there yet".into())),
        Err(error) => ends(Next::Fail(format!("{error:?}"))),
    }
}

/// Writes a secret wherever a turn can write a text.
fn tell(request: &Request) -> Outcome {
    let secret = match cluster::get(&beside(request, "Secret", &request.key.name)) {
        Ok(Some(secret)) => parse(&secret),
        Ok(None) => return ends(Next::Retry("there is no Secret yet".into())),
        Err(error) => return ends(Next::Fail(format!("{error:?}"))),
    };
    let encoded = secret["data"]["token"].as_str().unwrap_or_default();
    let token = decoded(encoded);
    // Each version of the Secret gets a ConfigMap of its own, so that no turn finds the ConfigMap
    // of another version.
    let version = secret["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    let copy = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("copy-of-{}-{version}", request.key.name),
            "namespace": request.key.namespace,
        },
        "data": {
            "url": format!("postgres://user:{token}@database"),
            "encoded": encoded,
            "password": config::get("password").unwrap_or_default(),
        },
    });
    let create = Effect::Create(Create {
        object: copy.to_string(),
    });
    does(create, Next::Fail(format!("no database takes {token}")))
}

/// Decodes base64.
fn decoded(text: &str) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for sign in text.bytes() {
        let Some(value) = SIGNS.iter().position(|known| *known == sign) else {
            break;
        };
        held = (held << 6) | value as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

kit::export!(Loops with_types_in kit);
