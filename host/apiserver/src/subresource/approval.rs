//! The approval of requests for certificates.
//!
//! Follows k8s.io/kubernetes `plugin/pkg/admission/certificates/approval` and
//! `pkg/registry/certificates/certificates/strategy.go`. Must not know how a request is stored.

use serde_json::{Value, json};

use crate::access::ask::Ask;
use crate::access::rbac::decide;
use crate::call::Call;
use crate::refuse;
use crate::state::Inner;
use crate::status::ApiError;

/// Refuses an approval by an author who may not approve for the signer of the request.
pub(super) fn permit(inner: &Inner, call: &Call<'_>, live: &Value) -> Result<(), ApiError> {
    let Some(author) = call.options.author.as_deref() else {
        return Ok(());
    };
    let signer = live.pointer("/spec/signerName").and_then(Value::as_str);
    let signer = signer.unwrap_or_default();
    let domain = signer.split_once('/').map_or(signer, |(domain, _)| domain);
    for name in [signer.to_owned(), format!("{domain}/*")] {
        let ask = Ask {
            verb: "approve".to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Ask::default()
        };
        if decide(inner, author, &ask).allowed {
            return Ok(());
        }
    }
    let why = format!("user not permitted to approve requests with signerName {signer:?}");
    Err(refuse::forbidden(call.target, call.name, why))
}

/// Sets the times that conditions lack. The time of a transition stays while the state does.
pub(super) fn stamp(object: &mut Value, live: &Value, now: &str) {
    const CONDITIONS: &str = "/status/conditions";
    let before = live.pointer(CONDITIONS).and_then(Value::as_array);
    let conditions = object.pointer_mut(CONDITIONS);
    let conditions = conditions.and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if !condition.is_object() {
            continue;
        }
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = json!(now);
        }
        if condition["lastTransitionTime"].is_null() {
            let same = |old: &&Value| {
                old["type"] == condition["type"] && old["status"] == condition["status"]
            };
            let old = before.into_iter().flatten().find(same);
            let since = old.and_then(|old| old["lastTransitionTime"].as_str());
            condition["lastTransitionTime"] = json!(since.unwrap_or(now));
        }
    }
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
