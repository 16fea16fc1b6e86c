//! The stores that one controller reads in one generation: its primary kind's and those of the kinds in `reads`, one for each watched namespace.
//!
//! They belong to the generation: a swap that wants other fields or kinds brings its own, and the old ones go when its last call has settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vmhost_cluster::{
    Informers, Notice, Query, Store, Subscriber, Subscription, Wanted, WatchSpec,
};
use vmhost_core::{
    ControllerDescription, Gvk, LabelSelector, ListQuery, ObjectName, ObjectReader, Page,
    ReadError, Snapshot,
};

/// A controller's stores.
pub struct Sources {
    feed: Arc<Feed>,
    kinds: Vec<(Gvk, Vec<Subscription>)>,
}

/// Passes notices on while it is open. Stores of a generation that is only being tried must not wake keys of the one that runs, nor must those of one that is
/// over: each own write would come twice.
struct Feed {
    open: AtomicBool,
    to: Arc<dyn Subscriber>,
}

impl Subscriber for Feed {
    fn notice(&self, notice: Notice<'_>) {
        if self.open.load(Ordering::Acquire) {
            self.to.notice(notice);
        }
    }
}

impl Sources {
    /// From now on changes of the primary kind's objects are told.
    pub fn open(&self) {
        self.feed.open.store(true, Ordering::Release);
    }

    /// From now on nothing is told.
    pub fn close(&self) {
        self.feed.open.store(false, Ordering::Release);
    }

    /// Subscribes to what the description names, in these namespaces (none: all). Only the primary kind's changes go to `subscriber`,
    /// once the sources are opened.
    pub fn subscribe(
        informers: &Informers,
        description: &ControllerDescription,
        namespaces: &[String],
        subscriber: Arc<dyn Subscriber>,
    ) -> Self {
        let primary = description.primary.gvk();
        let feed = Arc::new(Feed {
            open: AtomicBool::new(false),
            to: subscriber,
        });
        let wanted = Wanted::fields(description.primary.wanted_fields.clone());
        let spec = WatchSpec {
            label_selector: description.primary.label_selector.clone(),
            field_selector: description.primary.field_selector.clone(),
            wanted,
            ..WatchSpec::of(primary.clone())
        };
        let subscribe =
            |spec: WatchSpec, subscriber: Option<Arc<dyn Subscriber>>| -> Vec<Subscription> {
                let each: Vec<Option<String>> = if namespaces.is_empty() {
                    vec![None]
                } else {
                    namespaces.iter().cloned().map(Some).collect()
                };
                each.into_iter()
                    .map(|namespace| {
                        informers.subscribe(
                            WatchSpec {
                                namespace,
                                ..spec.clone()
                            },
                            subscriber.clone(),
                        )
                    })
                    .collect()
            };
        let mut kinds = vec![(primary.clone(), subscribe(spec, Some(feed.clone())))];
        for kind in &description.reads {
            let spec = WatchSpec::of(kind.clone());
            kinds.push((kind.clone(), subscribe(spec, None)));
        }
        Self { feed, kinds }
    }

    /// Resolves when every store has its first list.
    pub async fn synced(&self) {
        for subscription in self.subscriptions() {
            subscription.synced().await;
        }
    }

    /// Has every store its first list?
    pub fn is_synced(&self) -> bool {
        self.subscriptions()
            .all(|subscription| subscription.store().is_synced())
    }

    /// The snapshot of one of the controller's keys; none: gone.
    pub fn snapshot(&self, name: &ObjectName) -> Option<Snapshot> {
        self.kinds[0]
            .1
            .iter()
            .find_map(|subscription| subscription.store().get(name.as_str()))
    }

    /// All keys of the controller.
    pub fn keys(&self) -> Vec<ObjectName> {
        self.kinds[0]
            .1
            .iter()
            .flat_map(|subscription| subscription.store().names())
            .collect()
    }

    /// The store in which an object of this kind and namespace would appear, if this controller watches such. What a selector leaves out does not.
    pub fn store_of(&self, kind: &Gvk, namespace: Option<&str>) -> Option<Arc<Store>> {
        Some(self.subscription_of(kind, namespace)?.store())
    }

    /// The subscription whose store that is: what to wait on, since the store may be replaced meanwhile.
    pub fn subscription_of(&self, kind: &Gvk, namespace: Option<&str>) -> Option<&Subscription> {
        let (_, subscriptions) = self.kinds.iter().find(|(of, _)| of == kind)?;
        subscriptions.iter().find(|subscription| {
            let spec = subscription.spec();
            spec.namespace.is_none()
                || namespace.is_none()
                || spec.namespace.as_deref() == namespace
        })
    }

    /// Is every object of this kind in the stores, whatever its labels?
    pub fn is_selective(&self, kind: &Gvk) -> bool {
        let found = self.kinds.iter().find(|(of, _)| of == kind);
        found.is_some_and(|(_, subscriptions)| {
            subscriptions.iter().any(|subscription| {
                subscription.spec().label_selector.is_some()
                    || subscription.spec().field_selector.is_some()
            })
        })
    }

    /// Every subscription, the primary's first.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Subscription> {
        self.kinds
            .iter()
            .flat_map(|(_, subscriptions)| subscriptions)
    }

    fn watched(&self, kind: &Gvk, namespace: Option<&str>) -> Result<Arc<Store>, ReadError> {
        self.store_of(kind, namespace)
            .ok_or_else(|| match namespace {
                Some(namespace) if self.kinds.iter().any(|(of, _)| of == kind) => {
                    ReadError::NotWatched(format!("{kind} in namespace {namespace}"))
                }
                _ => ReadError::NotWatched(kind.to_string()),
            })
    }
}

impl ObjectReader for Sources {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        Ok(self.watched(kind, name.namespace())?.get(name.as_str()))
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
        self.watched(&query.kind, query.namespace.as_deref())?;
        let mut page = Page::default();
        let (_, subscriptions) = self
            .kinds
            .iter()
            .find(|(of, _)| *of == query.kind)
            .ok_or_else(|| ReadError::NotWatched(query.kind.to_string()))?;
        let mut found = Vec::new();
        for subscription in subscriptions {
            let asked = Query {
                namespace: query.namespace.as_deref(),
                selector: selector.as_ref(),
                index: None,
                after: after.as_ref(),
                limit: query.limit,
            };
            let (objects, more) = subscription
                .store()
                .page(&asked)
                .map_err(|error| ReadError::Invalid(error.to_string()))?;
            found.extend(objects);
            page.next = page.next.or(more.map(|name| name.to_string()));
        }
        // Several namespaces, several stores: one order over all of them.
        if subscriptions.len() > 1 {
            found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            // Those of a cluster-scoped kind are one.
            found.dedup_by(|a, b| a.name == b.name);
            if found.len() > query.limit {
                found.truncate(query.limit);
                page.next = found.last().map(|object| object.name.to_string());
            } else if page.next.is_some() {
                page.next = found.last().map(|object| object.name.to_string());
            }
        }
        page.objects = found;
        Ok(page)
    }
}
