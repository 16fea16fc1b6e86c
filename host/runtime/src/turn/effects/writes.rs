//! Turns an effect into a request: finds the resource and adds guards. This is the only module of
//! the crate that holds a [`Writer`], and thus the only one that can write objects.
//!
//! It must not interpret refusals ([`crate::turn::verdict`] does) or repeat a request.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use vmhost_cluster::{DeleteOptions, Error, ObjectPath, Status, Writer, Written};
use vmhost_core::{Apply, Delete, Effect, ObjectKey, Patch, PatchType, is_path_segment};

use crate::canary::Canary;
use crate::lead::Leadership;
use crate::rights::access::{Access, Required, Right};
use crate::wake::resources::Resources;

/// Sends writes while this host leads.
pub(crate) struct FencedWriter {
    resources: Arc<Resources>,
    writer: Writer,
    /// The same writer, for responses with whole objects.
    whole: Writer,
    leadership: Arc<Leadership>,
}

/// Guards that keep a write from acting on another object or version than the plugin saw.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guard<'a> {
    /// The uid, if the effect writes the turn's own object.
    pub(crate) uid: Option<&'a str>,
    /// The version that an earlier write of the same turn returned for this object. The effect's
    /// `if-version` then means this version.
    pub(crate) written: Option<u64>,
    /// The canary that must not be aborted, if this is the first write of a turn of its candidate.
    pub(crate) candidate: Option<&'a Canary>,
}

/// The reason why an effect was not carried out.
#[derive(Debug)]
pub(crate) struct Unwritten {
    /// The error of the API server or of this host.
    pub(crate) error: Error,
    /// Whether the write may have been carried out nevertheless. Only a live read can tell.
    pub(crate) maybe_applied: bool,
    /// The rights that the request needs, if it was forbidden (403).
    pub(crate) required: Required,
}

/// An error before the write was sent: no object can have changed.
impl From<Error> for Unwritten {
    fn from(error: Error) -> Self {
        Self {
            error,
            maybe_applied: false,
            required: Required::default(),
        }
    }
}

impl FencedWriter {
    /// A writer to these resources, which sends only while this host leads.
    pub(crate) fn new(
        resources: Arc<Resources>,
        writer: Writer,
        leadership: Arc<Leadership>,
    ) -> Self {
        Self {
            whole: writer.clone().with_whole_answers(),
            writer,
            resources,
            leadership,
        }
    }

    /// Carries out one effect. `key` is the object that it writes, with an empty name for a create
    /// whose name the API server generates. With `whole`, the response is the whole object and not
    /// only its metadata.
    pub(crate) async fn carry_out(
        &self,
        effect: &Effect,
        key: &ObjectKey,
        guard: Guard<'_>,
        manager: &str,
        whole: bool,
    ) -> Result<Written, Unwritten> {
        let resource = self.resources.find(&key.kind).await?;
        if resource.namespaced && key.name.namespace().is_none() {
            return Err(invalid(format!(
                "{} is namespaced, and the effect names no namespace",
                key.kind
            ))
            .into());
        }
        if !resource.namespaced && key.name.namespace().is_some() {
            return Err(invalid(format!(
                "{} is cluster-scoped, and the effect names a namespace",
                key.kind
            ))
            .into());
        }
        if let Some(bad) = [key.name.namespace(), Some(key.name.name())]
            .into_iter()
            .flatten()
            .find(|name| !is_plain(name))
        {
            return Err(invalid(format!(
                "{:?} is not a valid name",
                vmhost_core::cut(bad, 100)
            ))
            .into());
        }
        if let Some(wanted) = effect.subresource()
            && !resource.subresources.iter().any(|served| served == wanted)
        {
            // A newer CRD may add the subresource, so the kind is looked up again next time.
            self.resources.forget(&key.kind);
            return Err(invalid(format!(
                "{} has no subresource {wanted:?} in this cluster",
                key.kind
            ))
            .into());
        }
        let path = ObjectPath {
            resource: &resource,
            namespace: key.name.namespace(),
            name: Some(key.name.name()).filter(|name| !name.is_empty()),
            subresource: effect.subresource(),
        };
        let sent = match effect {
            Effect::Apply(apply) => {
                let uid = self.uid_of(apply, &path, guard).await?;
                let body = apply_body(apply, uid.as_deref(), guard.written)?;
                self.fenced(whole, guard)?
                    .apply(&path, body, manager, apply.force)
                    .await
            }
            Effect::Patch(patch) => {
                let body = patch_body(patch, guard)?;
                self.fenced(whole, guard)?
                    .patch(&path, patch.kind, body, manager)
                    .await
            }
            Effect::Create(create) => {
                self.fenced(whole, guard)?
                    .create(&path, create.object.clone(), manager)
                    .await
            }
            Effect::Delete(delete) => {
                self.fenced(whole, guard)?
                    .delete(&path, &delete_options(delete, guard))
                    .await
            }
            Effect::Event(_) | Effect::Other(_) => {
                return Err(invalid("the effect writes no object".into()).into());
            }
        };
        sent.map_err(|error| {
            if matches!(error.code(), Some(404 | 405)) {
                self.resources.forget(&key.kind);
            }
            Unwritten {
                maybe_applied: error.maybe_applied(),
                required: required_by(&error, verbs(effect, guard), &path),
                error,
            }
        })
    }

