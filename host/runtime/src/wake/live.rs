//! Reads that a policy sends past the stores, to the API server itself. They are counted apart, and run on the runtime that does the I/O.
//!
//! It owns how many are under way at once: each plugin has places of its own, and half of them for
//! one API group, so that a slow aggregated API costs neither other plugins nor the other groups of
//! the same plugin anything. It must not know which kinds a policy may read: [`crate::wake::sources`] has
//! asked before.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::IntCounterVec;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use vmhost_cluster::{Error, LiveQuery, ObjectPath};
use vmhost_core::{Gvk, ListQuery, LiveRead, ObjectName, Page, ReadError, Snapshot};

use crate::wake::resources::Resources;
use vmhost_core::chain;

/// What a policy is told that asks for what only the stores know.
pub const NO_INDEXES: &str = "list-live knows neither indexes nor owners: it asks the API server";

/// Objects of a page, at most: what a policy asks for beyond comes with the next one.
const PAGE: usize = 500;

/// Live reads of one plugin that are under way at once, at most. Each may hold a page: at 10 KiB an
/// object, 5 MiB, 40 MiB a plugin.
const OF_A_PLUGIN: usize = 8;

/// Of these in one API group. The default of 4 workers never waits for it.
const OF_A_GROUP: usize = 4;

/// Sends live reads.
pub struct Live {
    resources: Arc<Resources>,
    io: Handle,
    /// How many were sent, by verb and kind.
    sent: IntCounterVec,
}

/// The live reads of one plugin, whichever of its generations and controllers sends them.
pub struct LiveReads {
    live: Arc<Live>,
    places: Arc<Semaphore>,
    /// By API group. A policy reads kinds that it has named, so that there are no more groups than
    /// in its descriptions.
    groups: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Live {
    /// Reads on the runtime that this is called on.
    pub fn new(resources: Arc<Resources>, sent: IntCounterVec) -> Arc<Self> {
        Arc::new(Self {
            resources,
            io: Handle::current(),
            sent,
        })
    }

    /// Those of one more plugin.
    pub fn reads(self: &Arc<Self>) -> Arc<LiveReads> {
        Arc::new(LiveReads {
            live: self.clone(),
            places: Arc::new(Semaphore::new(OF_A_PLUGIN)),
            groups: Mutex::default(),
        })
    }
}

impl LiveReads {
    /// One object.
    pub(crate) fn get(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        let live = self.live.clone();
        self.send("get", kind.clone(), async move {
            let resource = live.resources.find(&kind).await?;
            let path = ObjectPath {
                resource: &resource,
                namespace: name.namespace(),
                name: Some(name.name()),
                subresource: None,
            };
            let found = live.resources.reader().get(&path).await?;
            Ok(found)
        })
    }

    /// One page.
    pub(crate) fn list(&self, query: ListQuery) -> LiveRead<Page> {
        if query.index.is_some() || query.owner.is_some() {
            return LiveRead::answered(Err(ReadError::Invalid(NO_INDEXES.into())));
        }
        let live = self.live.clone();
        self.send("list", query.kind.clone(), async move {
            let resource = live.resources.find(&query.kind).await?;
            let asked = LiveQuery {
                namespace: query.namespace.as_deref(),
                label_selector: query.label_selector.as_deref(),
                field_selector: None,
                limit: Some(query.limit.min(PAGE) as u32),
                next: query.after.as_deref(),
            };
            let page = live.resources.reader().list_live(&resource, &asked).await?;
            Ok(Page {
                objects: page.objects,
                next: page.next,
            })
        })
    }

    fn send<T: Send + 'static>(
        &self,
        verb: &'static str,
        kind: Gvk,
        read: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> LiveRead<T> {
        let Live { io, sent, .. } = &*self.live;
        sent.with_label_values(&[verb, &kind.to_string()]).inc();
        let (io, places, group) = (io.clone(), self.places.clone(), self.group(&kind));
        let admitted = async move {
            // In this order: what waits for a slow group takes no place from the other groups.
            (group.acquire_owned().await, places.acquire_owned().await)
        };
        LiveRead::new(admitted, async move |places| {
            // A call that stops waiting (its deadline) stops the read.
            let reading = AbortOnDropHandle::new(io.spawn(async move {
                let _places = places;
                read.await
            }));
            match reading.await {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(error)) => Err(ReadError::Unavailable(format!(
                    "cannot {verb} {kind}: {}",
                    chain(&error)
                ))),
                Err(error) => Err(ReadError::Unavailable(error.to_string())),
            }
        })
    }

    fn group(&self, kind: &Gvk) -> Arc<Semaphore> {
        let mut groups = self.groups.lock();
        groups
            .entry(kind.group.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(OF_A_GROUP)))
            .clone()
    }
}
