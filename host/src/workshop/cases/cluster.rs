//! The cluster of a case: objects from files, kept as the controller's stores would keep them, and
//! read by the same rules.
//!
//! Fields that an API server sets on every object, and that a file may omit, are filled in here.
//! This module must not know what the objects are for.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use vmhost_cluster::{Fixture, Store, Wanted, WatchSpec};
use vmhost_core::{
    ControllerDescription, Gvk, ListQuery, LiveRead, MapBy, Mapping, ObjectKey, ObjectName,
    ObjectReader, Page, Predicate, ReadError, Role, Snapshot, Watched,
};

use super::read::Given;
use vmhost_runtime::wake::sources::shelf;
use vmhost_runtime::wake::sources::shelf::Shelf;

/// The objects that a controller may read.
pub(crate) struct Cluster {
    /// Where the objects come from.
    origin: Origin,
    /// The objects as the stores keep them: selected and pruned.
    watches: Vec<Watch>,
    /// The objects as the API server keeps them, with a shelf for each kind.
    whole: Vec<Watch>,
    live_only: Vec<Gvk>,
}

/// Where the objects of a case come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A person wrote them: they are complete, as an API server has them.
    Author,
    /// They are recorded: the stores of a host kept them, and may have kept more fields because of
    /// other plugins. So nothing is left out of them, and a selector may name a field that they
    /// lack.
    Record,
}

struct Watch {
    shelf: Shelf,
    map: Option<MapBy>,
    spec: WatchSpec,
    fixture: Fixture,
}

impl AsRef<Shelf> for Watch {
    fn as_ref(&self) -> &Shelf {
        &self.shelf
    }
}

impl Cluster {
    /// An empty cluster with the kinds that the description names.
    pub(crate) fn new(description: &ControllerDescription) -> Self {
        Self::of(description, Origin::Author)
    }

    /// Creates an empty cluster for the objects of a recorded turn.
    pub(crate) fn recorded(description: &ControllerDescription) -> Self {
        Self::of(description, Origin::Record)
    }

    fn of(description: &ControllerDescription, origin: Origin) -> Self {
        let kind = description.kind();
        let mut cluster = Self {
            origin,
            watches: Vec::new(),
            whole: Vec::new(),
            live_only: Vec::new(),
        };
        for (role, watched) in description.kinds() {
            if shelf::find(&cluster.whole, &watched.gvk(), None).is_none() {
                cluster.whole.push(Watch::whole(watched.gvk()));
            }
            if watched.live {
                cluster.live_only.push(watched.gvk());
            } else {
                let watch = Watch::new(role, watched, &kind, origin);
                cluster.watches.push(watch);
            }
        }
        cluster
    }

    /// Adds an object. An object that no read can find is an error, unless the object is recorded:
    /// another version of the plugin may read less.
    pub(crate) fn add(&self, given: &Given) -> Result<()> {
        let text = text(given);
        let Some(whole) = shelf::find(&self.whole, &given.key.kind, None) else {
            if self.origin == Origin::Record {
                return Ok(());
            }
            bail!(
                "{}: the controller neither watches nor reads {}",
                given.place,
                given.key.kind
            );
        };
        whole.put(&text).with_context(|| given.place.clone())?;
        for watch in &self.watches {
            let selection = &watch.shelf.selection;
            let shows = match self.origin {
                Origin::Author => selection.shows(&text),
                Origin::Record => selection.may_show(&text),
            };
            if watch.shelf.kind == given.key.kind && shows {
                watch.put(&text).with_context(|| given.place.clone())?;
            }
        }
        Ok(())
    }

    /// Returns the primary object as the plugin gets it. `None` if it is absent, or not selected by
    /// the description.
    pub(crate) fn primary(&self, name: &ObjectName) -> Option<Snapshot> {
        self.of_primary()?.fixture.store().get(name.as_str())
    }

    /// Returns an object as the primary's store would keep it.
    pub(crate) fn as_primary(&self, given: &Given) -> Result<Snapshot> {
        let watch = self
            .of_primary()
            .filter(|of| of.shelf.kind == given.key.kind);
        let watch = watch.with_context(|| {
            format!(
                "{}: {} is not the controller's kind",
                given.place, given.key.kind
            )
        })?;
        watch.kept(given)
    }

    /// Returns an object as the plugin's `map-changes` gets it.
    pub(crate) fn as_changed(&self, given: &Given) -> Result<Snapshot> {
        let mapped =
            |watch: &&Watch| watch.shelf.kind == given.key.kind && watch.map == Some(MapBy::Guest);
        let watch = self.watches.iter().find(mapped).with_context(|| {
            format!(
                "{}: the controller does not watch {} with \"map\": \"guest\"",
                given.place, given.key.kind
            )
        })?;
        watch.kept(given)
    }

