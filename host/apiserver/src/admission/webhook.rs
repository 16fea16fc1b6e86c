//! One admission webhook, as its configuration describes it.
//!
//! Owns the form of a webhook in a configuration, and whether it is called for a request. Must not
//! know how it is called.

use serde_json::Value;
use vmhost_rules::{Authorizer, Scope, Seen};

use super::conditions::{self, Checked, VARIABLES};
use super::review::{GROUP, Review};
use super::rules::{Criteria, Found};
use crate::reach::Reach;

/// Returns those webhooks that a request may call. A request for an object that configures
/// admission calls no webhook, which could keep itself from being removed.
pub(super) fn called<'w>(all: &'w [Webhook], review: &Review) -> &'w [Webhook] {
    match review.kind.group == GROUP {
        true => &[],
        false => all,
    }
}

/// A webhook.
#[derive(Debug)]
pub(crate) struct Webhook {
    pub name: String,
    /// Identifies the webhook among all.
    pub id: String,
    pub reach: Reach,
    pub criteria: Criteria,
    scope: Scope,
    conditions: Vec<Checked>,
    /// Whether a failure of the call lets the request pass.
    pub fail_open: bool,
    pub allows_dry_run: bool,
    /// Seconds.
    pub timeout: u64,
    /// Whether it is called again after a later one changed the object.
    pub again: bool,
    /// The version of AdmissionReview that it is sent; `None`: it knows none of this server's.
    pub version: Option<&'static str>,
}

impl Webhook {
    /// Reads the webhooks of a configuration, in their order.
    pub fn read_all(configuration: &Value) -> Vec<Webhook> {
        let name = configuration.pointer("/metadata/name");
        let name = name.and_then(Value::as_str).unwrap_or_default();
        let list = configuration["webhooks"].as_array().into_iter().flatten();
        let numbered = list.enumerate();
        numbered
            .map(|(at, webhook)| Webhook::read(&format!("{name}/{at}"), webhook))
            .collect()
    }

    fn read(id: &str, webhook: &Value) -> Webhook {
        let text = |field: &str| webhook[field].as_str().unwrap_or_default();
        let scope = Scope::new(&VARIABLES).with_authorizer();
        let versions = webhook["admissionReviewVersions"].as_array();
        let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
        Webhook {
            name: text("name").to_owned(),
            id: format!("{id}/{}", text("name")),
            reach: Reach::read(&webhook["clientConfig"]),
            criteria: Criteria::of_webhook(webhook),
            conditions: conditions::read(&webhook["matchConditions"], &scope),
            scope,
            fail_open: text("failurePolicy") == "Ignore",
            allows_dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            timeout: webhook["timeoutSeconds"].as_u64().unwrap_or(10),
            again: text("reinvocationPolicy") == "IfNeeded",
            version: versions.find_map(|version| match version {
                "v1" => Some("v1"),
                "v1beta1" => Some("v1beta1"),
                _ => None,
            }),
        }
    }

    /// Returns whether the conditions hold. `object` and `old` are in the version that the webhook
    /// gets; `by` tells what the author of the request may do. An error says which have no result.
    pub fn holds(
        &self,
        (review, found): (&Review, &Found),
        by: &dyn Authorizer,
        object: &Value,
        old: &Value,
    ) -> Result<bool, String> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let request = review.request(&found.resource, &found.kind);
        let seen = Seen::of(&[object, old, &request]).with_authorizer(by);
        let held = conditions::hold(&self.conditions, &self.scope, &seen);
        match held {
            Err(_) if self.fail_open => Ok(false),
            held => held,
        }
    }
}
