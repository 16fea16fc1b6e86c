//! The cluster as vmhost sees it: the connection, which kinds are served, a live copy of those that are watched, and writes.
//!
//! ```text
//! connect -> Connection --resolve--> Resource
//!                |  \--list+watch--> informer --text--> store --(then)--> Subscriber::notice
//!                \--apply, patch, create, delete, get, list_live; Recorder (events); apply_manifest
//!                \--access_review, install_crd, leases
//! ```
//!
//! It is the only owner of `kube`, of which it uses the kubeconfig's types, the TLS connector and
//! the headers of a user; requests go over connections of its own (`direct`). Of an object only the
//! metadata and the fields that an index names are ever read: the rest stays the API server's text
//! (`text`), held once (`store`).
//!
//! It must not know plugins, wasm, queues, or what a write is for: it repeats no write, decides nothing from an answer, and never calls a policy.
//! Its only currency with the others is `vmhost-core`.

mod access;
mod api;
mod backoff;
mod begin;
mod connect;
mod crd;
mod credentials;
mod direct;
mod discovery;
mod events;
mod informer;
mod kubeconfig;
mod lease;
mod live;
mod manifest;
mod proxy;
mod store;
mod text;
mod transport;
mod write;

#[cfg(test)]
mod fake;

pub use access::{Access, AccessQuestion};
pub use begin::{Abandoned, begin};
pub use connect::{
    CONFIGURATION_ORDER, ConnectError, ConnectOptions, Connection, RequestObserver, ServerVersion,
    connect,
};
pub use crd::{CrdError, Installed, PLUGIN_VERSION, crd_name};
pub use discovery::{ClusterError, Resource};
pub use events::{EventLimit, EventObserver, NoEventObserver, ObjectRef, RecordedEvent, Recorder};
#[doc(hidden)]
pub use informer::Feed;
pub use informer::{
    Cause, Fixture, InformerObserver, InformerState, Informers, NoInformerObserver, Notice, Phase,
    Subscriber, Subscription, WATCH_SILENCE, WatchSpec,
};
pub use lease::{Lease, LeaseRecord};
pub use live::{LivePage, LiveQuery};
pub use manifest::{ManifestError, Manifested};
pub use store::{Index, NotIndexed, Query, Store};
pub use text::{BadJson, IngestError, Wanted};
pub use write::{DeleteOptions, StatusCause, Target, WRITE_TIMEOUT, WriteError, Written};
