//! Tries to get the host's rights, and describes itself as a test writes it into its bytes (see
//! `kit::description`).
//!
//! The annotation `vmhost.test/probes` holds the reads that a turn tries, as JSON:
//!
//! ```json
//! [{ "id": "one", "kind": "Secret", "namespace": "a", "name": "x", "live": true },
//!  { "id": "all", "kind": "Secret" }]
//! ```
//! With a name it gets one object, without it lists; each answer is logged, as `PROBE one found 1`
//! or `PROBE all refused: why`. Then it follows the orders in the object (see `kit::orders`). The
//! controller `timer` returns an Event, and nothing else.

use kit::vmhost::plugin::cluster::{self, Query, ReadError};
use kit::vmhost::plugin::log::{Level, log};
use kit::{Guest, Gvk, Next, ObjectKey, Outcome, Request, orders, parse};
use serde_json::Value;

struct Deputy;

impl Guest for Deputy {
    fn describe() -> Result<String, String> {
        Ok(kit::description())
    }

    fn reconcile(request: Request) -> Outcome {
        if request.controller == "timer" {
            return Outcome {
                effects: vec![kit::event("Deputy", "Try", "told to")],
                next: Next::AwaitChange,
            };
        }
        let object = parse(request.object.as_deref().unwrap_or_default());
        let probes = object.pointer("/metadata/annotations/vmhost.test~1probes");
        let probes = parse(probes.and_then(Value::as_str).unwrap_or_default());
        for probe in probes.as_array().into_iter().flatten() {
            let id = probe["id"].as_str().unwrap_or_default();
            let line = match read(probe) {
                Ok(count) => format!("PROBE {id} found {count}"),
                Err(error) => format!("PROBE {id} refused: {error:?}"),
            };
            log(Level::Info, &line);
        }
        orders::obey(&request)
    }

    kit::no_map!();
}

/// Returns the number of objects that a read found.
fn read(probe: &Value) -> Result<usize, ReadError> {
    let text = |name: &str| probe[name].as_str().map(str::to_owned);
    let live = probe["live"] == true;
    let kind = Gvk {
        group: text("group").unwrap_or_default(),
        version: "v1".into(),
        kind: text("kind").unwrap_or_default(),
    };
    let namespace = text("namespace");
    if let Some(name) = text("name") {
        let key = ObjectKey {
            kind,
            namespace,
            name,
        };
        let found = match live {
            true => cluster::get_live(&key)?,
            false => cluster::get(&key)?,
        };
        return Ok(usize::from(found.is_some()));
    }
    let query = Query {
        kind,
        namespace,
        label_selector: None,
        index: None,
        owner: None,
        metadata_only: true,
        limit: 0,
        continue_: None,
    };
    let page = match live {
        true => cluster::list_live(&query)?,
        false => cluster::list(&query)?,
    };
    Ok(page.objects.len())
}

kit::export!(Deputy with_types_in kit);
