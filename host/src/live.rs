//! Reads that a policy sends past the stores, to the API server itself. They are counted apart, and run on the runtime that does the I/O.
//!
//! It must not know which kinds a policy may read: [`crate::sources`] has asked before.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use vmhost_cluster::{LiveQuery, Target, WriteError};
use vmhost_core::{Gvk, ListQuery, LiveRead, ObjectName, Page, ReadError, Snapshot};

use crate::resources::{Resources, refused};
use crate::telemetry::Metrics;
use crate::verdict::chain;

/// What a policy is told that asks for what only the stores know.
pub const NO_INDEXES: &str = "list-live knows neither indexes nor owners: it asks the API server";

/// Objects of a page, at most: what a policy asks for beyond comes with the next one.
const PAGE: usize = 500;

/// Live reads of all policies that are under way at once, at most: each may hold a page.
const AT_ONCE: usize = 32;

/// Sends live reads.
pub struct Live {
    resources: Arc<Resources>,
    io: Handle,
    metrics: Arc<Metrics>,
    room: Arc<Semaphore>,
}

impl Live {
    /// Reads on the runtime that this is called on.
    pub fn new(resources: Arc<Resources>, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            resources,
            io: Handle::current(),
            metrics,
            room: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// One object.
    pub fn get(self: &Arc<Self>, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        let live = self.clone();
        self.send("get", kind.clone(), async move {
            let resource = live.resources.find(&kind).await?;
            let target = Target {
                resource: &resource,
                namespace: name.namespace(),
                name: Some(name.name()),
                subresource: None,
            };
            let found = live.resources.connection().get(&target).await?;
            Ok(found)
        })
    }

    /// One page.
    pub fn list(self: &Arc<Self>, query: ListQuery) -> LiveRead<Page> {
        if query.index.is_some() || query.owner.is_some() {
            return Box::pin(async move { Err(ReadError::Invalid(NO_INDEXES.into())) });
        }
        let live = self.clone();
        self.send("list", query.kind.clone(), async move {
            let resource = live.resources.find(&query.kind).await?;
            let asked = LiveQuery {
                namespace: query.namespace.as_deref(),
                label_selector: query.label_selector.as_deref(),
                field_selector: None,
                limit: Some(query.limit.min(PAGE) as u32),
                next: query.after.as_deref(),
            };
            let page = live
                .resources
                .connection()
                .list_live(&resource, &asked)
                .await
                .map_err(refused)?;
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
        read: impl Future<Output = Result<T, WriteError>> + Send + 'static,
    ) -> LiveRead<T> {
        self.metrics
            .live_reads
            .with_label_values(&[verb, &kind.to_string()])
            .inc();
        let room = self.room.clone();
        // Whoever stops waiting (a deadline) stops the read.
        let reading = AbortOnDropHandle::new(self.io.spawn(async move {
            let _room = room.acquire().await;
            read.await
        }));
        Box::pin(async move {
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
}
