//! Requests for tokens of service accounts (`kubectl create token`).
//!
//! Owns their defaults and checks (k8s.io/kubernetes `pkg/registry/core/serviceaccount/storage`).
//! Must not know the form of a token.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::call::{Call, Done};
use crate::meta;
use crate::object::Key;
use crate::refuse;
use crate::state::Inner;
use crate::status::{ApiError, Cause, INVALID, cause};

const API_VERSION: &str = "authentication.k8s.io/v1";
const REQUEST: &str = "TokenRequest.authentication.k8s.io";
/// The shortest and the longest life of a token, in seconds, and the default.
const SHORTEST: i64 = 10 * 60;
const LONGEST: i64 = 1 << 32;
const DEFAULT: i64 = 60 * 60;

/// Answers a request for a token of the account that the path names.
pub(crate) fn answer(inner: &Inner, call: &Call<'_>, request: &Value) -> Result<Done, ApiError> {
    let Some(author) = call.options.author.as_deref() else {
        return Err(ApiError::no_such_path());
    };
    check_place(call, request)?;
    let account = call.live(inner)?;
    let uid = meta::text(&account, "uid");
    let asked = meta::text(request, "uid");
    if !asked.is_empty() && asked != uid {
        return Err(conflict(
            &json!({ "group": "authentication.k8s.io", "kind": "TokenRequest", "name": call.name }),
            "TokenRequest.authentication.k8s.io",
            call.name,
            &format!(
                "the UID in the token request ({asked}) does not match the UID of the service account ({uid})"
            ),
        ));
    }
    let spec = request.get("spec");
    let part = |field: &str| spec?.get(field).filter(|part| !part.is_null());
    let audiences = part("audiences").and_then(Value::as_array);
    let audiences = audiences.into_iter().flatten().filter_map(Value::as_str);
    let mut audiences: Vec<&str> = audiences.collect();
    if audiences.is_empty() {
        audiences.push(&author.access.issuer);
    }
    let seconds = part("expirationSeconds").and_then(Value::as_i64);
    let seconds = seconds.unwrap_or(DEFAULT);
    check_seconds(seconds)?;
    let bound = match part("boundObjectRef") {
        Some(reference) => bound(inner, call, reference)?,
        None => Vec::new(),
    };
    let until = Timestamp::now().saturating_add(SignedDuration::from_secs(seconds));
    let until = until.map_err(|error| ApiError::internal(error.to_string()))?;
    let token = author.access.issue(&account, &bound, &audiences, seconds)?;
    let object = json!({
        "kind": "TokenRequest",
        "apiVersion": API_VERSION,
        "metadata": {
            "name": call.name,
            "namespace": call.namespace,
            "uid": uid,
            "creationTimestamp": call.now,
        },
        "spec": {
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": part("boundObjectRef"),
        },
        "status": {
            "token": token,
            "expirationTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        },
    });
    Ok(Done {
        code: 201,
        object: object.into(),
        warnings: Vec::new(),
    })
}

fn check_place(call: &Call<'_>, request: &Value) -> Result<(), ApiError> {
    for (field, expected, what) in [
        ("name", call.name, "name"),
        ("namespace", call.namespace, "namespace"),
    ] {
        let asked = meta::text(request, field);
        if !asked.is_empty() && asked != expected {
            let why = format!(
                "Invalid value: {asked:?}: must match the service account {what} if specified"
            );
            let why = cause(INVALID, format!("metadata.{field}"), why);
            return Err(ApiError::invalid_of(REQUEST, call.name, &[why]));
        }
    }
    Ok(())
}

fn check_seconds(seconds: i64) -> Result<(), ApiError> {
    let refuse = |why: &str| -> Result<(), ApiError> {
        let why = format!("Invalid value: {seconds}: {why}");
        let why: Cause = cause(INVALID, "spec.expirationSeconds", why);
        Err(ApiError::invalid_of(REQUEST, "", &[why]))
    };
    match seconds {
        ..SHORTEST => refuse("may not specify a duration less than 10 minutes"),
        SHORTEST..=LONGEST => Ok(()),
        _ => refuse("may not specify a duration larger than 2^32 seconds"),
    }
}

/// Returns what a token is bound to, as its claims name it.
fn bound(
    inner: &Inner,
    call: &Call<'_>,
    reference: &Value,
) -> Result<Vec<(&'static str, Value)>, ApiError> {
    let text = |field: &str| {
        let text = reference.get(field).and_then(Value::as_str);
        text.unwrap_or_default()
    };
    let (claim, plural, namespace) = match (text("apiVersion"), text("kind")) {
        ("v1", "Pod") => ("pod", "pods", call.namespace),
        ("v1", "Secret") => ("secret", "secrets", call.namespace),
        ("v1", "Node") => ("node", "nodes", ""),
        (version, kind) => {
            let group = match version.contains('/') {
                true => version.to_owned(),
                false => format!("/{version}"),
            };
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}, Kind={kind}"
            )));
        }
    };
    let name = text("name");
    let target = inner.registry.find("", "v1", plural);
    let target = target.ok_or_else(ApiError::no_such_path)?;
    let live = inner
        .store
        .get(&target.kind.storage, &Key::new(namespace, name))
        .ok_or_else(|| refuse::not_found(&target, name))?;
    let uid = meta::text(&live, "uid");
    let asked = text("uid");
    if !asked.is_empty() && asked != uid {
        return Err(conflict(
            &json!({ "kind": text("kind"), "name": name }),
            text("kind"),
            name,
            &format!(
                "the UID in the bound object reference ({asked}) does not match the UID in record. The object might have been deleted and then recreated"
            ),
        ));
    }
    let mut bound = vec![(claim, json!({ "name": name, "uid": uid }))];
    if claim == "pod" {
        let of = |path: &str| live.pointer(path).and_then(Value::as_str);
        let account = of("/spec/serviceAccountName").unwrap_or_default();
        if account != call.name {
            return Err(ApiError::bad_request(format!(
                "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                call.name
            )));
        }
        if let Some(node) = of("/spec/nodeName").filter(|node| !node.is_empty()) {
            let live = inner.store.get("/nodes", &Key::new("", node));
            let mut claim = json!({ "name": node });
            if let Some(live) = live {
                claim["uid"] = json!(meta::text(&live, "uid"));
            }
            bound.push(("node", claim));
        }
    }
    Ok(bound)
}

fn conflict(details: &Value, what: &str, name: &str, why: &str) -> ApiError {
    let message = format!("Operation cannot be fulfilled on {what} {name:?}: {why}");
    let mut error = ApiError::new(409, "Conflict", message);
    error.details = Some(details.clone());
    error
}
