//! A part of another cluster, on which writes are carried out without changing that cluster.
//!
//! This module owns a cluster that is empty at first. The caller puts in a copy of each object
//! before it writes to the object, with the version, the uid and the field owners that the object
//! has in its cluster. Owners that are missing here count as existing. It must not know where the
//! objects come from, or the purpose of a write.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::answer::refusal;
use crate::builtin::DEFINITIONS;
use crate::call::{Call, Door};
use crate::front::Front;
use crate::kinds::{Kind, Target};
use crate::object::Key;
use crate::patch::Patch;
use crate::questions::Questions;
use crate::registry::Registry;
use crate::request::Options;
use crate::state::State;
use crate::{collect, crd, meta, patch};

/// A part of another cluster. All clones share one part.
#[derive(Clone, Debug)]
pub struct Overlay {
    front: Front,
}

/// An object that a write changed, created or removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Changed {
    /// The group of its kind; empty for the core group.
    pub group: String,
    /// Its kind, in any version.
    pub kind: String,
    /// Its namespace; empty for a cluster-scoped kind.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Default for Overlay {
    fn default() -> Self {
        Self {
            front: Front {
                state: State::partial(),
                address: "".into(),
                stop: CancellationToken::new(),
            },
        }
    }
}

impl Overlay {
    /// Serves the kind of a CustomResourceDefinition, which must be established.
    pub fn define(&self, definition: Value) {
        let name = meta::text(&definition, "name").to_owned();
        self.front.state.write(|inner| {
            let key = Key::new("", &name);
            inner.store.seed(&DEFINITIONS.into(), key, definition);
            crd::register(inner);
        });
    }

    /// Returns whether a kind is served in this version.
    #[must_use]
    pub fn serves(&self, group: &str, version: &str, kind: &str) -> bool {
        let registry = self.registry();
        target(&registry, group, version, kind).is_some()
    }

    /// Puts in a copy of an object, unchanged. Returns whether the object's kind is served.
    pub fn bring(&self, object: Value) -> bool {
        let registry = self.registry();
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let api_version = text("apiVersion").unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = text("kind").unwrap_or_default();
        let Some(target) = target(&registry, group, version, kind) else {
            return false;
        };
        let key = Key::new(
            meta::text(&object, "namespace"),
            meta::text(&object, "name"),
        );
        let stored = target.store(object);
        self.front
            .state
            .write(|inner| inner.store.seed(&target.kind.storage, key, stored));
        true
    }

    /// Returns an object in this version of its kind.
    #[must_use]
    pub fn object(
        &self,
        (group, version, kind): (&str, &str, &str),
        (namespace, name): (&str, &str),
    ) -> Option<Arc<Value>> {
        let registry = self.registry();
        let target = target(&registry, group, version, kind)?;
        let key = Key::new(namespace, name);
        let state = &self.front.state;
        let stored = state.read(|inner| inner.store.get(&target.kind.storage, &key));
        Some(target.view(&stored?))
    }

    /// Returns an object as a write without any change would leave it: pruned, and with the
    /// defaults that this server knows. Every difference between this and the result of a write
    /// comes from what the write asks for.
    #[must_use]
    pub fn untouched(
        &self,
        (group, version, kind): (&str, &str, &str),
        (namespace, name): (&str, &str),
    ) -> Option<Arc<Value>> {
        let registry = self.registry();
        let target = target(&registry, group, version, kind)?;
        let options = Options {
            dry_run: true,
            ..Options::default()
        };
        let call = Call {
            duplicates: &[],
            body: None,
            target: &target,
            namespace,
            name,
            door: Door::Main,
            part: "",
            questions: &Questions::default(),
            options: &options,
            manager: "nobody",
            now: &meta::now(),
            is_patch: true,
        };
        let nothing = Patch::Merge(json!({}));
        let state = &self.front.state;
        let written = state.write(|inner| patch::patch(inner, &call, &nothing));
        match written {
            Ok(done) => Some(done.object),
            Err(_) => self.object((group, version, kind), (namespace, name)),
        }
    }

    /// Answers a request as the front of a cluster does, but without authentication.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let answer = self.front.serve(request.map(Body::from)).await;
        let answer = answer.unwrap_or_else(|error| refusal(&error));
        let (parts, body) = answer.into_parts();
        // The body of each answer but that of a watch is in memory.
        let body = axum::body::to_bytes(body, usize::MAX).await;
        Response::from_parts(parts, body.unwrap_or_default())
    }

    /// Returns the objects that were changed since the last call, each once.
    pub fn changed(&self) -> Vec<Changed> {
        let state = &self.front.state;
        let (history, registry) =
            state.write(|inner| (inner.store.take_history(), inner.registry.clone()));
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for change in history {
            let is_of = |kind: &&Arc<Kind>| kind.storage == change.storage;
            let Some(kind) = registry.kinds().find(is_of) else {
                continue;
            };
            let changed = Changed {
                group: kind.group.clone(),
                kind: kind.kind.clone(),
                namespace: change.key.namespace.clone(),
                name: change.key.name.clone(),
            };
            if seen.insert(changed.clone()) {
                found.push(changed);
            }
        }
        found
    }

    /// Deletes some of the objects that deletions have left without an owner. Returns whether there
    /// may be more.
    pub fn collect(&self) -> bool {
        self.front.state.write(collect::step)
    }

    fn registry(&self) -> Arc<Registry> {
        self.front.state.read(|inner| inner.registry.clone())
    }
}

/// Returns a kind that has objects.
fn target(registry: &Registry, group: &str, version: &str, kind: &str) -> Option<Target> {
    let is_it = |of: &&Arc<Kind>| of.group == group && of.kind == kind && of.answer.is_none();
    let plural = &registry.kinds().find(is_it)?.plural;
    registry.find(group, version, plural)
}
