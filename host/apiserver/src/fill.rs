//! Defaults and checks of built-in kinds that their data cannot express: addresses, policies,
//! classes.
//!
//! `kinds.json` selects them by name. Follows k8s.io/kubernetes `pkg/apis/*/v1/defaults.go` and the
//! admission plugins of every cluster. Must not know requests, or store anything.

mod absent;
mod pod;
mod service;

use serde_json::{Value, json};

use crate::kinds::Fill;
use crate::state::Inner;
use crate::status::{Cause, INVALID, cause};
use absent::absent;

/// Completes an object after its schema's defaults were filled in; returns what is wrong with it.
pub(crate) fn fill(kind: Fill, inner: &Inner, live: Option<&Value>, new: &mut Value) -> Vec<Cause> {
    match kind {
        Fill::Nothing => {}
        Fill::Pod => pod::fill(live, new),
        Fill::Template => template(new),
        Fill::Deployment => {
            let quarter = json!({ "maxSurge": "25%", "maxUnavailable": "25%" });
            rolling_update(new.pointer_mut("/spec/strategy"), &quarter);
            template(new);
        }
        Fill::StatefulSet => {
            rolling_update(
                new.pointer_mut("/spec/updateStrategy"),
                &json!({ "partition": 0 }),
            );
            template(new);
        }
        Fill::Service => return service::fill(inner, live, new),
        Fill::AccessReview => return access_review(new),
    }
    Vec::new()
}

fn template(object: &mut Value) {
    if let Some(spec) = object.pointer_mut("/spec/template/spec") {
        pod::spec(spec);
    }
}

fn rolling_update(strategy: Option<&mut Value>, default: &Value) {
    let Some(strategy) = strategy.filter(|strategy| strategy["type"] == "RollingUpdate") else {
        return;
    };
    absent(strategy, &json!({ "rollingUpdate": {} }));
    if let Some(rolling) = strategy.get_mut("rollingUpdate") {
        absent(rolling, default);
    }
}

fn access_review(review: &Value) -> Vec<Cause> {
    let asked = |what: &str| review["spec"].get(what);
    let refusal = match (asked("resourceAttributes"), asked("nonResourceAttributes")) {
        (None, None) => cause(
            INVALID,
            "spec.resourceAttributes",
            "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (Some(_), Some(other)) => cause(
            INVALID,
            "spec.nonResourceAttributes",
            format!(
                "Invalid value: {other}: cannot be specified in combination with resourceAttributes"
            ),
        ),
        _ => return Vec::new(),
    };
    vec![refusal]
}