    /// Returns whether there is a store of this kind.
    fn keeps(&self, kind: &Gvk) -> bool {
        shelf::find(&self.watches, kind, None).is_some()
    }

    /// Returns whether a store may show an object that is created with this text.
    pub(crate) fn may_show(&self, kind: &Gvk, object: &str) -> bool {
        self.watches
            .iter()
            .any(|watch| watch.shelf.kind == *kind && watch.shelf.selection.may_show(object))
    }

    fn of_primary(&self) -> Option<&Watch> {
        self.watches
            .first()
            .filter(|watch| watch.shelf.role == Role::Primary)
    }

    fn named(&self, kind: &Gvk) -> Result<&Watch, ReadError> {
        shelf::find(&self.whole, kind, None).ok_or_else(|| ReadError::NotWatched(kind.to_string()))
    }
}

impl Watch {
    fn new(role: Role, watched: &Watched, primary: &Gvk, origin: Origin) -> Self {
        // Predicates that do not parse were refused with the description.
        let predicate = watched.predicates.as_ref();
        let predicate = predicate.and_then(|predicates| Predicate::compile(predicates).ok());
        let map = match role {
            Role::Owned => Some(MapBy::Controller),
            _ => watched.map.clone(),
        };
        let mapping = map.as_ref();
        let mapping = mapping.and_then(|map| Mapping::compile(map, primary).ok().flatten());
        let shelf = Shelf::of(role, watched);
        let mut spec = shelf.spec(watched, predicate.as_ref(), mapping.as_ref());
        if origin == Origin::Record {
            spec.wanted = Wanted::All;
        }
        Self {
            shelf,
            map,
            fixture: Fixture::new(&spec),
            spec,
        }
    }

    /// A watch of all objects of a kind, with all their fields.
    fn whole(kind: Gvk) -> Self {
        let watched = Watched {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            ..Watched::default()
        };
        Self::new(Role::Read, &watched, &kind, Origin::Author)
    }

    fn put(&self, text: &str) -> Result<Snapshot> {
        Ok(self.fixture.put(text)?)
    }

    /// Returns an object as the store would keep it.
    fn kept(&self, given: &Given) -> Result<Snapshot> {
        let kept = Fixture::new(&self.spec).put(&text(given));
        kept.with_context(|| given.place.clone())
    }

    fn store(&self) -> Option<&Store> {
        Some(self.fixture.store())
    }
}

/// Returns the text of an object. An object that a person wrote gets what [`filled`] adds; a
/// recorded object keeps its own text.
fn text(given: &Given) -> String {
    let filled = filled(given.value.clone(), &given.key);
    match &given.text {
        Some(text) if filled == given.value => text.clone(),
        _ => filled.to_string(),
    }
}

/// Fills in the fields that an API server sets: a resource version, and a uid that is derived from
/// the key, so that it is the same in each run.
fn filled(mut object: Value, key: &ObjectKey) -> Value {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    let digest = hex::encode(Sha256::digest(key.to_string()));
    let uid = format!(
        "{}-{}-{}-{}-{}",
        &digest[..8],
        &digest[8..12],
        &digest[12..16],
        &digest[16..20],
        &digest[20..32]
    );
    metadata.entry("uid").or_insert(json!(uid));
    metadata.entry("resourceVersion").or_insert(json!("1"));
    object
}

impl ObjectReader for Cluster {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        match shelf::find(&self.watches, kind, None) {
            Some(watch) => Ok(watch.fixture.store().get(name.as_str())),
            None => Err(shelf::not_watched(
                &self.watches,
                &self.live_only,
                kind,
                name.namespace(),
            )),
        }
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        if !self.keeps(&query.kind) {
            let namespace = query.namespace.as_deref();
            let (watches, live) = (&self.watches, &self.live_only);
            return Err(shelf::not_watched(watches, live, &query.kind, namespace));
        }
        shelf::list(&self.watches, query, Watch::store)
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        let found = self
            .named(&kind)
            .map(|watch| watch.fixture.store().get(name.as_str()));
        LiveRead::answered(found)
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        let page = if query.index.is_some() || query.owner.is_some() {
            Err(ReadError::Invalid(
                vmhost_runtime::wake::live::NO_INDEXES.into(),
            ))
        } else {
            self.named(&query.kind)
                .and_then(|_| shelf::list(&self.whole, &query, Watch::store))
        };
        LiveRead::answered(page)
    }
}

#[cfg(test)]
mod tests;
