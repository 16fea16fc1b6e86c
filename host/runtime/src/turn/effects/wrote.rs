//! Tracks what a turn has written, and waits until its controller's stores show it.
//!
//! The key's next turn has to see the writes of this one, or it would repeat them. Only objects
//! that the controller's watches show are waited for. Their selectors decide that, on the object in
//! the API server's response to the write.

use std::collections::HashMap;

use bytes::Bytes;
use vmhost_cluster::Written;
use vmhost_core::{Effect, ObjectKey, ObjectName, Snapshot};

use crate::controller::memory::KeyMemory;
use crate::wake::sources::Sources;
use crate::wake::sources::selection::Selection;

/// The writes of a turn so far.
pub(super) struct Wrote<'a> {
    /// The turn's key.
    key: &'a ObjectName,
    /// The controller's watches and stores.
    sources: &'a Sources,
    memory: &'a KeyMemory,
    objects: HashMap<ObjectKey, Object>,
    deleted: Vec<(ObjectKey, Option<String>)>,
    /// An object whose create failed because it exists, and that the store has to show before the
    /// next turn.
    taken: Option<ObjectKey>,
    /// True if an object changed.
    pub(super) changed: bool,
}

/// An object after its last write.
struct Object {
    version: u64,
    /// The object's text, at least its metadata, if a selector has to be applied to it.
    text: Option<Bytes>,
}

impl Object {
    fn is_shown_by(&self, selection: &Selection) -> bool {
        let text = || std::str::from_utf8(self.text.as_deref()?).ok();
        selection.is_all() || text().is_some_and(|text| selection.shows(text))
    }
}

impl<'a> Wrote<'a> {
    /// No writes yet.
    pub(super) fn new(key: &'a ObjectName, sources: &'a Sources, memory: &'a KeyMemory) -> Self {
        Self {
            key,
            sources,
            memory,
            objects: HashMap::new(),
            deleted: Vec::new(),
            taken: None,
            changed: false,
        }
    }

    /// The version after the turn's last write to an object.
    pub(super) fn version(&self, key: &ObjectKey) -> Option<u64> {
        self.objects.get(key).map(|object| object.version)
    }

    /// The version of an object in the stores, or after the controller's last write to it.
    pub(super) fn known_version(&self, key: &ObjectKey) -> Option<u64> {
        let stored = self.sources.shown(&key.kind, &key.name);
        let stored = stored.map(|object| object.version);
        stored.or_else(|| self.memory.version(key))
    }

    /// Returns whether the store still shows this object under the turn's key.
    pub(super) fn is_shown(&self, object: Option<&Snapshot>) -> bool {
        let shown = self.sources.snapshot(self.key);
        matches!((shown, object), (Some(shown), Some(object)) if shown.uid() == object.uid())
    }

    /// Records an effect that was carried out. `before` is the version that the object had, if
    /// known.
    pub(super) fn note(
        &mut self,
        effect: &Effect,
        mut key: ObjectKey,
        before: Option<u64>,
        written: &Written,
    ) {
        if key.name.name().is_empty() {
            key.name = ObjectName::new(key.name.namespace(), &written.name);
        }
        if let Effect::Apply(apply) = effect {
            self.memory.applied(&key, apply, written);
        }
        if written.gone {
            self.changed = true;
            self.deleted
                .push((key, Some(written.uid.clone()).filter(|uid| !uid.is_empty())));
        } else if written.version > 0 {
            // A write that changed nothing causes no event.
            if before.is_none_or(|before| before < written.version) {
                self.changed = true;
                self.own_write(&key, written.version);
            }
            self.insert(key, written.version, || written.body.clone());
        }
    }

    /// Records an object from a live read, after a write whose response was lost.
    pub(super) fn found(&mut self, key: &ObjectKey, object: &Snapshot) {
        self.own_write(key, object.version);
        let text = || Bytes::from(object.text.to_string());
        self.insert(key.clone(), object.version, text);
    }

    /// Records that an object of this name exists already.
    pub(super) fn await_taken(&mut self, key: &ObjectKey) {
        self.taken = Some(key.clone());
    }

    fn insert(&mut self, key: ObjectKey, version: u64, text: impl FnOnce() -> Bytes) {
        let watches = || self.sources.watching(&key.kind, key.name.namespace());
        let selected = watches().any(|(_, selection)| !selection.is_all());
        let object = Object {
            version,
            text: selected.then(text),
        };
        if !watches().any(|(_, selection)| object.is_shown_by(selection)) {
            self.memory.wrote_unseen(&key, version);
        }
        self.objects.insert(key, object);
    }

    /// Waits until the stores show all these writes, as far as they ever will.
    pub(super) async fn shown(self) {
        let sources = self.sources;
        for (key, object) in &self.objects {
            for (watch, selection) in sources.watching(&key.kind, key.name.namespace()) {
                // Leaving a selection causes an event too.
                let leaves = || watch.store().get(key.name.as_str()).is_some();
                if object.is_shown_by(selection) || leaves() {
                    watch.caught_up(object.version).await;
                }
            }
        }
        for (key, uid) in &self.deleted {
            let is_it = |found: &str| uid.as_deref().is_none_or(|uid| uid == found);
            for (watch, _) in sources.watching(&key.kind, key.name.namespace()) {
                watch
                    .wait_until(|store| {
                        let found = store.get(key.name.as_str());
                        found.is_none_or(|object| !is_it(object.uid()))
                    })
                    .await;
            }
        }
        if let Some(key) = &self.taken {
            // Only watches without a selector are waited for: the object belongs to another writer,
            // so it is unknown whether a selector shows it.
            let mut watches = sources.watching(&key.kind, key.name.namespace());
            if let Some((watch, _)) = watches.find(|(_, selection)| selection.is_all()) {
                watch
                    .wait_until(|store| store.get(key.name.as_str()).is_some())
                    .await;
            }
        }
    }

    /// Records that events of this version, from any of the kind's watches, are the turn's own.
    fn own_write(&self, key: &ObjectKey, version: u64) {
        let watches = self.sources.sources_of(&key.kind);
        self.memory.wrote(self.key, watches, version);
    }
}
