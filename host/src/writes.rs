//! From an effect to a request: which resource, which guards. The only file that writes objects to the cluster.
//!
//! It must not decide what a refusal means ([`crate::verdict`]) nor repeat anything.

use std::sync::Arc;

use serde_json::{Value, json};
use vmhost_cluster::{Connection, DeleteOptions, Target, WriteError, Written};
use vmhost_core::{Apply, Delete, Effect, ObjectKey, Patch, PatchType};

use crate::leader::Leadership;
use crate::resources::Resources;

/// Sends writes.
pub struct Writer {
    resources: Arc<Resources>,
    leadership: Arc<Leadership>,
}

/// What protects a write from acting on something else than the policy saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guard<'a> {
    /// The uid of the object, if it is the turn's own.
    pub uid: Option<&'a str>,
    /// The version that an earlier write of the same turn returned for this object: `if-version` means that one then.
    pub written: Option<u64>,
}

impl Writer {
    /// Writes to these resources, while this host leads.
    pub fn new(resources: Arc<Resources>, leadership: Arc<Leadership>) -> Self {
        Self {
            resources,
            leadership,
        }
    }

    /// Carries one effect out. `key` is what it writes, with an empty name for a create whose name the server makes.
    pub async fn carry_out(
        &self,
        effect: &Effect,
        key: &ObjectKey,
        guard: Guard<'_>,
        manager: &str,
    ) -> Result<Written, WriteError> {
        let resource = self.resources.find(&key.kind).await?;
        if resource.namespaced && key.name.namespace().is_none() {
            return Err(invalid(format!(
                "{} is namespaced, and the effect names no namespace",
                key.kind
            )));
        }
        if !resource.namespaced && key.name.namespace().is_some() {
            return Err(invalid(format!(
                "{} is cluster-scoped, and the effect names a namespace",
                key.kind
            )));
        }
        if let Some(bad) = [key.name.namespace(), Some(key.name.name())]
            .into_iter()
            .flatten()
            .find(|name| !is_plain(name))
        {
            return Err(invalid(format!(
                "{:?} cannot be a name",
                vmhost_core::cut(bad, 100)
            )));
        }
        if let Some(wanted) = subresource(effect)
            && !resource.subresources.iter().any(|served| served == wanted)
        {
            // Its CRD may get one: look again next time.
            self.resources.forget(&key.kind);
            return Err(invalid(format!(
                "{} has no subresource {wanted:?} in this cluster",
                key.kind
            )));
        }
        let target = Target {
            resource: &resource,
            namespace: key.name.namespace(),
            name: Some(key.name.name()).filter(|name| !name.is_empty()),
            subresource: subresource(effect),
        };
        let sent = match effect {
            Effect::Apply(apply) => self.apply(apply, &target, guard, manager).await,
            Effect::Patch(patch) => {
                let body = patch_body(patch, guard)?;
                self.fenced()?
                    .patch(&target, patch.kind, body, manager)
                    .await
            }
            Effect::Create(create) => {
                self.fenced()?
                    .create(&target, create.object.clone(), manager)
                    .await
            }
            Effect::Delete(delete) => {
                self.fenced()?
                    .delete(&target, &delete_options(delete, guard))
                    .await
            }
            Effect::Event(_) | Effect::Other(_) => {
                Err(invalid("this effect writes no object".into()))
            }
        };
        if let Err(WriteError::Status {
            code: 404 | 405, ..
        }) = &sent
        {
            self.resources.forget(&key.kind);
        }
        sent
    }

    /// Reads the object from the API server itself: what became of a write whose answer was lost.
    pub async fn read(
        &self,
        effect: &Effect,
        key: &ObjectKey,
    ) -> Result<Option<vmhost_core::Snapshot>, WriteError> {
        let resource = self.resources.find(&key.kind).await?;
        let name = Some(key.name.name()).filter(|name| !name.is_empty());
        if name.is_none() || matches!(effect, Effect::Event(_) | Effect::Other(_)) {
            return Ok(None);
        }
        self.resources
            .connection()
            .get(&Target {
                resource: &resource,
                namespace: key.name.namespace(),
                name,
                subresource: None,
            })
            .await
    }

    async fn apply(
        &self,
        apply: &Apply,
        target: &Target<'_>,
        guard: Guard<'_>,
        manager: &str,
    ) -> Result<Written, WriteError> {
        let found;
        let mut uid = guard.uid;
        if uid.is_none() && !apply.create_if_absent {
            // Only a uid in the body keeps a server-side apply from creating.
            found = self
                .resources
                .connection()
                .get(&Target {
                    subresource: None,
                    ..*target
                })
                .await?;
            let Some(object) = &found else {
                return Err(status(
                    404,
                    "NotFound",
                    format!(
                        "{} does not exist, and the effect may not create it",
                        target.name.unwrap_or_default()
                    ),
                ));
            };
            uid = Some(object.uid());
        }
        let body = apply_body(apply, uid, guard.written)?;
        self.fenced()?
            .apply(target, body, manager, apply.force)
            .await
    }

    /// The connection, for one write that is sent now.
    fn fenced(&self) -> Result<&Connection, WriteError> {
        self.leadership
            .fence()
            .map(|()| self.resources.connection())
    }
}

/// May it stand in a path? Empty is a name that the server makes.
fn is_plain(name: &str) -> bool {
    name.len() <= 253
        && name != "."
        && name != ".."
        && !name.contains(|c: char| c.is_control() || matches!(c, '/' | '%'))
}

