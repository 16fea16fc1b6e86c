//! Builds an effect in another cluster than the turn's, as the contract writes it.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::bindings::vmhost::plugin::types::{
    Apply, Create, Delete, Effect, ObjectKey, Other, Patch, PatchType, Propagation,
};
use crate::error::{Error, Result};

impl Other {
    /// An [`Apply`], [`Patch`], [`Create`] or [`Delete`] in the member cluster of this name, or in
    /// the host's own for `None`, instead of the turn's. The plugin needs the same permission, and
    /// a controller in that cluster.
    pub fn in_cluster(cluster: Option<&str>, effect: impl Into<Effect>) -> Result<Self> {
        let effect = effect.into();
        let effect = Form::of(&effect)?;
        Ok(Self {
            name: "in-cluster".into(),
            body: serde_json::to_string(&Body { cluster, effect })?,
        })
    }
}

#[derive(Serialize)]
struct Body<'a> {
    cluster: Option<&'a str>,
    effect: Form<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Form<'a> {
    Apply(ApplyForm<'a>),
    Patch(PatchForm<'a>),
    Create(CreateForm<'a>),
    Delete(DeleteForm<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApplyForm<'a> {
    object: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    subresource: Option<&'a str>,
    force: bool,
    create_if_absent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    if_version: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchForm<'a> {
    key: KeyForm<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subresource: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
    body: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    if_version: Option<&'a str>,
}

#[derive(Serialize)]
struct CreateForm<'a> {
    object: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteForm<'a> {
    key: KeyForm<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    if_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    propagation: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyForm<'a> {
    api_version: String,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> Form<'a> {
    fn of(effect: &'a Effect) -> Result<Self> {
        Ok(match effect {
            Effect::Apply(Apply {
                object,
                subresource,
                force,
                create_if_absent,
                if_version,
            }) => Self::Apply(ApplyForm {
                object: serde_json::from_str(object)?,
                subresource: subresource.as_deref(),
                force: *force,
                create_if_absent: *create_if_absent,
                if_version: if_version.as_deref(),
            }),
            Effect::Patch(Patch {
                key,
                subresource,
                type_,
                body,
                if_version,
            }) => Self::Patch(PatchForm {
                key: key_form(key),
                subresource: subresource.as_deref(),
                kind: match type_ {
                    PatchType::Merge => "merge",
                    PatchType::Json => "json",
                },
                body: serde_json::from_str(body)?,
                if_version: if_version.as_deref(),
            }),
            Effect::Create(Create { object }) => Self::Create(CreateForm {
                object: serde_json::from_str(object)?,
            }),
            Effect::Delete(Delete {
                key,
                uid,
                if_version,
                propagation,
            }) => Self::Delete(DeleteForm {
                key: key_form(key),
                uid: uid.as_deref(),
                if_version: if_version.as_deref(),
                propagation: propagation.as_ref().map(|propagation| match propagation {
                    Propagation::Background => "background",
                    Propagation::Foreground => "foreground",
                    Propagation::Orphan => "orphan",
                }),
            }),
            Effect::Event(_) | Effect::Other(_) => {
                return Err(Error::new(
                    "only an apply, patch, create or delete can be in a named cluster",
                ));
            }
        })
    }
}

fn key_form(key: &ObjectKey) -> KeyForm<'_> {
    let kind = &key.kind;
    KeyForm {
        api_version: match kind.group.as_str() {
            "" => kind.version.clone(),
            group => format!("{group}/{}", kind.version),
        },
        kind: &kind.kind,
        namespace: key.namespace.as_deref(),
        name: &key.name,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Kind;
    use crate::bindings::vmhost::plugin::types::Event;

    fn body(cluster: Option<&str>, effect: impl Into<Effect>) -> String {
        let other = Other::in_cluster(cluster, effect).unwrap();
        assert_eq!(other.name, "in-cluster");
        other.body
    }

    #[test]
    fn an_effect_is_written_with_its_cluster() {
        let key = ObjectKey::of(&Kind::core("v1", "ConfigMap"), Some("a"), "x");
        let apply = Apply::new(&json!({ "n": 1.0 })).unwrap();
        assert_eq!(
            body(Some("east"), apply.subresource("status")),
            r#"{"cluster":"east","effect":{"apply":{"object":{"n":1.0},"subresource":"status","force":true,"createIfAbsent":false}}}"#
        );
        let patch = Patch::json(&key).remove("/data");
        assert_eq!(
            body(None, patch),
            r#"{"cluster":null,"effect":{"patch":{"key":{"apiVersion":"v1","kind":"ConfigMap","namespace":"a","name":"x"},"type":"json","body":[{"op":"remove","path":"/data"}]}}}"#
        );
        let create = Create::new(&json!({ "kind": "X" })).unwrap();
        assert_eq!(
            body(None, create),
            r#"{"cluster":null,"effect":{"create":{"object":{"kind":"X"}}}}"#
        );
        let key = ObjectKey::of(&Kind::new("apps", "v1", "Deployment"), None, "x");
        let delete = Delete::new(&key).uid("u").propagation(Propagation::Orphan);
        assert_eq!(
            body(Some("east"), delete),
            r#"{"cluster":"east","effect":{"delete":{"key":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"uid":"u","propagation":"orphan"}}}"#
        );
    }

    #[test]
    fn what_writes_no_object_is_in_no_named_cluster() {
        let event = Event::normal("Fine", "");
        let error = Other::in_cluster(None, event).map(drop).unwrap_err();
        assert!(error.to_string().starts_with("only an apply"), "{error}");
        let broken = Create { object: "{".into() };
        assert!(Other::in_cluster(None, broken).is_err());
    }
}