    /// Reads an object from the API server, to find out whether a write with a lost response was
    /// carried out.
    pub(crate) async fn read(
        &self,
        effect: &Effect,
        key: &ObjectKey,
    ) -> Result<Option<vmhost_core::Snapshot>, Error> {
        let resource = self.resources.find(&key.kind).await?;
        let name = Some(key.name.name()).filter(|name| !name.is_empty());
        if name.is_none() || matches!(effect, Effect::Event(_) | Effect::Other(_)) {
            return Ok(None);
        }
        self.resources
            .reader()
            .get(&ObjectPath {
                resource: &resource,
                namespace: key.name.namespace(),
                name,
                subresource: None,
            })
            .await
    }

    /// Returns the uid for an apply's body, which keeps a server-side apply from creating the
    /// object. `None` if it may create.
    async fn uid_of(
        &self,
        apply: &Apply,
        path: &ObjectPath<'_>,
        guard: Guard<'_>,
    ) -> Result<Option<String>, Unwritten> {
        if guard.uid.is_some() || apply.create_if_absent {
            return Ok(guard.uid.map(Into::into));
        }
        let object = ObjectPath {
            subresource: None,
            ..*path
        };
        let found = self.resources.reader().get(&object).await;
        let found = found.map_err(|error| Unwritten {
            required: required_by(&error, &["get"], &object),
            ..error.into()
        })?;
        match found {
            Some(found) => Ok(Some(found.uid().to_owned())),
            None => Err(status(
                404,
                "NotFound",
                format!(
                    "{} does not exist, and the effect may not create it",
                    path.name.unwrap_or_default()
                ),
            )
            .into()),
        }
    }

    /// Returns the writer for one write that is sent right now, or an error if this host does not
    /// lead, or the turn's canary was aborted.
    fn fenced(&self, whole: bool, guard: Guard<'_>) -> Result<&Writer, Error> {
        self.leadership.fence()?;
        if let Some(candidate) = guard.candidate {
            candidate.fence()?;
        }
        Ok(match whole {
            true => &self.whole,
            false => &self.writer,
        })
    }
}

