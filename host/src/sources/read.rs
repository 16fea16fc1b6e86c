//! What a policy reads: from the stores of its generation, or past them; and what it is told when it may not.

use vmhost_cluster::{Index, Query};
use vmhost_core::{
    Gvk, LabelSelector, ListQuery, LiveRead, ObjectName, ObjectReader, Page, ReadError, Role,
    Snapshot,
};

use super::{Sources, Watch};

impl ObjectReader for Sources {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        let store = self
            .store_of(kind, name.namespace())
            .ok_or_else(|| self.not_watched(kind, name.namespace()))?;
        Ok(store.get(name.as_str()))
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
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
        let namespace = query.namespace.as_deref();
        if self.subscription_of(&query.kind, namespace).is_none() {
            return Err(self.not_watched(&query.kind, namespace));
        }
        let (watch, index) = self.indexed(query)?;
        let asked = Query {
            namespace,
            selector: selector.as_ref(),
            index: index.as_ref().map(|(index, value)| (index, *value)),
            after: after.as_ref(),
            limit: query.limit,
        };
        merge(watch, &asked)
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        match self.may_read_live(&kind, name.namespace()) {
            Ok(()) => self.live.get(kind, name),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        let namespace = query.namespace.as_deref();
        match self.may_read_live(&query.kind, namespace) {
            Ok(()) => self.live.list(query),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }
}

impl Sources {
    fn not_watched(&self, kind: &Gvk, namespace: Option<&str>) -> ReadError {
        ReadError::NotWatched(match namespace {
            Some(namespace) if self.watch_of(kind, None).is_some() => {
                format!("{kind} in namespace {namespace}")
            }
            _ if self.live_only.contains(kind) => format!("{kind} (live reads only)"),
            _ => kind.to_string(),
        })
    }

    /// May the policy read this past the stores? What it named, in the namespaces that the host was given.
    fn may_read_live(&self, kind: &Gvk, namespace: Option<&str>) -> Result<(), ReadError> {
        let named = self.live_only.contains(kind) || self.watch_of(kind, None).is_some();
        let inside = self.namespaces.is_empty()
            || namespace.is_some_and(|namespace| self.namespaces.iter().any(|of| of == namespace));
        match (named, inside) {
            (true, true) => Ok(()),
            (false, _) => Err(ReadError::NotWatched(kind.to_string())),
            (true, false) => Err(ReadError::NotWatched(format!(
                "{kind} outside of the namespaces {}",
                self.namespaces.join(", ")
            ))),
        }
    }

    /// The watch that answers a query, and the index and value that it asks for.
    fn indexed<'q>(&self, query: &'q ListQuery) -> Result<(&Watch, Lookup<'q>), ReadError> {
        let name = query.index.as_ref().map(|index| index.name.as_str());
        // A kind that owns its own is kept by owner where it is watched, not where it is the primary.
        let by_owner = self
            .watches
            .iter()
            .find(|watch| watch.kind == query.kind && watch.role != Role::Primary)
            .filter(|_| query.owner.is_some());
        let watch = by_owner
            .or_else(|| self.watch_of(&query.kind, name))
            .ok_or_else(|| {
                ReadError::Invalid(format!(
                    "the description declares no index {:?} for {}",
                    name.unwrap_or_default(),
                    query.kind
                ))
            })?;
        match (&query.index, &query.owner) {
            (Some(_), Some(_)) => Err(ReadError::Invalid(
                "a query by index and by owner: ask for one of them".into(),
            )),
            (Some(index), None) => {
                let of = watch.indexes.get(&index.name).cloned();
                Ok((watch, of.map(|of| (of, index.value.as_str()))))
            }
            (None, Some(_)) if watch.role == Role::Primary => Err(ReadError::Invalid(
                "the primary kind is not kept by owner: only owns, watches and reads are".into(),
            )),
            (None, Some(uid)) => Ok((watch, Some((Index::Owner, uid.as_str())))),
            (None, None) => Ok((watch, None)),
        }
    }
}

/// An index and the value that is looked for; none: all objects.
type Lookup<'q> = Option<(Index, &'q str)>;

/// One page over the stores of all namespaces.
fn merge(watch: &Watch, query: &Query<'_>) -> Result<Page, ReadError> {
    let (mut found, mut more) = (Vec::new(), false);
    for subscription in &*watch.subscriptions {
        let (objects, next) = subscription
            .store()
            .page(query)
            .map_err(|error| ReadError::Invalid(error.to_string()))?;
        more |= next.is_some();
        found.extend(objects);
    }
    if watch.subscriptions.len() > 1 {
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
