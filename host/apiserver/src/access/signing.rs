//! Requests for certificates (CertificateSigningRequest): their authors, the right to approve or
//! sign them, and the conditions that stay.
//!
//! Follows k8s.io/kubernetes `plugin/pkg/admission/certificates`,
//! `pkg/registry/certificates/certificates/strategy.go` and `pkg/apis/certificates/validation`.
//! Must not know what is signed, or how a request is stored.

use serde_json::{Value, json};

use super::ask::Ask;
use super::rbac::decide;
use crate::call::Call;
use crate::kinds::Fill;
use crate::refuse;
use crate::state::Inner;
use crate::status::{ApiError, Cause, FORBIDDEN, cause};

const CONDITIONS: &str = "/status/conditions";
/// The conditions that only a write to the subresource `approval` sets.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];
/// The conditions that no write removes.
const LASTING: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Writes the author into a new request for a certificate, whatever it says itself. A later write
/// cannot change that: the spec of a request is immutable.
pub(crate) fn record(call: &Call<'_>, live: Option<&Value>, new: &mut Value) {
    if live.is_some() || !is_request(call) {
        return;
    }
    let Some(author) = call.options.author.as_deref() else {
        return;
    };
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    if let Value::Object(info) = author.user.info() {
        spec.extend(info);
    }
}

/// Gives back to a request the decisions that a write to its status brings in another form, and
/// sets the times of the other conditions.
pub(crate) fn keep(call: &Call<'_>, live: Option<&Value>, new: &mut Value) {
    let Some(live) = live.filter(|_| is_request(call) && call.part == "status") else {
        return;
    };
    for kind in DECISIONS {
        let old: Vec<Value> = of_type(live, kind).cloned().collect();
        let list = new.pointer_mut(CONDITIONS);
        let list = list.and_then(Value::as_array_mut).into_iter().flatten();
        let own: Vec<&mut Value> = list.filter(|one| one["type"] == kind).collect();
        if own.len() == old.len() {
            for (own, old) in own.into_iter().zip(old) {
                *own = old;
            }
        }
    }
    stamp(new, live, call.now);
}

/// Sets the times that conditions lack. The time of a transition stays while the state does.
pub(crate) fn stamp(object: &mut Value, live: &Value, now: &str) {
    let list = object.pointer_mut(CONDITIONS);
    let list = list.and_then(Value::as_array_mut).into_iter().flatten();
    for condition in list.filter(|one| one.is_object()) {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = json!(now);
        }
        if condition["lastTransitionTime"].is_null() {
            let same = |old: &&Value| {
                old["type"] == condition["type"] && old["status"] == condition["status"]
            };
            let old = conditions(live).iter().find(same);
            let since = old.and_then(|old| old["lastTransitionTime"].as_str());
            condition["lastTransitionTime"] = json!(since.unwrap_or(now));
        }
    }
}

/// Returns what a write may not change in the conditions and the certificate of a request.
pub(crate) fn faults(call: &Call<'_>, live: Option<&Value>, new: &Value) -> Vec<Cause> {
    let Some(live) = live.filter(|_| is_request(call)) else {
        return Vec::new();
    };
    let removed = LASTING.into_iter();
    let removed = removed.filter(|kind| count(new, kind) < count(live, kind));
    let mut causes: Vec<Cause> = removed.map(|kind| condition("remove", kind)).collect();
    if call.part != "status" {
        return causes;
    }
    let added = DECISIONS.into_iter();
    let added = added.filter(|kind| count(new, kind) > count(live, kind));
    causes.extend(added.map(|kind| condition("add", kind)));
    let signed = certificate(live);
    if !signed.is_empty() && certificate(new) != signed {
        let why = "Forbidden: updates may not modify existing certificate content";
        causes.push(cause(FORBIDDEN, "status.certificate", why));
    }
    causes
}

fn condition(change: &str, kind: &str) -> Cause {
    let why = format!("Forbidden: updates may not {change} a condition of type {kind:?}");
    cause(FORBIDDEN, "status.conditions", why)
}

/// Refuses a certificate or a condition unless its author may sign for the request's signer.
pub(crate) fn check(
    inner: &Inner,
    call: &Call<'_>,
    live: Option<&Value>,
    new: &Value,
) -> Result<(), ApiError> {
    let Some(live) = live.filter(|_| is_request(call) && call.part == "status") else {
        return Ok(());
    };
    if certificate(live) == certificate(new) && conditions(live) == conditions(new) {
        return Ok(());
    }
    permit(inner, call, live, "sign")
}

/// Refuses an author without the right to `approve` or `sign` for the signer of a request.
pub(crate) fn permit(
    inner: &Inner,
    call: &Call<'_>,
    live: &Value,
    verb: &str,
) -> Result<(), ApiError> {
    let Some(author) = call.options.author.as_deref() else {
        return Ok(());
    };
    let signer = live.pointer("/spec/signerName").and_then(Value::as_str);
    let signer = signer.unwrap_or_default();
    let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
    for name in [signer.to_owned(), format!("{domain}/*")] {
        let ask = Ask {
            verb: verb.to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Ask::default()
        };
        if decide(inner, author, &ask).allowed {
            return Ok(());
        }
    }
    let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(refuse::forbidden(call.target, call.name, why))
}

fn is_request(call: &Call<'_>) -> bool {
    call.target.kind.fill == Fill::SigningRequest
}

fn certificate(of: &Value) -> &str {
    let text = of.pointer("/status/certificate").and_then(Value::as_str);
    text.unwrap_or_default()
}

fn conditions(of: &Value) -> &[Value] {
    let list = of.pointer(CONDITIONS).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn count(of: &Value, kind: &str) -> usize {
    of_type(of, kind).count()
}

fn of_type<'v>(of: &'v Value, kind: &'v str) -> impl Iterator<Item = &'v Value> {
    conditions(of).iter().filter(move |one| one["type"] == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_get_their_times() {
        let of = |conditions: Value| json!({ "status": { "conditions": conditions } });
        let live = of(json!([
            { "type": "Approved", "status": "True", "lastTransitionTime": "then" },
        ]));
        let mut new = of(json!([
            { "type": "Approved", "status": "True" },
            { "type": "Failed", "status": "True" },
            "odd",
        ]));
        stamp(&mut new, &live, "now");
        let expected = json!([
            { "type": "Approved", "status": "True", "lastTransitionTime": "then", "lastUpdateTime": "now" },
            { "type": "Failed", "status": "True", "lastTransitionTime": "now", "lastUpdateTime": "now" },
            "odd",
        ]);
        assert_eq!(new, of(expected));
        stamp(&mut json!({}), &live, "now");
    }
}
