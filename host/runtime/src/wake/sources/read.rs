//! The reads of a plugin: from the stores of its generation or from the API server, and the errors
//! for reads that are not allowed.

use vmhost_cluster::Subscription;
use vmhost_core::{Gvk, ListQuery, LiveRead, ObjectName, ObjectReader, Page, ReadError, Snapshot};

use super::{Sources, shelf};

impl ObjectReader for Sources {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        let store = self
            .store_of(kind, name.namespace())
            .ok_or_else(|| self.not_watched(kind, name.namespace()))?;
        Ok(store.get(name.as_str()))
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        let namespace = query.namespace.as_deref();
        if self.store_of(&query.kind, namespace).is_none() {
            return Err(self.not_watched(&query.kind, namespace));
        }
        shelf::list(&self.watches, query, |watch| {
            watch.subscriptions.iter().map(Subscription::store)
        })
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        match self.may_read_live(&kind, name.namespace()) {
            Ok(()) => self.live.get(kind, name),
            Err(error) => LiveRead::answered(Err(error)),
        }
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        let namespace = query.namespace.as_deref();
        match self.may_read_live(&query.kind, namespace) {
            Ok(()) => self.live.list(query),
            Err(error) => LiveRead::answered(Err(error)),
        }
    }

    fn reserved(&self, name: &str) -> Option<String> {
        self.member.as_ref()?.setting(name)
    }
}

impl Sources {
    fn not_watched(&self, kind: &Gvk, namespace: Option<&str>) -> ReadError {
        shelf::not_watched(&self.watches, &self.live_only, kind, namespace)
    }

    /// Returns an error if the plugin may not read this live: it may read the kinds that it
    /// declared, in the host's namespaces.
    fn may_read_live(&self, kind: &Gvk, namespace: Option<&str>) -> Result<(), ReadError> {
        let named = self.live_only.contains(kind) || self.watch_of(kind).is_some();
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
}
