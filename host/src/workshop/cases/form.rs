//! The JSON form of an outcome in a case, with the names of `wit/v1`, and with bodies as JSON
//! instead of text.
//!
//! It owns the form and its equality. It must not know files, or the comparison of outcomes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use vmhost_core::{EventType, Next, PatchType, Propagation};

mod convert;

/// An `expect.json`: either `effects` and `next`, or `keys` (for a case of `mapChanges`), or
/// `allowed` with what belongs to a verdict (`admission.json`), or `objects` (`conversion.json`),
/// or `error`. Each may also have `logs`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Expectation {
    /// The effects, in order. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effects: Option<Vec<EffectForm>>,
    /// The action after the effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Next>,
    /// The keys to which the changes are mapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keys: Option<Vec<NameForm>>,
    /// Whether the request may go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed: Option<bool>,
    /// What the user is told of a refusal: message, reason and code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<Value>,
    /// The operations of the JSON patch. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) patch: Option<Vec<Value>>,
    /// The warnings. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnings: Option<Vec<String>>,
    /// The annotations of the audit event. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audit_annotations: Option<Value>,
    /// The converted objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) objects: Option<Vec<Value>>,
    /// The call fails, and its error contains this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The log lines. Absent if they are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) logs: Option<Vec<Line>>,
}

/// A log line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) level: Level,
    /// The text, on one line.
    pub(crate) message: String,
}

/// The level of a log line. Text that a plugin prints is `debug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// `trace`.
    Trace,
    /// `debug`.
    Debug,
    /// `info`.
    Info,
    /// `warn`.
    Warn,
    /// `error`.
    Error,
}

/// An effect: `{"patch": {...}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(
    clippy::large_enum_variant,
    reason = "a case has a handful of effects, and boxes would only stand in the way of the derives"
)]
pub(crate) enum EffectForm {
    /// A server-side apply.
    Apply(ApplyForm),
    /// A JSON merge patch or a JSON patch.
    Patch(PatchForm),
    /// A create.
    Create(CreateForm),
    /// A delete.
    Delete(DeleteForm),
    /// An Event.
    Event(EventForm),
    /// An effect that this host does not know.
    Other(OtherForm),
}

/// `apply` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ApplyForm {
    object: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subresource: Option<String>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    create_if_absent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    if_version: Option<String>,
}

/// `patch` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PatchForm {
    key: KeyForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subresource: Option<String>,
    #[serde(rename = "type")]
    kind: PatchType,
    body: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    if_version: Option<String>,
}

/// `create` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateForm {
    object: Value,
}

/// `delete` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeleteForm {
    key: KeyForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    if_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    propagation: Option<Propagation>,
}

/// `event` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EventForm {
    #[serde(rename = "type")]
    kind: EventType,
    reason: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    action: String,
    note: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    related: Option<KeyForm>,
}

/// `other` of `wit/v1`, by its name; an effect for a named cluster by its body too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OtherForm {
    name: String,
    /// Absent if it is not compared: older hosts recorded none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<BodyForm>,
}

/// The body of an effect for a named cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum BodyForm {
    /// It names a cluster, and has an effect.
    InCluster(InClusterForm),
    /// It says something else, which the host refuses.
    Unread(Value),
}

/// An effect in another cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InClusterForm {
    /// `null` for the host's own cluster. It has to be there.
    #[serde(deserialize_with = "Option::deserialize")]
    cluster: Option<String>,
    effect: Box<EffectForm>,
}

/// The key of an object, with its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct KeyForm {
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
}

/// The name of an object whose kind is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NameForm {
    /// `None` for a cluster-scoped kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Expectation {
    /// Checks that the expectation has exactly one of its contents, and normalises it for the
    /// comparison. The error names the field.
    pub(crate) fn settle(mut self) -> Result<Self, &'static str> {
        let contents = [
            self.next.is_some(),
            self.keys.is_some(),
            self.error.is_some(),
            self.allowed.is_some(),
            self.objects.is_some(),
        ];
        match contents.into_iter().filter(|is_there| *is_there).count() {
            0 if self.effects.is_some() => return Err("next is missing"),
            0 => return Err(MISSING),
            1 if self.next.is_some() || self.effects.is_none() => {}
            _ => return Err(ONE),
        }
        if self.allowed.is_none() && self.has_verdict() {
            return Err(
                "allowed is missing: status, patch, warnings and auditAnnotations go with it",
            );
        }
        if self.next.is_some() {
            for effect in self.effects.get_or_insert_default() {
                effect.settle();
            }
        }
        // What is empty is as good as absent.
        self.patch = self.patch.filter(|patch| !patch.is_empty());
        self.warnings = self.warnings.filter(|warnings| !warnings.is_empty());
        let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
        self.audit_annotations = self.audit_annotations.filter(|value| !is_empty(value));
        let patch = self.patch.iter_mut().flatten();
        patch
            .chain(self.objects.iter_mut().flatten())
            .for_each(settle);
        Ok(self)
    }

    /// Leaves out what this result has and the expected one does not look at: logs, and the bodies
    /// of `other` effects.
    pub(crate) fn as_far_as(&mut self, expected: &Self) {
        if expected.logs.is_none() {
            self.logs = None;
        }
        let effects = self.effects.iter_mut().flatten();
        for (one, expected) in effects.zip(expected.effects.iter().flatten()) {
            if let (EffectForm::Other(one), EffectForm::Other(expected)) = (one, expected)
                && expected.body.is_none()
            {
                one.body = None;
            }
        }
    }

    fn has_verdict(&self) -> bool {
        let texts = self.status.is_some() || self.audit_annotations.is_some();
        texts || self.patch.is_some() || self.warnings.is_some()
    }
}

/// An expectation says nothing.
const MISSING: &str = "next is missing (or error, or keys for a case of mapChanges, or allowed for admission.json, or objects for conversion.json)";

/// An expectation says several things.
const ONE: &str = "only one of these is allowed: effects with next, keys, allowed, objects, error";

impl EffectForm {
    fn settle(&mut self) {
        match self {
            Self::Apply(ApplyForm { object, .. }) | Self::Create(CreateForm { object }) => {
                settle(object);
            }
            Self::Patch(PatchForm { body, .. }) => settle(body),
            Self::Other(OtherForm { body, .. }) => match body {
                Some(BodyForm::InCluster(there)) => there.effect.settle(),
                Some(BodyForm::Unread(body)) => settle(body),
                None => {}
            },
            Self::Delete(_) | Self::Event(_) => {}
        }
    }
}

/// Normalises numbers: JSON has one kind of number, so 1.0 becomes 1.
pub(crate) fn settle(value: &mut Value) {
    /// Up to this number every integer is exact as a floating-point number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(members) => members.values_mut().for_each(settle),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < EXACT {
                *value = Value::from(float as i64);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