fn subresource(effect: &Effect) -> Option<&str> {
    match effect {
        Effect::Apply(apply) => apply.subresource.as_deref(),
        Effect::Patch(patch) => patch.subresource.as_deref(),
        _ => None,
    }
}

/// The version that an effect asks for: what an earlier write of the turn made of the one that the policy saw.
fn required<'a>(
    if_version: &'a Option<String>,
    written: Option<u64>,
) -> Option<std::borrow::Cow<'a, str>> {
    let asked = if_version.as_deref()?;
    Some(written.map_or(asked.into(), |version| version.to_string().into()))
}

fn apply_body(
    apply: &Apply,
    uid: Option<&str>,
    written: Option<u64>,
) -> Result<String, WriteError> {
    let version = required(&apply.if_version, written);
    if uid.is_none() && version.is_none() {
        return Ok(apply.object.clone());
    }
    let mut object: Value = parse(&apply.object)?;
    guard_metadata(&mut object, uid, version.as_deref())?;
    Ok(object.to_string())
}

fn patch_body(patch: &Patch, guard: Guard<'_>) -> Result<String, WriteError> {
    let version = required(&patch.if_version, guard.written);
    if guard.uid.is_none() && version.is_none() {
        return Ok(patch.body.clone());
    }
    let mut body: Value = parse(&patch.body)?;
    match (patch.kind, &mut body) {
        (PatchType::Merge, body) => guard_metadata(body, guard.uid, version.as_deref())?,
        (PatchType::Json, Value::Array(operations)) => {
            let test =
                |path: &str, value: &str| json!({"op": "test", "path": path, "value": value});
            let version = version.map(|version| test("/metadata/resourceVersion", &version));
            let uid = guard.uid.map(|uid| test("/metadata/uid", uid));
            operations.splice(0..0, uid.into_iter().chain(version));
        }
        (PatchType::Json, _) => return Err(invalid("a JSON patch is a list of operations".into())),
    }
    Ok(body.to_string())
}

/// The API server refuses a write whose uid or version is not that of the object (409).
fn guard_metadata(
    object: &mut Value,
    uid: Option<&str>,
    version: Option<&str>,
) -> Result<(), WriteError> {
    let root = object
        .as_object_mut()
        .ok_or_else(|| invalid("the body is no JSON object".into()))?;
    let metadata = root.entry("metadata").or_insert_with(|| json!({}));
    let metadata = metadata
        .as_object_mut()
        .ok_or_else(|| invalid("metadata is no JSON object".into()))?;
    for (name, value) in [("uid", uid), ("resourceVersion", version)] {
        if let Some(value) = value {
            metadata.insert(name.into(), value.into());
        }
    }
    Ok(())
}

fn delete_options(delete: &Delete, guard: Guard<'_>) -> DeleteOptions {
    DeleteOptions {
        uid: delete.uid.clone().or_else(|| guard.uid.map(Into::into)),
        version: required(&delete.if_version, guard.written).map(Into::into),
        propagation: delete.propagation,
    }
}

fn parse(text: &str) -> Result<Value, WriteError> {
    serde_json::from_str(text)
        .map_err(|error| invalid(format!("the body is not valid JSON: {error}")))
}

/// A refusal of the host's own, in the form of the API server's.
pub fn invalid(message: String) -> WriteError {
    status(400, "BadRequest", message)
}

fn status(code: u16, reason: &str, message: String) -> WriteError {
    WriteError::Status {
        code,
        reason: reason.into(),
        message,
        causes: Vec::new(),
        retry_after: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::{Gvk, ObjectName};

    fn patch(kind: PatchType, body: &str, if_version: Option<&str>) -> Patch {
        let key = ObjectKey {
            kind: Gvk::new("", "v1", "Pod"),
            name: ObjectName::new(Some("a"), "x"),
        };
        Patch {
            key,
            subresource: None,
            kind,
            body: body.into(),
            if_version: if_version.map(Into::into),
        }
    }

    #[test]
    fn the_snapshots_uid_goes_into_every_kind_of_patch() {
        let guard = Guard {
            uid: Some("u1"),
            written: None,
        };
        let merge =
            patch_body(&patch(PatchType::Merge, r#"{"spec":{"a":1}}"#, None), guard).unwrap();
        assert_eq!(merge, r#"{"metadata":{"uid":"u1"},"spec":{"a":1}}"#);
        let json = patch_body(
            &patch(
                PatchType::Json,
                r#"[{"op":"remove","path":"/a"}]"#,
                Some("7"),
            ),
            guard,
        )
        .unwrap();
        assert_eq!(
            json,
            r#"[{"op":"test","path":"/metadata/uid","value":"u1"},{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/a"}]"#
        );
    }

    #[test]
    fn a_version_means_what_the_turn_itself_has_made_of_it() {
        let guard = Guard {
            uid: None,
            written: Some(9),
        };
        assert!(
            patch_body(&patch(PatchType::Merge, "{}", Some("7")), guard)
                .unwrap()
                .contains(r#""resourceVersion":"9""#)
        );
        assert_eq!(
            patch_body(&patch(PatchType::Merge, "{}", None), guard).unwrap(),
            "{}"
        );
    }

    #[test]
    fn bodies_that_make_no_sense_are_refused_before_they_are_sent() {
        let guard = Guard {
            uid: Some("u"),
            written: None,
        };
        for (kind, body) in [
            (PatchType::Json, "{}"),
            (PatchType::Merge, "[]"),
            (PatchType::Merge, "nonsense"),
            (PatchType::Merge, r#"{"metadata":1}"#),
        ] {
            assert!(
                patch_body(&patch(kind, body, None), guard).is_err(),
                "{body}"
            );
        }
    }
}
