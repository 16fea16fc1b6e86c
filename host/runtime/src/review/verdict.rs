//! Takes the answer to a review out of an outcome: exactly one effect `other` with the review's
//! name. Everything else is a failure, so that the API server's failure policy decides.
//!
//! Pure functions.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use vmhost_core::description::webhook::WebhookType;
use vmhost_core::{Description, Effect, Next, Outcome};
use vmhost_webhook::{Converted, Unanswered, Verdict};

/// The effects that answer reviews.
const ADMISSION: &str = "admission";
const CONVERSION: &str = "conversion";

/// An answer to a review.
pub(super) trait Answered {
    /// What it says, as one word for metric labels.
    fn result(&self) -> &'static str;

    /// Why a request is denied; `None` if it is not.
    fn denied(&self) -> Option<String> {
        None
    }
}

impl Answered for Verdict {
    fn result(&self) -> &'static str {
        if self.allowed { "allowed" } else { "denied" }
    }

    fn denied(&self) -> Option<String> {
        let field = |name: &str| self.status.as_ref().and_then(|status| status.get(name));
        let code = field("code").and_then(Value::as_u64);
        let message = field("message").and_then(Value::as_str);
        let words = [
            code.map(|code| code.to_string()),
            message.map(str::to_owned),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        (!self.allowed).then(|| match words.is_empty() {
            true => "no reason given".to_owned(),
            false => words.join(" "),
        })
    }
}

impl Answered for Converted {
    fn result(&self) -> &'static str {
        "converted"
    }
}

/// An AdmissionResponse without uid, and with its patch as a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Admission {
    allowed: bool,
    #[serde(default)]
    status: Option<Map<String, Value>>,
    #[serde(default)]
    patch: Option<Vec<Value>>,
    #[serde(default)]
    warnings: Option<Vec<String>>,
    #[serde(default)]
    audit_annotations: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Conversion {
    #[serde(default)]
    converted_objects: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    failed: Option<String>,
}

/// The verdict of the webhook of this name.
pub fn admission(
    description: &Description,
    webhook: &str,
    outcome: Outcome,
) -> Result<Verdict, Unanswered> {
    let answer: Admission = answer(ADMISSION, outcome)?;
    let patch = answer.patch.filter(|patch| !patch.is_empty());
    let kind = description.webhook(webhook).map(|webhook| webhook.kind);
    if patch.is_some() && kind != Some(WebhookType::Mutating) {
        let text = "its verdict holds a patch, and a validating webhook may change nothing";
        return Err(failed(text));
    }
    let annotations = answer.audit_annotations.unwrap_or_default();
    if let Some((name, _)) = annotations.iter().find(|(_, value)| !value.is_string()) {
        return Err(failed(format!(
            "the audit annotation {name:?} of its verdict is not a string"
        )));
    }
    Ok(Verdict {
        allowed: answer.allowed,
        status: answer.status.map(Value::Object),
        patch,
        warnings: answer.warnings.unwrap_or_default(),
        audit_annotations: annotations,
    })
}

/// What a conversion made of the objects, not checked yet.
pub fn conversion(outcome: Outcome) -> Result<Vec<Box<RawValue>>, Unanswered> {
    let answer: Conversion = answer(CONVERSION, outcome)?;
    match (answer.converted_objects, answer.failed) {
        (Some(objects), None) => Ok(objects),
        (None, Some(reason)) => Err(failed(reason)),
        _ => Err(failed(
            "its answer must hold either `convertedObjects` or `failed`",
        )),
    }
}

/// The body of the only effect of an outcome that ends the turn.
fn answer<T: serde::de::DeserializeOwned>(name: &str, outcome: Outcome) -> Result<T, Unanswered> {
    match outcome.next {
        Next::AwaitChange => {}
        Next::Retry(reason) | Next::Fail(reason) => return Err(failed(reason)),
        Next::Requeue | Next::RequeueAfterMs(_) | Next::Finalized => {
            return Err(failed(
                "it wants another turn, and a review has only one: it must end with await-change",
            ));
        }
    }
    let count = outcome.effects.len();
    let mut effects = outcome.effects.into_iter();
    let body = match (effects.next(), effects.next()) {
        (Some(Effect::Other(other)), None) if other.name == name => other.body,
        (None, _) => {
            return Err(failed(format!(
                "it gave no answer: a review ends with one effect `other` named {name:?}"
            )));
        }
        (Some(effect), None) => {
            return Err(failed(format!(
                "it returned the effect `{}`: a review ends with one effect `other` named {name:?}, and does nothing else",
                effect.verb()
            )));
        }
        (Some(_), Some(_)) => {
            return Err(failed(format!(
                "it returned {count} effects: a review ends with one, `other` named {name:?}"
            )));
        }
    };
    serde_json::from_str(&body).map_err(|error| {
        failed(format!(
            "the body of its effect `other` named {name:?} is invalid: {error}"
        ))
    })
}

fn failed(reason: impl Into<String>) -> Unanswered {
    Unanswered::Failed(reason.into())
}

#[cfg(test)]
mod tests;
