//! Which objects have a value in a field: a query by index uses this instead of parsing every text.
//!
//! This module owns the maps from values to names, and the list of each object's values. It must
//! not know when an object changes; the store tells it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use vmhost_core::{FieldPath, Fields, ObjectName};

/// Estimated bytes per value besides its text: map entry (48), two counts and the first name's
/// allocation (48).
pub(super) const VALUE: usize = 96;

/// Estimated bytes per object under a value: its name in the value's list (16, half of it spare),
/// the value in the object's own list (24).
pub(super) const POSTING: usize = 48;

/// Up to this many names of one value are kept in a sorted list; more in a tree, which costs ten
/// times as much for a single name.
const FEW: usize = 64;

/// A key for looking up objects, besides name and namespace.
///
/// An object is listed under each of its values, once. An object whose field is missing, null, an
/// object or an array is listed under none, so this index cannot find it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Index {
    /// The uids of an object's owner references, of the controller and of other owners.
    Owner,
    /// The values of a field.
    Field(FieldPath),
}

impl Index {
    /// The path of the values.
    pub fn path(&self) -> Cow<'_, FieldPath> {
        match self {
            Self::Owner => Cow::Owned(FieldPath::owner_uids()),
            Self::Field(path) => Cow::Borrowed(path),
        }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("owner"),
            Self::Field(path) => path.fmt(f),
        }
    }
}

/// The store does not keep this index, because no subscription wants it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no index on {0}: declare it with the watch")]
pub struct NotIndexed(pub Index);

/// The kept indexes. Replaced as a whole, so that texts can be parsed outside of the store's lock.
#[derive(Debug, Default)]
pub(super) struct Kept {
    list: Vec<Index>,
    fields: Fields,
}

/// Values with the number of their index, ordered, each once.
pub(super) type Found<'t> = Vec<(usize, Cow<'t, str>)>;

/// As [`Found`], for an object's entry: the texts are shared with the maps.
pub(super) type Held = Box<[(usize, Arc<str>)]>;

impl Kept {
    pub(super) fn new(indexes: &BTreeSet<Index>) -> Self {
        let list: Vec<Index> = indexes.iter().cloned().collect();
        let paths: Vec<Cow<'_, FieldPath>> = list.iter().map(Index::path).collect();
        let fields = Fields::new(paths.iter().map(AsRef::as_ref));
        Self { list, fields }
    }

    pub(super) fn list(&self) -> &[Index] {
        &self.list
    }

    /// Returns the values of one object; empty if its text cannot be parsed.
    pub(super) fn values<'t>(&self, text: &'t str) -> Found<'t> {
        if self.list.is_empty() {
            return Vec::new();
        }
        let mut found = self.fields.read(text).unwrap_or_default();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The maps of all kept indexes.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    pub(super) kept: Arc<Kept>,
    maps: Vec<HashMap<Arc<str>, Names>>,
    bytes: usize,
    /// How often a map was changed.
    #[cfg(test)]
    pub(super) touched: usize,
}

impl Indexes {
    pub(super) fn new(kept: Arc<Kept>) -> Self {
        Self {
            maps: kept.list.iter().map(|_| HashMap::new()).collect(),
            kept,
            ..Self::default()
        }
    }

    /// Approximate memory of the maps in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the names under a value; `None` if no object has it.
    pub(super) fn names(&self, index: &Index, value: &str) -> Result<Option<&Names>, NotIndexed> {
        let at = self.kept.list.binary_search(index);
        let map = at.ok().and_then(|at| self.maps.get(at));
        let map = map.ok_or_else(|| NotIndexed(index.clone()))?;
        Ok(map.get(value))
    }

    /// Replaces the values of an object. Equal values change nothing.
    pub(super) fn replace(&mut self, name: &ObjectName, held: &mut Held, now: &Found<'_>) {
        let same = held.len() == now.len()
            && held
                .iter()
                .zip(now)
                .all(|(a, b)| a.0 == b.0 && *a.1 == *b.1);
        if same {
            return;
        }
        for (at, value) in held.iter() {
            let stays =
                now.binary_search_by(|(number, text)| (*number, &**text).cmp(&(*at, &**value)));
            if stays.is_err() {
                self.take(*at, value, name);
            }
        }
        *held = now
            .iter()
            .map(|(at, value)| {
                let had =
                    held.binary_search_by(|(number, text)| (*number, &**text).cmp(&(*at, value)));
                let value = match had {
                    Ok(had) => held[had].1.clone(),
                    Err(_) => self.put(*at, value, name),
                };
                (*at, value)
            })
            .collect();
    }

    /// Removes an object with these values.
    pub(super) fn remove(&mut self, name: &ObjectName, held: &Held) {
        for (at, value) in held {
            self.take(*at, value, name);
        }
    }

    fn put(&mut self, at: usize, value: &str, name: &ObjectName) -> Arc<str> {
        self.touch();
        let map = &mut self.maps[at];
        self.bytes += POSTING;
        if let Some((text, _)) = map.get_key_value(value) {
            let text = text.clone();
            if let Some(names) = map.get_mut(value) {
                names.insert(name.clone());
            }
            return text;
        }
        self.bytes += VALUE + value.len();
        let text: Arc<str> = value.into();
        map.insert(text.clone(), Names::Few(vec![name.clone()]));
        text
    }

    fn take(&mut self, at: usize, value: &str, name: &ObjectName) {
        self.touch();
        let map = &mut self.maps[at];
        let Some(names) = map.get_mut(value) else {
            return;
        };
        if names.remove(name) {
            self.bytes -= POSTING;
        }
        if names.is_empty() {
            map.remove(value);
            self.bytes -= VALUE + value.len();
        }
    }

    fn touch(&mut self) {
        #[cfg(test)]
        {
            self.touched += 1;
        }
    }
}

/// The names under one value, ordered.
#[derive(Debug)]
pub(super) enum Names {
    Few(Vec<ObjectName>),
    Many(BTreeSet<ObjectName>),
}

impl Names {
    fn insert(&mut self, name: ObjectName) {
        match self {
            Self::Few(list) if list.len() < FEW => {
                if let Err(at) = list.binary_search(&name) {
                    list.insert(at, name);
                }
            }
            Self::Few(list) => {
                let mut tree: BTreeSet<ObjectName> = std::mem::take(list).into_iter().collect();
                tree.insert(name);
                *self = Self::Many(tree);
            }
            Self::Many(tree) => {
                tree.insert(name);
            }
        }
    }

    fn remove(&mut self, name: &ObjectName) -> bool {
        match self {
            Self::Few(list) => match list.binary_search(name) {
                Ok(at) => {
                    list.remove(at);
                    true
                }
                Err(_) => false,
            },
            Self::Many(tree) => tree.remove(name),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Few(list) => list.is_empty(),
            Self::Many(tree) => tree.is_empty(),
        }
    }

    /// The names from this bound on, in order.
    pub(super) fn from<'a>(
        &'a self,
        from: Bound<&ObjectName>,
    ) -> Box<dyn Iterator<Item = &'a ObjectName> + 'a> {
        match self {
            Self::Few(list) => {
                let start = match from {
                    Bound::Unbounded => 0,
                    Bound::Included(from) => list.partition_point(|name| name < from),
                    Bound::Excluded(from) => list.partition_point(|name| name <= from),
                };
                Box::new(list[start..].iter())
            }
            Self::Many(tree) => Box::new(tree.range::<ObjectName, _>((from, Bound::Unbounded))),
        }
    }
}
