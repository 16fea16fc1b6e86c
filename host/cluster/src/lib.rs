//! The cluster as vmhost sees it: the connection, the served kinds, a live copy of the watched
//! objects, and writes.
//!
//! ```text
//! connect -> Connection --> Reader --resolve--> Resource; get, list_live
//!                |            \--list+watch--> informer --text--> store --(then)--> Subscriber
//!                |--> Writer: apply, patch, create, replace, delete
//!                |--> Events --> Recorder
//!                \--> Leases, AccessReviews, CallerReviews, Definitions, Manifests
//! ```
//!
//! A [`Connection`] can do everything through its parts, and is for the wiring code. All other code
//! receives only the part it needs:
//!
//! - [`Reader`] has no method that writes, nor have [`Informers`], which are built from one.
//! - [`Writer`] has no method that reads. As a dry run, it changes nothing.
//! - [`Events`], [`Leases`] and [`Definitions`] write one kind each, and no other.
//! - [`OneSecret`] and [`WebhookObjects`] write what webhooks are registered with.
//! - [`AccessReviews`] and [`CallerReviews`] have no method that changes anything: they only ask.
//! - [`Manifests`] writes objects of any kind, only for `vmhost dev` and `vmhost install`.
//!
//! Only this crate uses `kube`: the kubeconfig types, the TLS connector and the headers of a user;
//! requests go over this crate's own connections (`direct`). Of an object it only parses the
//! metadata and the fields of indexes: the rest stays the API server's text (`text`), stored once
//! (`store`).
//!
//! This crate must not know plugins, wasm, queues, or the purpose of a write: it repeats no write,
//! decides nothing from an answer, and never calls a plugin. It exchanges only the types of
//! `vmhost-core` with other crates.

mod access;
mod api;
mod backoff;
mod callers;
mod connect;
mod crd;
mod credentials;
mod direct;
mod discovery;
mod error;
mod events;
mod informer;
mod kubeconfig;
mod lease;
mod live;
mod manifest;
mod metadata;
mod object_path;
mod proxy;
mod reader;
mod status;
mod store;
mod target;
mod text;
mod transport;
mod webhooks;
mod write;

#[cfg(test)]
mod fake;

pub use access::{Access, AccessQuestion, AccessReviews};
pub use callers::{Caller, CallerReviews};
pub use connect::{
    CONFIGURATION_ORDER, ConnectError, ConnectOptions, Connection, RequestObserver, ServerVersion,
    TraceSource, WRITE_TIMEOUT, connect,
};
pub use crd::{CrdError, Definitions, Installed, PLUGIN_VERSION, crd_name};
pub use discovery::{KindNames, Resource};
pub use error::Error;
pub use events::{
    Author, EventFence, EventLimit, EventObserver, Events, NoEventObserver, ObjectRef,
    RecordedEvent, Recorder,
};
#[doc(hidden)]
pub use informer::Feed;
pub use informer::{
    Fixture, InformerObserver, InformerState, Informers, NoInformerObserver, Notice, NoticeCause,
    Phase, Subscriber, Subscription, WATCH_SILENCE, WatchSpec, Whole,
};
pub use kubeconfig::contexts::{Contexts, contexts};
pub use kubeconfig::foreign::GUARDED_FIELDS;
pub use lease::{Lease, LeaseRecord, Leases};
pub use live::{LivePage, LiveQuery};
pub use manifest::{ManifestError, Manifested, Manifests};
pub use object_path::ObjectPath;
pub use reader::Reader;
pub use status::{Status, StatusCause};
pub use store::{Index, NotIndexed, Query, Store};
pub use target::{ForeignText, Target};
pub use text::{BadJson, IngestError, Wanted};
pub use webhooks::{OneSecret, SecretContent, WebhookObject, WebhookObjects};
pub use write::{DeleteOptions, Writer, Written};
