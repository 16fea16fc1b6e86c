//! Queries of a store, answered in pages ordered by namespace and name. This module must not know
//! what a query is for.

use std::ops::Bound;

use vmhost_core::{LabelSelector, Metadata, ObjectName, Snapshot};

use super::Store;
use super::index::{Index, NotIndexed};

/// Selects objects. All conditions must hold; the default selects everything.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Only objects in this namespace.
    pub namespace: Option<&'a str>,
    /// Only objects with these labels.
    pub selector: Option<&'a LabelSelector>,
    /// Only objects with this value in this index.
    pub index: Option<(&'a Index, &'a str)>,
    /// Only objects after this name: the `next` of the previous page, whether that object still
    /// exists or not.
    pub after: Option<&'a ObjectName>,
    /// Maximum number of objects; 0 counts as 1.
    pub limit: usize,
}

impl Default for Query<'_> {
    fn default() -> Self {
        Self {
            namespace: None,
            selector: None,
            index: None,
            after: None,
            limit: usize::MAX,
        }
    }
}

impl Store {
    /// Returns objects ordered by namespace and name, as the store shows them at one moment, and
    /// the `after` of the next page if there are more. Objects of other namespaces and index values
    /// are not read; nor, without a selector, are objects after the page.
    pub fn page(
        &self,
        query: &Query<'_>,
    ) -> Result<(Vec<Snapshot>, Option<ObjectName>), NotIndexed> {
        // The selector that matches everything needs no labels.
        let selector = query
            .selector
            .filter(|selector| **selector != LabelSelector::default());
        let limit = query.limit.max(1);
        // One more than the page, to learn whether there is a next page.
        let enough = limit.saturating_add(1);
        let read = if selector.is_some() {
            usize::MAX
        } else {
            enough
        };
        let mut found = self.candidates(query, read)?;
        if let Some(selector) = selector {
            // Labels are parsed outside of the lock. Unparsable labels do not match.
            let matches = |snapshot: &Snapshot| {
                Metadata::parse(&snapshot.text)
                    .is_ok_and(|metadata| selector.matches_by(|key| metadata.labels.get(key)))
            };
            found = found.into_iter().filter(matches).take(enough).collect();
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found
            .last()
            .filter(|_| more)
            .map(|snapshot| snapshot.name.clone());
        Ok((found, next))
    }

    /// The first `limit` objects of this namespace and index value after `after`.
    fn candidates(&self, query: &Query<'_>, limit: usize) -> Result<Vec<Snapshot>, NotIndexed> {
        let lowest = query
            .namespace
            .map(|namespace| ObjectName::new(Some(namespace), ""));
        let from = match (query.after, &lowest) {
            (Some(after), Some(lowest)) if after < lowest => Bound::Included(lowest),
            (Some(after), _) => Bound::Excluded(after),
            (None, Some(lowest)) => Bound::Included(lowest),
            (None, None) => Bound::Unbounded,
        };
        let state = self.read();
        let names: Box<dyn Iterator<Item = &ObjectName> + '_> = match query.index {
            None => Box::new(state.order.range::<ObjectName, _>((from, Bound::Unbounded))),
            Some((index, value)) => match state.indexes.names(index, value)? {
                Some(names) => names.from(from),
                None => Box::new(std::iter::empty()),
            },
        };
        let inside = |name: &&ObjectName| {
            query
                .namespace
                .is_none_or(|namespace| name.namespace() == Some(namespace))
        };
        let found = names
            .take_while(inside)
            .take(limit)
            .filter_map(|name| state.objects.get(name.as_str()))
            .map(|entry| entry.snapshot.clone());
        Ok(found.collect())
    }
}