/// The verbs that access control checks for an effect.
fn verbs(effect: &Effect, guard: Guard<'_>) -> &'static [&'static str] {
    match effect {
        // Only the API server knows whether this creates the object.
        Effect::Apply(apply)
            if apply.create_if_absent && apply.subresource.is_none() && guard.uid.is_none() =>
        {
            &["patch", "create"]
        }
        Effect::Apply(_) | Effect::Patch(_) => &["patch"],
        Effect::Create(_) => &["create"],
        Effect::Delete(_) => &["delete"],
        Effect::Event(_) | Effect::Other(_) => &[],
    }
}

/// The rights that a forbidden (403) request needs. Empty for other errors.
fn required_by(error: &Error, verbs: &[&str], path: &ObjectPath<'_>) -> Required {
    if error.code() != Some(403) {
        return Required::default();
    }
    let resource = path.resource;
    let right = |verb: &&str| Right {
        access: Access {
            group: resource.kind.group.clone(),
            resource: match path.subresource {
                Some(subresource) => format!("{}/{subresource}", resource.plural),
                None => resource.plural.clone(),
            },
            name: None,
            verb: (*verb).to_owned(),
        },
        namespace: path.namespace.map(Into::into),
    };
    Required {
        rights: verbs.iter().map(right).collect(),
        // A create is a request to the collection and names no object.
        name: path.name.filter(|_| verbs != ["create"]).map(Into::into),
    }
}

/// Returns whether the text is a valid path segment. It may be empty, for a name that the API
/// server generates.
fn is_plain(name: &str) -> bool {
    name.is_empty()
        || (name.len() <= 253 && is_path_segment(name) && !name.contains(char::is_control))
}

/// The version that the write must find: the one that an earlier write of the turn returned, else
/// the effect's `if-version`.
fn required<'a>(
    if_version: &'a Option<String>,
    written: Option<u64>,
) -> Option<std::borrow::Cow<'a, str>> {
    let asked = if_version.as_deref()?;
    Some(written.map_or(asked.into(), |version| version.to_string().into()))
}

fn apply_body(apply: &Apply, uid: Option<&str>, written: Option<u64>) -> Result<String, Error> {
    let version = required(&apply.if_version, written);
    if uid.is_none() && version.is_none() {
        return Ok(apply.object.clone());
    }
    let mut object: Value = parse(&apply.object)?;
    guard_metadata(&mut object, uid, version.as_deref())?;
    Ok(object.to_string())
}

fn patch_body(patch: &Patch, guard: Guard<'_>) -> Result<String, Error> {
    let version = required(&patch.if_version, guard.written);
    if guard.uid.is_none() && version.is_none() {
        return Ok(patch.body.clone());
    }
    match patch.kind {
        PatchType::Json => guard_operations(&patch.body, guard.uid, version.as_deref()),
        PatchType::Merge => match splice_metadata(&patch.body, guard.uid, version.as_deref()) {
            Some(body) => Ok(body),
            None => {
                let mut body: Value = parse(&patch.body)?;
                guard_metadata(&mut body, guard.uid, version.as_deref())?;
                Ok(body.to_string())
            }
        },
    }
}

/// Inserts a `test` for each guard before the operations of a JSON patch, whose text stays
/// unchanged.
fn guard_operations(body: &str, uid: Option<&str>, version: Option<&str>) -> Result<String, Error> {
    parse::<IgnoredAny>(body)?;
    let Some(operations) = body.trim_start().strip_prefix('[') else {
        return Err(invalid("a JSON patch must be a list of operations".into()));
    };
    let mut guarded = String::with_capacity(body.len() + 192);
    for (path, value) in [
        ("/metadata/uid", uid),
        ("/metadata/resourceVersion", version),
    ] {
        if let Some(value) = value {
            guarded.push_str(if guarded.is_empty() { "[" } else { "," });
            guarded.push_str(r#"{"op":"test","path":""#);
            guarded.push_str(path);
            guarded.push_str(r#"","value":"#);
            push_quoted(&mut guarded, value);
            guarded.push('}');
        }
    }
    if !operations.trim_start().starts_with(']') {
        guarded.push(',');
    }
    guarded.push_str(operations);
    Ok(guarded)
}

/// Inserts the guards before the other members of a merge patch, whose text stays unchanged.
/// Returns `None` if the patch is not an object, or has metadata of its own.
fn splice_metadata(body: &str, uid: Option<&str>, version: Option<&str>) -> Option<String> {
    /// Whether a field is present, with any value.
    #[derive(Default)]
    struct Present(bool);
    impl<'de> Deserialize<'de> for Present {
        fn deserialize<D: serde::Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
            IgnoredAny::deserialize(value).map(|_| Self(true))
        }
    }
    #[derive(Deserialize)]
    struct Top {
        #[serde(default)]
        metadata: Present,
    }
    let members = body.trim_start().strip_prefix('{')?;
    if serde_json::from_str::<Top>(body).ok()?.metadata.0 {
        return None;
    }
    let mut guarded = String::with_capacity(body.len() + 96);
    guarded.push_str(r#"{"metadata":"#);
    let mut next = '{';
    for (name, value) in [("\"uid\":", uid), ("\"resourceVersion\":", version)] {
        if let Some(value) = value {
            guarded.push(next);
            guarded.push_str(name);
            push_quoted(&mut guarded, value);
            next = ',';
        }
    }
    guarded.push('}');
    if !members.trim_start().starts_with('}') {
        guarded.push(',');
    }
    guarded.push_str(members);
    Some(guarded)
}

/// Appends a JSON string.
fn push_quoted(text: &mut String, value: &str) {
    if value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        text.push('"');
        text.push_str(value);
        text.push('"');
    } else {
        text.push_str(&Value::from(value).to_string());
    }
}

/// Puts uid and version into the metadata. The API server refuses a write whose uid or version
/// differs from the object's (409).
fn guard_metadata(
    object: &mut Value,
    uid: Option<&str>,
    version: Option<&str>,
) -> Result<(), Error> {
    let root = object
        .as_object_mut()
        .ok_or_else(|| invalid("the body is not a JSON object".into()))?;
    let metadata = root.entry("metadata").or_insert_with(|| json!({}));
    let metadata = metadata
        .as_object_mut()
        .ok_or_else(|| invalid("metadata is not a JSON object".into()))?;
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

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| invalid(format!("the body is not valid JSON: {error}")))
}

