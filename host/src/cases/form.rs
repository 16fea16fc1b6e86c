//! How an outcome is written down in a case: JSON with the names of `wit/v1`, bodies as JSON and not as text.
//!
//! It owns the form and its equality. It must not know files, nor what an outcome is compared for.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vmhost_core::{
    Apply, Create, Delete, Effect, Event, EventType, Gvk, Next, ObjectKey, ObjectName, Patch,
    PatchType, Propagation,
};

/// `expect.json`. One of: `effects` and `next`; `keys`, for a case of `mapChanges`; `error`. `logs` may stand beside each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Expectation {
    /// What is to be done, in this order. Left out: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<EffectForm>>,
    /// What comes then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextForm>,
    /// The keys that changes are mapped to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<NameForm>>,
    /// The call fails, and its error holds this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What is logged. Left out: that is not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<Vec<Line>>,
}

/// A log line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// Its text, in one line.
    pub message: String,
}

/// How much a log line matters. What a policy prints is `debug`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
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

/// What comes after the effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NextForm {
    /// `"awaitChange"`.
    AwaitChange,
    /// `{"requeueAfterMs": 5}`.
    RequeueAfterMs(u32),
    /// `"requeue"`.
    Requeue,
    /// `{"retry": "text"}`.
    Retry(String),
    /// `{"fail": "text"}`.
    Fail(String),
    /// `"finalized"`.
    Finalized,
}

/// An effect: `{"patch": {...}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(
    clippy::large_enum_variant,
    reason = "a case has a handful of effects, and boxes would only stand in the way of the derives"
)]
pub enum EffectForm {
    /// Server-side apply.
    Apply(ApplyForm),
    /// JSON merge patch or JSON patch.
    Patch(PatchForm),
    /// Create.
    Create(CreateForm),
    /// Delete.
    Delete(DeleteForm),
    /// An Event.
    Event(EventForm),
    /// One that this host does not know.
    Other(OtherForm),
}

/// `apply` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyForm {
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
pub struct PatchForm {
    key: KeyForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subresource: Option<String>,
    #[serde(rename = "type")]
    kind: PatchTypeForm,
    body: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    if_version: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PatchTypeForm {
    Merge,
    Json,
}

/// `create` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateForm {
    object: Value,
}

/// `delete` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteForm {
    key: KeyForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    if_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    propagation: Option<PropagationForm>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PropagationForm {
    Background,
    Foreground,
    Orphan,
}

/// `event` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventForm {
    #[serde(rename = "type")]
    kind: EventTypeForm,
    reason: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    action: String,
    note: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    related: Option<KeyForm>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EventTypeForm {
    Normal,
    Warning,
}

/// `other` of `wit/v1`, by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherForm {
    name: String,
}

/// Names an object of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyForm {
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
}

/// Names an object of a kind that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameForm {
    /// None for a cluster-scoped kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Expectation {
    /// Does it say one thing, and all of it? Puts it into the one form in which it is compared. The error names the field.
    pub fn settle(mut self) -> Result<Self, &'static str> {
        match (&self.next, &self.keys, &self.error) {
            (Some(_), None, None) => {
                for effect in self.effects.get_or_insert_default() {
                    effect.settle();
                }
                Ok(self)
            }
            (None, Some(_), None) | (None, None, Some(_)) if self.effects.is_none() => Ok(self),
            (None, None, None) if self.effects.is_some() => Err("next is missing"),
            (None, None, None) => {
                Err("next is missing (or error, or keys for a case of mapChanges)")
            }
            _ => Err("of effects with next, keys and error it may have one only"),
        }
    }
}

impl EffectForm {
    fn settle(&mut self) {
        match self {
            Self::Apply(ApplyForm { object, .. }) | Self::Create(CreateForm { object }) => {
                settle(object);
            }
            Self::Patch(PatchForm { body, .. }) => settle(body),
            Self::Delete(_) | Self::Event(_) | Self::Other(_) => {}
        }
    }
}

