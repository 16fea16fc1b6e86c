//! Turns an effect into a request: finds the resource and adds guards. This is the only module of
//! the crate that holds a [`Writer`], and thus the only one that can write objects.
//!
//! It must not interpret refusals ([`crate::turn::verdict`] does) or repeat a request.

use std::borrow::Cow;
use std::sync::Arc;

use vmhost_cluster::{Error, ObjectPath, Writer, Written};
use vmhost_core::{Apply, Effect, ObjectKey, is_path_segment};

use crate::config::terms::Account;
use crate::lead::Leadership;
use crate::rights::access::{Access, Required, Right, User};
use crate::site::member::Member;
use crate::wake::resources::Resources;

pub(super) mod guard;
mod refused;

use guard::{Guard, apply_body, delete_options, patch_body};
use refused::{invalid, status};

/// Sends writes while this host leads.
pub(crate) struct FencedWriter {
    resources: Arc<Resources>,
    writer: Writer,
    /// The same writer, for responses with whole objects.
    whole: Writer,
    leadership: Arc<Leadership>,
    /// The cluster that it writes to; `None` at home.
    member: Option<Arc<Member>>,
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
            member: None,
        }
    }

    /// This writer as one to a member cluster, which sends only until the cluster is left.
    pub(crate) fn within(mut self, member: Arc<Member>) -> Self {
        self.member = Some(member);
        self
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
                required: required_by(&error, verbs(effect, guard), &path, guard.account),
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
            // The host itself reads.
            required: required_by(&error, &["get"], &object, None),
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

    /// Returns the writer for one write that is sent right now. Returns an error if this host is
    /// not the leader, if this cluster or the turn's was left or is in doubt, or if the turn's
    /// canary was aborted.
    fn fenced(&self, whole: bool, guard: Guard<'_>) -> Result<Cow<'_, Writer>, Error> {
        self.leadership.fence()?;
        let members = [self.member.as_deref(), guard.turn_member];
        for member in members.into_iter().flatten() {
            member.fence()?;
        }
        if let Some(candidate) = guard.candidate {
            candidate.fence()?;
        }
        let writer = match whole {
            true => &self.whole,
            false => &self.writer,
        };
        Ok(match guard.account {
            None => Cow::Borrowed(writer),
            Some(account) => Cow::Owned(writer.clone().acting_as(&account.user())?),
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

/// The rights that a forbidden (403) request needs, which was sent as this account or by the host
/// itself. Empty for other errors.
fn required_by(
    error: &Error,
    verbs: &[&str],
    path: &ObjectPath<'_>,
    account: Option<&Account>,
) -> Required {
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
        user: account.map(|account| User {
            name: account.user(),
            groups: account.groups().to_vec(),
        }),
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

#[cfg(test)]
mod tests {
    use axum::http;
    use bytes::Bytes;
    use futures_util::future::BoxFuture;
    use vmhost_cluster::Connection;

    use super::*;
    use crate::site::member::Labels;

    #[test]
    fn a_turn_writes_nowhere_once_its_cluster_was_left() {
        let serve = |_: http::Request<Bytes>| -> BoxFuture<'static, http::Response<Bytes>> {
            Box::pin(async { http::Response::new(Bytes::new()) })
        };
        let connection = Connection::local(serve, "a server in this process");
        let resources = Arc::new(Resources::new(connection.reader()));
        let [own, other] = ["own", "other"].map(|name| Member::new(name, &Labels::new(), false));
        let to = |member: &Arc<Member>| {
            let writer = connection.writer();
            let writer = FencedWriter::new(resources.clone(), writer, Leadership::alone());
            writer.within(member.clone())
        };
        let guard = Guard {
            turn_member: Some(&own),
            ..Guard::default()
        };
        assert!(to(&other).fenced(false, guard).is_ok());
        own.leave();
        for (writer, guard) in [(to(&other), guard), (to(&own), Guard::default())] {
            let error = writer.fenced(false, guard).err().unwrap();
            let text = vmhost_core::chain_line(&error);
            assert!(text.contains("the cluster own was removed"), "{text}");
        }
        assert!(to(&other).fenced(false, Guard::default()).is_ok());
    }
}
