//! The overlay for the writes of one version. An object is copied into it before the first write to
//! the object, and the state before that write is kept.
//!
//! This module must not know controllers, keys, or why something is written.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use vmhost_cluster::{Connection, Whole, Written};
use vmhost_core::{Effect, Gvk, ObjectKey, ObjectName};
use vmhost_runtime::turn::effects::carrier::{Carrier, Known, Refused};

use super::base::{Base, DEFINITION};
use super::ids::Id;
use super::kinds::learn;
use super::live::Live;

/// The cluster with the writes of one version.
pub(super) struct World {
    pub(super) live: Arc<Live>,
    carrier: Carrier,
    /// The version that is used of each kind that is written, by group and kind.
    versions: BTreeMap<(String, String), String>,
    /// The objects before the first write, in the form that a write without a change leaves. `None`
    /// for an object that did not exist.
    before: BTreeMap<Id, Option<Arc<Value>>>,
    /// The uids of owners whose dependents were copied into the overlay.
    cascaded: HashSet<String>,
    /// What the overlay does not know about kinds that were written.
    pub(super) gaps: Vec<String>,
}

/// An object before and after all writes.
pub(super) struct Touched<'a> {
    pub(super) id: &'a Id,
    pub(super) before: Option<Arc<Value>>,
    pub(super) after: Option<Arc<Value>>,
}

impl World {
    /// Creates the cluster before any write.
    pub(super) fn new(base: Arc<Base>) -> Self {
        let live = Arc::new(Live::new(base));
        let overlay = live.overlay.clone();
        let connection = Connection::local(
            move |request| {
                let overlay = overlay.clone();
                Box::pin(async move { overlay.answer(request).await })
            },
            "the preview's overlay",
        );
        Self {
            live,
            carrier: Carrier::new(connection.reader(), connection.writer()),
            versions: BTreeMap::new(),
            before: BTreeMap::new(),
            cascaded: HashSet::new(),
            gaps: Vec::new(),
        }
    }

    /// Prepares a write: copies the object, its namespace, and everything that a deletion would
    /// delete too into the overlay.
    pub(super) async fn prepare(&mut self, effect: &Effect, key: &ObjectKey) -> Result<()> {
        self.learn(&key.kind).await?;
        if let Some(namespace) = key.name.namespace() {
            self.bring_namespace(namespace).await?;
        }
        if key.name.name().is_empty() {
            return Ok(());
        }
        self.bring(key).await?;
        let Some(object) = self.live.object(&Id::of(key), &key.kind.version) else {
            return Ok(());
        };
        let is_deleting = object.pointer("/metadata/deletionTimestamp").is_some();
        if is_deleting || matches!(effect, Effect::Delete(_)) {
            self.bring_dependents(&object).await?;
            self.bring_contents(key).await?;
        }
        Ok(())
    }

    /// Carries out an effect. It must have been prepared.
    pub(super) async fn carry_out(
        &self,
        effect: (usize, &Effect),
        key: &ObjectKey,
        known: Known<'_>,
        manager: &str,
    ) -> Result<Written, Refused> {
        let written = self.carrier.carry_out(effect, key, known, manager);
        written.await
    }