/// JSON has one kind of number: 1.0 is 1.
fn settle(value: &mut Value) {
    /// Up to here every integer has a floating-point number of its own.
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

/// A text of the policy's as JSON; one that is none, as a string.
fn body(text: &str) -> Value {
    let mut value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    settle(&mut value);
    value
}

impl From<&Effect> for EffectForm {
    fn from(effect: &Effect) -> Self {
        match effect {
            Effect::Apply(apply) => Self::Apply(apply.into()),
            Effect::Patch(patch) => Self::Patch(patch.into()),
            Effect::Create(Create { object }) => Self::Create(CreateForm {
                object: body(object),
            }),
            Effect::Delete(delete) => Self::Delete(delete.into()),
            Effect::Event(event) => Self::Event(event.into()),
            Effect::Other(name) => Self::Other(OtherForm { name: name.clone() }),
        }
    }
}

impl From<&Apply> for ApplyForm {
    fn from(apply: &Apply) -> Self {
        Self {
            object: body(&apply.object),
            subresource: apply.subresource.clone(),
            force: apply.force,
            create_if_absent: apply.create_if_absent,
            if_version: apply.if_version.clone(),
        }
    }
}

impl From<&Patch> for PatchForm {
    fn from(patch: &Patch) -> Self {
        Self {
            key: (&patch.key).into(),
            subresource: patch.subresource.clone(),
            kind: match patch.kind {
                PatchType::Merge => PatchTypeForm::Merge,
                PatchType::Json => PatchTypeForm::Json,
            },
            body: body(&patch.body),
            if_version: patch.if_version.clone(),
        }
    }
}

impl From<&Delete> for DeleteForm {
    fn from(delete: &Delete) -> Self {
        Self {
            key: (&delete.key).into(),
            uid: delete.uid.clone(),
            if_version: delete.if_version.clone(),
            propagation: delete.propagation.map(|propagation| match propagation {
                Propagation::Background => PropagationForm::Background,
                Propagation::Foreground => PropagationForm::Foreground,
                Propagation::Orphan => PropagationForm::Orphan,
            }),
        }
    }
}

impl From<&Event> for EventForm {
    fn from(event: &Event) -> Self {
        Self {
            kind: match event.kind {
                EventType::Normal => EventTypeForm::Normal,
                EventType::Warning => EventTypeForm::Warning,
            },
            reason: event.reason.clone(),
            action: event.action.clone(),
            note: event.note.clone(),
            related: event.related.as_ref().map(Into::into),
        }
    }
}

impl From<&Next> for NextForm {
    fn from(next: &Next) -> Self {
        match next {
            Next::AwaitChange => Self::AwaitChange,
            Next::RequeueAfterMs(ms) => Self::RequeueAfterMs(*ms),
            Next::Requeue => Self::Requeue,
            Next::Retry(text) => Self::Retry(text.clone()),
            Next::Fail(text) => Self::Fail(text.clone()),
            Next::Finalized => Self::Finalized,
        }
    }
}

impl From<&ObjectKey> for KeyForm {
    fn from(key: &ObjectKey) -> Self {
        Self {
            api_version: key.kind.api_version(),
            kind: key.kind.kind.clone(),
            namespace: key.name.namespace().map(str::to_owned),
            name: key.name.name().to_owned(),
        }
    }
}

impl From<&ObjectName> for NameForm {
    fn from(name: &ObjectName) -> Self {
        Self {
            namespace: name.namespace().map(str::to_owned),
            name: name.name().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settled(text: &str) -> Result<Expectation, &'static str> {
        serde_json::from_str::<Expectation>(text).unwrap().settle()
    }

    #[test]
    fn a_body_is_json_and_its_numbers_are_numbers() {
        let effect = Effect::Patch(Patch {
            key: ObjectKey {
                kind: Gvk::new("apps", "v1", "Deployment"),
                name: ObjectName::new(Some("a"), "x"),
            },
            subresource: Some("status".into()),
            kind: PatchType::Merge,
            body: r#"{"b":2.0,"a":[1e3,0.5]}"#.into(),
            if_version: None,
        });
        let written = serde_json::to_value(EffectForm::from(&effect)).unwrap();
        let wanted = json!({ "patch": {
            "key": { "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "a", "name": "x" },
            "subresource": "status", "type": "merge", "body": { "a": [1000, 0.5], "b": 2 },
        } });
        assert_eq!(written, wanted);
        let expected = settled(&json!({ "effects": [wanted], "next": "awaitChange" }).to_string());
        assert_eq!(
            expected.unwrap().effects.unwrap(),
            [EffectForm::from(&effect)]
        );
    }

    #[test]
    fn every_effect_is_read_as_it_is_written() {
        let key = ObjectKey {
            kind: Gvk::new("", "v1", "Pod"),
            name: ObjectName::new(None, "x"),
        };
        let object = r#"{"kind":"Pod"}"#.to_owned();
        for effect in [
            Effect::Apply(Apply {
                object: object.clone(),
                subresource: None,
                force: true,
                create_if_absent: false,
                if_version: Some("7".into()),
            }),
            Effect::Create(Create { object }),
            Effect::Delete(Delete {
                key: key.clone(),
                uid: Some("u".into()),
                if_version: None,
                propagation: Some(Propagation::Orphan),
            }),
            Effect::Event(Event {
                kind: EventType::Warning,
                reason: "Odd".into(),
                action: String::new(),
                note: "odd".into(),
                related: Some(key),
            }),
            Effect::Other("teleport".into()),
        ] {
            let form = EffectForm::from(&effect);
            let text = serde_json::to_string(&form).unwrap();
            assert_eq!(serde_json::from_str::<EffectForm>(&text).unwrap(), form);
        }
    }

    #[test]
    fn an_expectation_says_one_thing() {
        for good in [
            r#"{"next":"finalized"}"#,
            r#"{"effects":[],"next":{"requeueAfterMs":5},"logs":[]}"#,
            r#"{"keys":[{"name":"x"}]}"#,
            r#"{"error":"trapped","logs":[]}"#,
        ] {
            assert!(settled(good).is_ok(), "{good}");
        }
        for (bad, says) in [
            ("{}", "next is missing"),
            (r#"{"effects":[]}"#, "next is missing"),
            (r#"{"next":"requeue","error":"x"}"#, "one only"),
            (r#"{"effects":[],"keys":[]}"#, "one only"),
        ] {
            assert!(settled(bad).unwrap_err().contains(says), "{bad}");
        }
    }
}
