//! Live reads: requests of a plugin that go to the API server instead of a store. They are counted
//! separately, and run on the I/O runtime.
//!
//! This module limits the reads in flight: each plugin has its own slots, and at most half of them
//! per API group, so that a slow aggregated API delays neither other plugins nor the plugin's reads
//! of other groups. It must not know which kinds a plugin may read; [`crate::wake::sources`] checks
//! that first.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::IntCounterVec;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use vmhost_cluster::{Error, LiveQuery, ObjectPath};
use vmhost_core::{Gvk, ListQuery, LiveRead, ObjectName, Page, ReadError, Snapshot};

use crate::observe::trace::carried;
use crate::wake::resources::Resources;
use vmhost_core::chain;

/// The error for a live list by index or owner, which only the stores know.
pub const NO_INDEXES: &str =
    "list-live supports neither indexes nor owners, since it asks the API server";

/// Maximum number of objects per page. The rest follows with the next page.
const PAGE: usize = 500;

/// Maximum number of live reads in flight per plugin. Each may hold a page: at 10 KiB per object
/// that is 5 MiB, and 40 MiB per plugin.
const OF_A_PLUGIN: usize = 8;

/// Maximum number of these per API group. The default of 4 workers never reaches it.
const OF_A_GROUP: usize = 4;

/// Sends live reads.
pub struct Live {
    resources: Arc<Resources>,
    io: Handle,
    /// The number of sent reads, by verb and kind.
    sent: IntCounterVec,
}

/// The live reads of one plugin, shared by its generations and controllers.
pub struct LiveReads {
    live: Arc<Live>,
    places: Arc<Semaphore>,
    /// The slots of each API group. A plugin reads only kinds that it has declared, so there are no
    /// more groups than in its descriptions.
    groups: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Live {
    /// Sends reads on the current runtime.
    pub fn new(resources: Arc<Resources>, sent: IntCounterVec) -> Arc<Self> {
        Arc::new(Self {
            resources,
            io: Handle::current(),
            sent,
        })
    }

    /// Creates the live reads of one more plugin.
    pub fn reads(self: &Arc<Self>) -> Arc<LiveReads> {
        Arc::new(LiveReads {
            live: self.clone(),
            places: Arc::new(Semaphore::new(OF_A_PLUGIN)),
            groups: Mutex::default(),
        })
    }
}

impl LiveReads {
    /// Reads one object.
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

    /// Reads one page of a list.
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
            // In this order, a read that waits for a slow group takes no slot from other groups.
            (group.acquire_owned().await, places.acquire_owned().await)
        };
        LiveRead::new(admitted, async move |places| {
            // A call that stops waiting (at its deadline) cancels the read.
            let reading = AbortOnDropHandle::new(io.spawn(carried(async move {
                let _places = places;
                read.await
            })));
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
