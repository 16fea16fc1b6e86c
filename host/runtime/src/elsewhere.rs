//! The effect `in-cluster`, by which a turn writes to another cluster than its own: its name, and
//! what its body says. The body names the cluster, and has one effect in the form of a test case:
//!
//! ```json
//! { "cluster": "east",
//!   "effect": { "patch": { "key": { "apiVersion": "v1", "kind": "ConfigMap", "name": "x" },
//!                          "type": "merge", "body": { "data": {} } } } }
//! ```
//! `null` as the cluster is home. This module must not know which clusters there are.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use vmhost_core::{
    Apply, Create, Delete, Effect, Gvk, ObjectKey, ObjectName, Other, Patch, PatchType, Propagation,
};

/// Where the form of a test case has the effect for the named cluster.
pub(crate) const INNER: &str = "/other/body/effect";

/// The name of the effect.
const NAME: &str = Other::IN_CLUSTER;

/// An effect for a cluster that it names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// The name of the member; `None` for the host's own cluster.
    pub(crate) cluster: Option<String>,
    /// The effect.
    pub(crate) effect: Effect,
}

impl Elsewhere {
    /// The cluster, for people: `cluster east`, or `home`.
    pub(crate) fn place(&self) -> String {
        match &self.cluster {
            None => "home".to_owned(),
            Some(name) => format!("cluster {name}"),
        }
    }
}

/// Reads an effect that is for a named cluster; `None` for any other. The error says what is wrong
/// with its body.
pub(crate) fn read(effect: &Effect) -> Option<Result<Elsewhere, String>> {
    match effect {
        Effect::Other(other) if other.name == NAME => Some(of_body(&other.body)),
        _ => None,
    }
}

/// Effects with those for named clusters as if they were for the turn's own. The error names the
/// first that cannot be read.
pub(crate) fn plain(effects: &[Effect]) -> Result<Cow<'_, [Effect]>, (usize, String)> {
    if effects.iter().all(|effect| read(effect).is_none()) {
        return Ok(Cow::Borrowed(effects));
    }
    let plain = effects.iter().enumerate().map(|(index, effect)| {
        let read = read(effect).map(|read| read.map(|elsewhere| elsewhere.effect));
        let read = read.unwrap_or_else(|| Ok(effect.clone()));
        read.map_err(|reason| (index, reason))
    });
    plain.collect::<Result<Vec<_>, _>>().map(Cow::Owned)
}

fn of_body(body: &str) -> Result<Elsewhere, String> {
    let body: Body =
        serde_json::from_str(body).map_err(|error| format!("the body of {NAME}: {error}"))?;
    Ok(Elsewhere {
        cluster: body.cluster,
        effect: body.effect.into(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    // A field that is left out would be home by mistake.
    #[serde(deserialize_with = "Option::deserialize")]
    cluster: Option<String>,
    effect: Form,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    Apply(ApplyForm),
    Patch(PatchForm),
    Create(CreateForm),
    Delete(DeleteForm),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ApplyForm {
    object: Box<RawValue>,
    subresource: Option<String>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    create_if_absent: bool,
    if_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PatchForm {
    key: KeyForm,
    subresource: Option<String>,
    #[serde(rename = "type")]
    kind: PatchType,
    body: Box<RawValue>,
    if_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateForm {
    object: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeleteForm {
    key: KeyForm,
    uid: Option<String>,
    if_version: Option<String>,
    propagation: Option<Propagation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KeyForm {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
}

impl From<KeyForm> for ObjectKey {
    fn from(form: KeyForm) -> Self {
        Self {
            kind: Gvk::from_api_version(&form.api_version, &form.kind),
            name: ObjectName::new(form.namespace.as_deref(), &form.name),
        }
    }
}

impl From<Form> for Effect {
    fn from(form: Form) -> Self {
        let text = |json: Box<RawValue>| json.get().to_owned();
        match form {
            Form::Apply(apply) => Self::Apply(Apply {
                object: text(apply.object),
                subresource: apply.subresource,
                force: apply.force,
                create_if_absent: apply.create_if_absent,
                if_version: apply.if_version,
            }),
            Form::Patch(patch) => Self::Patch(Patch {
                key: patch.key.into(),
                subresource: patch.subresource,
                kind: patch.kind,
                body: text(patch.body),
                if_version: patch.if_version,
            }),
            Form::Create(create) => Self::Create(Create {
                object: text(create.object),
            }),
            Form::Delete(delete) => Self::Delete(Delete {
                key: delete.key.into(),
                uid: delete.uid,
                if_version: delete.if_version,
                propagation: delete.propagation,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(name: &str, body: &str) -> Effect {
        Effect::Other(Other {
            name: name.into(),
            body: body.into(),
        })
    }

    #[test]
    fn an_effect_and_its_cluster_are_read() {
        let key = ObjectKey {
            kind: Gvk::new("", "v1", "ConfigMap"),
            name: ObjectName::new(Some("a"), "x"),
        };
        let apply = r#"{"cluster":"east","effect":{"apply":{"object":{"b": 1.0},"force":true}}}"#;
        let read_apply = read(&effect(NAME, apply)).unwrap().unwrap();
        assert_eq!(read_apply.cluster.as_deref(), Some("east"));
        match read_apply.effect {
            // The text stays as the plugin wrote it.
            Effect::Apply(apply) => assert!(apply.object == r#"{"b": 1.0}"# && apply.force),
            other => panic!("{other:?}"),
        }
        let delete = r#"{"cluster":null,"effect":{"delete":{"key":{"apiVersion":"v1","kind":"ConfigMap","namespace":"a","name":"x"}}}}"#;
        let read_delete = read(&effect(NAME, delete)).unwrap().unwrap();
        assert_eq!(read_delete.cluster, None);
        assert_eq!(read_delete.effect.key(), Ok(Some(key)));
        assert_eq!(read(&effect("teleport", apply)), None);
    }

    #[test]
    fn a_body_that_says_something_else_is_refused() {
        let delete = r#"{"delete":{"key":{"apiVersion":"v1","kind":"ConfigMap","name":"x"}}}"#;
        for (body, words) in [
            (format!(r#"{{"effect":{delete}}}"#), "cluster"),
            (format!(r#"{{"cluster":"a","effect":{delete},"b":1}}"#), "b"),
            (
                r#"{"cluster":"a","effect":{"event":{}}}"#.to_owned(),
                "event",
            ),
            ("[]".to_owned(), NAME),
        ] {
            let effects = [effect("teleport", "{}"), effect(NAME, &body)];
            let (index, reason) = plain(&effects).unwrap_err();
            assert!(index == 1 && reason.contains(words), "{body}: {reason}");
        }
    }
}