    /// Replaces an object of the overlay by the object that another server made of the same write,
    /// with a later version, unless both are the same. Returns `false` if that is not possible.
    pub(super) fn replace(&mut self, key: &ObjectKey, body: &[u8]) -> bool {
        let Ok(mut object) = serde_json::from_slice::<Value>(body) else {
            return false;
        };
        let id = Id::of(key);
        let Some(present) = self.live.object(&id, &key.kind.version) else {
            return false;
        };
        let version = present.pointer("/metadata/resourceVersion");
        let version = version.and_then(Value::as_str);
        let version: u64 = version.and_then(|of| of.parse().ok()).unwrap_or_default();
        // A dry run assigns no new version, and gives each new object another uid.
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            let value = match field {
                "resourceVersion" => Some(json!((version + 1).to_string())),
                field => present.pointer(&format!("/metadata/{field}")).cloned(),
            };
            match (
                object.get_mut("metadata").and_then(Value::as_object_mut),
                value,
            ) {
                (Some(metadata), Some(value)) => drop(metadata.insert(field.to_owned(), value)),
                (Some(metadata), None) => drop(metadata.remove(field)),
                (None, _) => return false,
            }
        }
        merely_newer(&object, &present) || self.live.overlay.bring(object)
    }

    /// Returns the objects that the last write has changed, directly or as a consequence.
    pub(super) fn settle(&mut self) -> Vec<Id> {
        let overlay = &self.live.overlay;
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        loop {
            let more = overlay.collect();
            for id in overlay.changed().into_iter().map(Id::from) {
                if seen.insert(id.clone()) {
                    found.push(id);
                }
            }
            if !more {
                break;
            }
        }
        for id in &found {
            self.live.learn(id);
            self.before.entry(id.clone()).or_insert(None);
            self.live.changed(id);
        }
        found
    }

    /// Number of HTTP requests that a policy wanted to send.
    pub(super) fn unsent(&self) -> usize {
        self.live.unsent.load(Ordering::Relaxed) as usize
    }

    /// The objects that were copied or created, as they were and as they are.
    pub(super) fn touched(&self) -> impl Iterator<Item = Touched<'_>> {
        self.before.iter().map(|(id, before)| {
            let kind = (id.group.clone(), id.kind.clone());
            let version = self.versions.get(&kind).map_or("v1", String::as_str);
            Touched {
                id,
                before: before.clone(),
                after: self.live.object(id, version),
            }
        })
    }

    async fn learn(&mut self, kind: &Gvk) -> Result<()> {
        let name = (kind.group.clone(), kind.kind.clone());
        if self.versions.contains_key(&name) {
            return Ok(());
        }
        let gap = learn(&self.live.base, &self.live.overlay, kind).await?;
        self.gaps.extend(gap);
        self.versions.insert(name, kind.version.clone());
        Ok(())
    }

    /// Copies an object from the cluster into the overlay, unless the overlay knows it.
    async fn bring(&mut self, key: &ObjectKey) -> Result<()> {
        let id = Id::of(key);
        if self.live.knows(&id) {
            return Ok(());
        }
        self.learn(&key.kind).await?;
        let found = self.live.base.find(key).await?;
        let before = match found {
            Some(whole) => {
                let overlay = &self.live.overlay;
                let object = whole_value(&whole).with_context(|| format!("cannot read {key}"))?;
                overlay.bring(object);
                let kind = (&*id.group, &*key.kind.version, &*id.kind);
                let namespace = id.name.namespace().unwrap_or_default();
                overlay.untouched(kind, (namespace, id.name.name()))
            }
            None => None,
        };
        self.live.learn(&id);
        self.before.insert(id, before);
        Ok(())
    }

    /// Copies a namespace into the overlay. A namespace that the user may not read counts as
    /// existing.
    async fn bring_namespace(&mut self, name: &str) -> Result<()> {
        let key = ObjectKey {
            kind: Gvk::new("", "v1", "Namespace"),
            name: ObjectName::new(None, name),
        };
        if self.live.knows(&Id::of(&key)) || self.bring(&key).await.is_ok() {
            return Ok(());
        }
        let assumed = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": name, "uid": name },
            "status": { "phase": "Active" },
        });
        self.live.overlay.bring(assumed.clone());
        self.live.learn(&Id::of(&key));
        self.before.insert(Id::of(&key), Some(Arc::new(assumed)));
        Ok(())
    }

    /// Copies the objects that name this owner into the overlay, and those that name these, as far
    /// as the plugin watches them.
    async fn bring_dependents(&mut self, owner: &Value) -> Result<()> {
        let base = self.live.base.clone();
        let uid = owner.pointer("/metadata/uid").and_then(Value::as_str);
        let mut owners: Vec<String> = uid.map(str::to_owned).into_iter().collect();
        while let Some(uid) = owners.pop() {
            if !self.cascaded.insert(uid.clone()) {
                continue;
            }
            for key in base.dependents(&uid) {
                self.bring(key).await?;
                let object = self.live.object(&Id::of(key), &key.kind.version);
                let uid = object.as_ref().and_then(|of| of.pointer("/metadata/uid"));
                owners.extend(uid.and_then(Value::as_str).map(str::to_owned));
            }
        }
        Ok(())
    }

    /// Copies the objects that belong to a namespace or to a definition, as far as the plugin
    /// watches them.
    async fn bring_contents(&mut self, key: &ObjectKey) -> Result<()> {
        let base = self.live.base.clone();
        let name = key.name.name();
        let contents = match (&*key.kind.group, &*key.kind.kind) {
            ("", "Namespace") => base.in_namespace(name),
            ("apiextensions.k8s.io", DEFINITION) => base.of_definition(name),
            _ => Vec::new(),
        };
        for key in &contents {
            self.bring(key).await?;
        }
        Ok(())
    }
}

/// Returns whether two states of an object differ only in fields that a server keeps for itself.
fn merely_newer(one: &Value, other: &Value) -> bool {
    let content = |object: &Value| {
        let mut object = object.clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
        object
    };
    content(one) == content(other)
}

/// Returns an object with its `managedFields`.
fn whole_value(whole: &Whole) -> Result<Value> {
    let mut object: Value = serde_json::from_str(&whole.object.text)?;
    let managed = whole.managed.as_deref().map(serde_json::from_str::<Value>);
    if let (Some(managed), Some(Value::Object(metadata))) =
        (managed.transpose()?, object.get_mut("metadata"))
    {
        metadata.insert("managedFields".into(), managed);
    }
    Ok(object)
}
