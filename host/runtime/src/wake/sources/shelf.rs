//! Which of a controller's watches answers a read, and by which index. The same rules for a cluster's stores and for the objects of a case.
//!
//! It must not know where the stores are, nor what is read past them.

use std::collections::BTreeMap;
use std::ops::Deref;

use vmhost_cluster::{Index, Query, Store, Wanted, WatchSpec};
use vmhost_core::{
    FieldPath, Gvk, LabelSelector, ListQuery, Mapping, ObjectName, Page, Predicate, ReadError,
    Role, Snapshot, Watched,
};

use super::selection::Selection;

/// One watched kind, as reads see it.
#[derive(Clone, Debug)]
pub struct Shelf {
    /// The kind.
    pub kind: Gvk,
    /// Its place in the description.
    pub role: Role,
    /// Which objects of the kind are on it.
    pub selection: Selection,
    /// By what it is looked up.
    pub indexes: BTreeMap<String, Index>,
}

/// An index and the value that is looked for; none: all objects.
type Lookup<'q> = Option<(Index, &'q str)>;

impl Shelf {
    /// That of a kind of the description.
    pub fn of(role: Role, watched: &Watched) -> Self {
        let parse = |(name, path): (&String, &String)| {
            // What does not parse was refused with the description.
            Some((name.clone(), Index::Field(FieldPath::parse(path).ok()?)))
        };
        Self {
            kind: watched.gvk(),
            role,
            selection: Selection::of(watched),
            indexes: watched.indexes.iter().filter_map(parse).collect(),
        }
    }

    /// What to watch and keep: the wanted fields, and what predicates and mappings look at.
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

/// The watch of a kind that knows this index and, if there is a choice, all objects.
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

/// What a policy is told that reads a kind, or a namespace, which is on no shelf.
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

/// One page of a kind that is watched, from the stores of the watch that answers.
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

/// The watch that answers a query, and the index and value that it asks for.
fn indexed<'w, 'q, W: AsRef<Shelf>>(
    watches: &'w [W],
    query: &'q ListQuery,
) -> Result<(&'w W, Lookup<'q>), ReadError> {
    let name = query.index.as_ref().map(|index| index.name.as_str());
    // A kind that owns its own is kept by owner where it is watched, not where it is the primary.
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
            "a query by index and by owner: ask for one of them".into(),
        )),
        (Some(index), None) => {
            let of = shelf.indexes.get(&index.name).cloned();
            Ok((watch, of.map(|of| (of, index.value.as_str()))))
        }
        (None, Some(_)) if shelf.role == Role::Primary => Err(ReadError::Invalid(
            "the primary kind is not kept by owner: only owns, watches and reads are".into(),
        )),
        (None, Some(uid)) => Ok((watch, Some((Index::Owner, uid.as_str())))),
        (None, None) => Ok((watch, None)),
    }
}

/// One page over the stores of all namespaces.
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
        // The namespaces of a cluster-scoped kind share one store.
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
