//! The match conditions of a webhook, evaluated by the CEL of the embedded API server.

use serde_json::Value;
use serde_json::value::RawValue;
use vmhost_apiserver::MatchConditions;
use vmhost_core::description::webhook::{FailurePolicy, WebhookDescription};

/// What an expression does not see of a request: it has variables of their own for the objects.
const UNSEEN: [&str; 3] = ["uid", "object", "oldObject"];

/// The match conditions of a webhook.
pub(super) struct Conditions {
    /// `None` if there are none.
    checked: Option<MatchConditions>,
    /// Whether a request goes on without the webhook if a condition has no result.
    ignores: bool,
}

impl Conditions {
    /// Checks the conditions. An error says why they cannot be evaluated here.
    pub(super) fn of(webhook: &WebhookDescription) -> Result<Self, String> {
        let conditions = webhook.match_conditions.iter();
        let expressions = conditions.map(|condition| condition.expression.as_str());
        let checked = match webhook.match_conditions.is_empty() {
            true => None,
            false => Some(MatchConditions::check(expressions)?),
        };
        Ok(Self {
            checked,
            ignores: webhook.failure_policy == FailurePolicy::Ignore,
        })
    }

    /// Returns whether the webhook is asked about a request. With an error, the API server refuses
    /// the request, for this reason.
    pub(super) fn hold(&self, request: &RawValue) -> Result<bool, String> {
        let Some(checked) = &self.checked else {
            return Ok(true);
        };
        let mut request: Value =
            serde_json::from_str(request.get()).map_err(|error| error.to_string())?;
        let [_, object, old] = UNSEEN.map(|field| match request.as_object_mut() {
            Some(request) => request.remove(field).unwrap_or_default(),
            None => Value::Null,
        });
        match checked.hold(&object, &old, &request) {
            Err(_) if self.ignores => Ok(false),
            held => held,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn webhook(expression: &str, policy: &str) -> WebhookDescription {
        serde_json::from_value(json!({
            "name": "w", "type": "validating", "rules": [], "failurePolicy": policy,
            "matchConditions": [{"name": "c", "expression": expression}],
        }))
        .unwrap()
    }

    fn held(expression: &str, policy: &str) -> Result<bool, String> {
        let conditions = Conditions::of(&webhook(expression, policy)).unwrap();
        let request = json!({
            "uid": "u", "operation": "CREATE", "name": "x", "userInfo": {"username": "audit"},
            "object": {"metadata": {"name": "x"}},
        });
        conditions.hold(&serde_json::value::to_raw_value(&request).unwrap())
    }

    #[test]
    fn a_request_is_judged_as_by_the_api_server() {
        for fits in [
            "object.metadata.name == 'x' && oldObject == null",
            "request.operation == 'CREATE'",
        ] {
            assert_eq!(held(fits, "Fail"), Ok(true), "{fits}");
        }
        assert_eq!(
            held("request.userInfo.username != 'audit'", "Fail"),
            Ok(false)
        );
        let error = held("object.spec.x == 1", "Fail").unwrap_err();
        assert!(error.contains("no such key: spec"), "{error}");
        assert_eq!(held("object.spec.x == 1", "Ignore"), Ok(false));
        let unseen = "has(request.object) || has(request.uid)";
        assert_eq!(held(unseen, "Fail"), Ok(false));
        let error = Conditions::of(&webhook("authorizer == null", "Fail"))
            .err()
            .unwrap();
        assert!(error.contains("authorizer"), "{error}");
    }
}