/// A refusal by this host, in the form of an API server's.
pub(crate) fn invalid(message: String) -> Error {
    status(400, "BadRequest", message)
}

fn status(code: u16, reason: &str, message: String) -> Error {
    Error::Refused(Status {
        code,
        reason: reason.into(),
        message,
        ..Status::default()
    })
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
            candidate: None,
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
    fn guards_are_put_into_the_text_and_nothing_else_changes() {
        let guard = Guard {
            uid: Some("u\"1"),
            written: None,
            candidate: None,
        };
        for (kind, body, guarded) in [
            (
                PatchType::Merge,
                "{}",
                r#"{"metadata":{"uid":"u\"1","resourceVersion":"7"}}"#,
            ),
            (
                PatchType::Merge,
                r#" { "z": 1.0, "a": {"metadata": 1} }"#,
                r#"{"metadata":{"uid":"u\"1","resourceVersion":"7"}, "z": 1.0, "a": {"metadata": 1} }"#,
            ),
            (
                PatchType::Merge,
                r#"{"meta\u0064ata":{"labels":{"a":"b"},"uid":"other"}}"#,
                r#"{"metadata":{"labels":{"a":"b"},"resourceVersion":"7","uid":"u\"1"}}"#,
            ),
            (
                PatchType::Json,
                " [ ] ",
                r#"[{"op":"test","path":"/metadata/uid","value":"u\"1"},{"op":"test","path":"/metadata/resourceVersion","value":"7"} ] "#,
            ),
        ] {
            let patch = patch(kind, body, Some("7"));
            assert_eq!(patch_body(&patch, guard).unwrap(), guarded, "{body}");
        }
    }

    #[test]
    fn a_version_means_what_the_turn_itself_has_made_of_it() {
        let guard = Guard {
            uid: None,
            written: Some(9),
            candidate: None,
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
            candidate: None,
        };
        for (kind, body) in [
            (PatchType::Json, "{}"),
            (PatchType::Merge, "[]"),
            (PatchType::Merge, "nonsense"),
            (PatchType::Merge, r#"{"spec":{}"#),
            (PatchType::Merge, r#"{"spec":{}}}"#),
            (PatchType::Json, r#"[{"op":"remove","path":"/a"}"#),
            (PatchType::Json, "[],"),
            (PatchType::Merge, r#"{"metadata":null}"#),
            (PatchType::Merge, r#"{"metadata":1}"#),
        ] {
            assert!(
                patch_body(&patch(kind, body, None), guard).is_err(),
                "{body}"
            );
        }
    }
}
