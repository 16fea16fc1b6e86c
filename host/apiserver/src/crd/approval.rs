//! The approval that definitions of Kubernetes' own groups need.
//!
//! Owns who needs it and what it says. Follows k8s.io/apiextensions-apiserver `pkg/apihelpers` and
//! `pkg/controller/apiapproval`. Must not know the rest of a definition.

use serde_json::{Value, json};

use super::text::invalid;
use crate::meta;
use crate::status::{Cause, REQUIRED, cause};

const ANNOTATION: &str = "api-approved.kubernetes.io";
const PAGE: &str = "https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation says: whether the group is approved, the reason and its text.
pub(super) struct Approval {
    pub approved: bool,
    pub reason: &'static str,
    pub text: String,
}

/// Returns the approval of a definition; `None` if its group needs none.
pub(super) fn of(definition: &Value) -> Option<Approval> {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    let own = ["k8s.io", "kubernetes.io"].into_iter().any(|domain| {
        let rest = group.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if !own {
        return None;
    }
    let made = |approved, reason, text| Approval {
        approved,
        reason,
        text,
    };
    let annotation = annotation(definition);
    let is_url = annotation.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/')
    });
    let wanted = format!("protected groups must have approval annotation {ANNOTATION:?}");
    Some(match annotation {
        "" => made(false, "MissingAnnotation", format!("{wanted}, see {PAGE}")),
        text if text.starts_with("unapproved") => made(
            false,
            "UnapprovedAnnotation",
            format!("not approved: {text:?}"),
        ),
        text if is_url => made(true, "ApprovedAnnotation", format!("approved in {text}")),
        _ => {
            let text = format!(
                "{wanted} with either a URL or a reason starting with \"unapproved\", see {PAGE}"
            );
            made(false, "InvalidAnnotation", text)
        }
    })
}

/// Returns why a new definition is refused for its approval.
pub(super) fn refusal(definition: &Value) -> Option<Cause> {
    let approval = of(definition)?;
    let field = format!("metadata.annotations[{ANNOTATION}]");
    match approval.reason {
        "MissingAnnotation" => {
            let message = format!("Required value: {}", approval.text);
            Some(cause(REQUIRED, field, message))
        }
        "InvalidAnnotation" => {
            let value = json!(annotation(definition));
            Some(invalid(field, &value, &approval.text))
        }
        _ => None,
    }
}

fn annotation(definition: &Value) -> &str {
    meta::get(definition, "annotations")
        .and_then(|annotations| annotations.get(ANNOTATION))
        .and_then(Value::as_str)
        .unwrap_or_default()
}
