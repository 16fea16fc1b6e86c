//! Chooses the watch, and the index, that answer a read. The same rules serve the stores of a
//! cluster and the objects of a `vmhost test` case.
//!
//! It must not know where the stores are, or how live reads are sent.

use std::collections::BTreeMap;
use std::ops::Deref;

use vmhost_cluster::{Index, Query, Store, Wanted, WatchSpec};
use vmhost_core::{
    FieldPath, Gvk, LabelSelector, ListQuery, Mapping, ObjectName, Page, Predicate, ReadError,
    Role, Snapshot, Watched,
};

use super::selection::Selection;

/// A watched kind, as seen by reads.
#[derive(Clone, Debug)]
pub struct Shelf {
    /// The kind.
    pub kind: Gvk,
    /// The kind's role in the description.
    pub role: Role,
    /// The objects of the kind that the watch selects.
    pub selection: Selection,
    /// The indexes, by name.
    pub indexes: BTreeMap<String, Index>,
}

/// An index and the wanted value. `None` for all objects.
type Lookup<'q> = Option<(Index, &'q str)>;

impl Shelf {
    /// The shelf of a kind in a description.
    pub fn of(role: Role, watched: &Watched) -> Self {
        let parse = |(name, path): (&String, &String)| {
            // Paths that do not parse were refused with the description.
            Some((name.clone(), Index::Field(FieldPath::parse(path).ok()?)))
        };
        Self {
            kind: watched.gvk(),
            role,
            selection: Selection::of(watched),
            indexes: watched.indexes.iter().filter_map(parse).collect(),
        }
    }

    /// Returns the watch specification: the wanted fields, and the fields that predicates and
    /// mappings use.
    pub fn spec(
        &self,
        watched: &Watched,
        predicate: Option<&Predicate>,
        mapping: Option<&Mapping>,
    ) -> WatchSpec {
        let mut wanted = if watched.metadata_only {
            Wanted::metadata()
        } else {
            Wanted::fields(watched.wanted_fields.clone())
        };
        if let Some(predicate) = predicate {
            wanted = wanted.union(&Wanted::fields(predicate.fields()));
        }
        if let Some(mapping) = mapping {
            wanted = wanted.union(&Wanted::fields(Some(mapping.field())));
        }
        let mut kept: std::collections::BTreeSet<Index> = self.indexes.values().cloned().collect();
        if self.role != Role::Primary {
            kept.insert(Index::Owner);
        }
        WatchSpec {
            label_selector: watched.label_selector.clone(),
            field_selector: watched.field_selector.clone(),
            wanted,
            indexes: kept,
            ..WatchSpec::of(self.kind.clone())
        }
    }
}

/// Returns the watch of a kind with this index. A watch without selectors is preferred.
pub fn find<'w, W: AsRef<Shelf>>(
    watches: &'w [W],
    kind: &Gvk,
    index: Option<&str>,
) -> Option<&'w W> {
    let of = || {
        watches.iter().filter(|watch| {
            let shelf = watch.as_ref();
            shelf.kind == *kind && index.is_none_or(|index| shelf.indexes.contains_key(index))
        })
    };
    of().find(|watch| watch.as_ref().selection.is_all())
        .or_else(|| of().next())
}

/// The error for a read of a kind or namespace that is not watched.
pub fn not_watched<W: AsRef<Shelf>>(
    watches: &[W],
    live_only: &[Gvk],
    kind: &Gvk,
    namespace: Option<&str>,
) -> ReadError {
    ReadError::NotWatched(match namespace {
        Some(namespace) if find(watches, kind, None).is_some() => {
            format!("{kind} in namespace {namespace}")
        }
        _ if live_only.contains(kind) => format!("{kind} (live reads only)"),
        _ => kind.to_string(),
    })
}

/// Lists one page of a watched kind from the stores of the watch that answers.
pub fn list<'w, W, S>(
    watches: &'w [W],
    query: &ListQuery,
    stores: impl FnOnce(&'w W) -> S,
) -> Result<Page, ReadError>
where
    W: AsRef<Shelf>,
    S: IntoIterator<Item: Deref<Target = Store>>,
{
    let selector = query
        .label_selector
        .as_deref()
        .map(LabelSelector::parse)
        .transpose()
        .map_err(ReadError::Invalid)?;
    let after = query
        .after
        .as_deref()
        .map(|after| match after.split_once('/') {
            Some((namespace, name)) => ObjectName::new(Some(namespace), name),
            None => ObjectName::new(None, after),
        });
    let (watch, index) = indexed(watches, query)?;
    let asked = Query {
        namespace: query.namespace.as_deref(),
        selector: selector.as_ref(),
        index: index.as_ref().map(|(index, value)| (index, *value)),
        after: after.as_ref(),
        limit: query.limit,
    };
    merge(stores(watch), &asked)
}

/// Returns the watch that answers a query, with the index and the value.
fn indexed<'w, 'q, W: AsRef<Shelf>>(
    watches: &'w [W],
    query: &'q ListQuery,
) -> Result<(&'w W, Lookup<'q>), ReadError> {
    let name = query.index.as_ref().map(|index| index.name.as_str());
    // If a kind owns objects of its own kind, only its watch as an owned kind has the owner index,
    // not its watch as the primary.
    let by_owner = watches
        .iter()
        .find(|watch| {
            let shelf = watch.as_ref();
            shelf.kind == query.kind && shelf.role != Role::Primary
        })
        .filter(|_| query.owner.is_some());
    let watch = by_owner
        .or_else(|| find(watches, &query.kind, name))
        .ok_or_else(|| {
            ReadError::Invalid(format!(
                "the description declares no index {:?} for {}",
                name.unwrap_or_default(),
                query.kind
            ))
        })?;
    let shelf = watch.as_ref();
    match (&query.index, &query.owner) {
        (Some(_), Some(_)) => Err(ReadError::Invalid(
            "a query can use an index or an owner, not both".into(),
        )),
        (Some(index), None) => {
            let of = shelf.indexes.get(&index.name).cloned();
            Ok((watch, of.map(|of| (of, index.value.as_str()))))
        }
        (None, Some(_)) if shelf.role == Role::Primary => Err(ReadError::Invalid(
            "the primary kind is not indexed by owner; only kinds in owns, watches and reads are"
                .into(),
        )),
        (None, Some(uid)) => Ok((watch, Some((Index::Owner, uid.as_str())))),
        (None, None) => Ok((watch, None)),
    }
}

/// Merges one page from the stores of all namespaces.
fn merge<S>(stores: S, query: &Query<'_>) -> Result<Page, ReadError>
where
    S: IntoIterator<Item: Deref<Target = Store>>,
{
    let (mut found, mut more, mut count) = (Vec::new(), false, 0);
    for store in stores {
        let (objects, next) = store
            .page(query)
            .map_err(|error| ReadError::Invalid(error.to_string()))?;
        more |= next.is_some();
        found.extend(objects);
        count += 1;
    }
    if count > 1 {
        found.sort_unstable_by(|a: &Snapshot, b| a.name.cmp(&b.name));
        // With a cluster-scoped kind, all namespaces share one store.
        found.dedup_by(|a, b| a.name == b.name);
        more |= found.len() > query.limit;
        found.truncate(query.limit.max(1));
    }
    let next = found
        .last()
        .filter(|_| more)
        .map(|object| object.name.to_string());
    Ok(Page {
        objects: found,
        next,
    })
}
