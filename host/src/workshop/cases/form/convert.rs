//! Converts the engine's results to the form, field by field, so that a new field of the contract
//! is not forgotten.

use serde_json::Value;
use vmhost_core::{Apply, Create, Delete, Effect, Event, ObjectKey, ObjectName, Other, Patch};

use super::{
    ApplyForm, BodyForm, CreateForm, DeleteForm, EffectForm, EventForm, InClusterForm, KeyForm,
    NameForm, OtherForm, PatchForm, settle,
};

/// Returns the plugin's text as JSON, or as a string if it is not valid JSON.
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
            Effect::Other(other) => Self::Other(other.into()),
        }
    }
}

impl From<&Other> for OtherForm {
    fn from(other: &Other) -> Self {
        // The host refuses any other name, whatever the body.
        let names_cluster = other.name == Other::IN_CLUSTER;
        Self {
            name: other.name.clone(),
            body: names_cluster.then(|| body_form(&other.body)),
        }
    }
}

/// Returns the body of an effect for a named cluster.
fn body_form(text: &str) -> BodyForm {
    match serde_json::from_str::<InClusterForm>(text) {
        Ok(mut there) => {
            there.effect.settle();
            BodyForm::InCluster(there)
        }
        Err(_) => BodyForm::Unread(body(text)),
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
            kind: patch.kind,
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
            propagation: delete.propagation,
        }
    }
}

impl From<&Event> for EventForm {
    fn from(event: &Event) -> Self {
        Self {
            kind: event.kind,
            reason: event.reason.clone(),
            action: event.action.clone(),
            note: event.note.clone(),
            related: event.related.as_ref().map(Into::into),
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
