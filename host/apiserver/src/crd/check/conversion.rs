//! The conversion of a definition's objects.
//!
//! Owns its defaults and rules. Follows k8s.io/apiextensions-apiserver
//! `pkg/apis/apiextensions/validation`. Must not know how objects are converted.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::crd::text::invalid;
use crate::reach;
use crate::status::{Cause, FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED, cause};

/// The versions of ConversionReview that this server sends.
const KNOWN: [&str; 2] = ["v1", "v1beta1"];

/// Fills in the port of a webhook's service.
pub(super) fn default(conversion: &mut Value) {
    let service = conversion.pointer_mut("/webhook/clientConfig/service");
    if let Some(service) = service.and_then(Value::as_object_mut) {
        service.entry("port").or_insert_with(|| json!(443));
    }
}

pub(super) fn check(conversion: &Value, causes: &mut Vec<Cause>) {
    let at = "spec.conversion";
    let strategy = conversion["strategy"].as_str().unwrap_or_default();
    let webhook = conversion.get("webhook").filter(|w| w.is_object());
    let config = webhook.and_then(|webhook| webhook.get("clientConfig"));
    let config = config.filter(|config| config.is_object());
    let versions = webhook.and_then(|webhook| webhook["conversionReviewVersions"].as_array());
    match strategy {
        "Webhook" => {
            match config {
                Some(config) => {
                    let field = format!("{at}.webhookClientConfig");
                    reach::check::check(config, &field, causes);
                }
                None => {
                    let why = "Required value: required when strategy is set to Webhook";
                    causes.push(cause(REQUIRED, format!("{at}.webhookClientConfig"), why));
                }
            }
            review_versions(versions, causes);
        }
        "None" => {
            let why = "Forbidden: should not be set when strategy is not set to Webhook";
            if config.is_some() {
                causes.push(cause(FORBIDDEN, format!("{at}.webhookClientConfig"), why));
            }
            if versions.is_some_and(|versions| !versions.is_empty()) {
                let field = format!("{at}.conversionReviewVersions");
                causes.push(cause(FORBIDDEN, field, why));
            }
        }
        "" => causes.push(cause(REQUIRED, format!("{at}.strategy"), "Required value")),
        other => {
            let known = "\"None\", \"Webhook\"";
            let message = format!("Unsupported value: {other:?}: supported values: {known}");
            causes.push(cause(NOT_SUPPORTED, format!("{at}.strategy"), message));
        }
    }
}

fn review_versions(versions: Option<&Vec<Value>>, causes: &mut Vec<Cause>) {
    let field = "spec.conversion.conversionReviewVersions";
    let Some(versions) = versions.filter(|versions| !versions.is_empty()) else {
        causes.push(cause(REQUIRED, field, "Required value"));
        return;
    };
    let mut seen = HashSet::new();
    for (at, version) in versions.iter().enumerate() {
        if !seen.insert(version) {
            causes.push(invalid(
                format!("{field}[{at}]"),
                version,
                "duplicate version",
            ));
        }
    }
    let is_known = |version: &Value| version.as_str().is_some_and(|v| KNOWN.contains(&v));
    if !versions.iter().any(is_known) {
        let texts: Vec<&str> = versions.iter().filter_map(Value::as_str).collect();
        let shown = json!(texts);
        let message = format!("Invalid value: {shown}: must include at least one of v1, v1beta1");
        causes.push(cause(INVALID, field, message));
    }
}
