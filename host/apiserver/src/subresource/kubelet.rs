//! What only the agent of a node can answer: refused, as by a real server that cannot reach one.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::call::{Call, Done};
use crate::object::{Key, Object};
use crate::state::Inner;
use crate::status::ApiError;

/// Returns the options of a connection, as webhooks see them: the query of the request.
pub(crate) fn options(kind: &str, query: &str) -> Value {
    let mut options = json!({ "kind": kind, "apiVersion": "v1" });
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = value.replace('+', " ");
        let value = percent_decode_str(&value).decode_utf8_lossy().into_owned();
        match name {
            "stdin" | "stdout" | "stderr" | "tty" => {
                options[name] = json!(matches!(value.as_str(), "1" | "t" | "T" | "true"));
            }
            "command" => match options[name].as_array_mut() {
                Some(words) => words.push(json!(value)),
                None => options[name] = json!([value]),
            },
            "ports" => {
                let ports = value.split(',').filter_map(|port| port.parse::<u16>().ok());
                options[name] = json!(ports.collect::<Vec<_>>());
            }
            "container" | "path" => options[name] = json!(value),
            _ => {}
        }
    }
    options
}

/// Refuses a request for a pod, a service or a node. A pod without a node has an empty log.
pub(super) fn answer(
    inner: &Inner,
    call: &Call<'_>,
    live: &Object,
    name: &str,
) -> Result<Done, ApiError> {
    let host = match call.target.kind.kind.as_str() {
        "Node" => Some(call.name.to_owned()),
        _ => {
            let host = live.pointer("/spec/nodeName").and_then(Value::as_str);
            host.filter(|host| !host.is_empty()).map(str::to_owned)
        }
    };
    match (name, call.target.kind.kind.as_str(), host) {
        ("log", _, None) => Ok(Done {
            code: 204,
            object: json!({}).into(),
            warnings: Vec::new(),
        }),
        ("proxy", "Service", _) => Err(ApiError::new(
            503,
            "ServiceUnavailable",
            format!("no endpoints available for service {:?}", call.name),
        )),
        ("proxy", "Pod", _) => Err(ApiError::bad_request("address not allowed")),
        (_, _, None) => Err(ApiError::bad_request(format!(
            "pod {} does not have a host assigned",
            call.name
        ))),
        (_, _, Some(host)) => Err(ApiError::new(500, "", unreachable(inner, &host))),
    }
}

/// Returns why a node cannot be reached.
fn unreachable(inner: &Inner, host: &str) -> String {
    let node = inner.store.get("/nodes", &Key::new("", host));
    let Some(node) = node else {
        return format!("nodes {host:?} not found");
    };
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
    match addresses.filter(|list| !list.is_empty()) {
        None => "no preferred addresses found; known addresses: []".to_owned(),
        Some(_) => format!("the agent of node {host:?} is not reachable"),
    }
}
