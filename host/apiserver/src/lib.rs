//! The embedded Kubernetes API server of `vmhost dev` and of the tests: in memory, on loopback, for
//! development only.
//!
//! Owns a small cluster ([`State`]: objects, their history, the kinds that are served) and the
//! HTTPS front of it ([`Server`]). It must not know controllers, plugins or WebAssembly: whatever
//! speaks to it is a Kubernetes client.
//!
//! Kinds are data (`kinds.json`, and CustomResourceDefinitions at run time); no handler names a
//! kind, except for the two that act on others: namespaces and CustomResourceDefinitions. What a
//! few kinds compute for themselves (addresses of services, classes of pods) is asked for in that
//! data and done in `fill`. What is not served is refused with the `Status` that a real server
//! would send, never answered with a wrong success.
//!
//! # How a write goes
//! ```text
//! front, verbs (path, method, forms) -> write | patch | delete
//!     -> vmhost-schema (prune, default, validate) -> vmhost-merge (who owns what)
//!     -> change -> store (version, history)
//! verbs <- read | watch <- store
//! ```
//! Everything from the read of the live object to the store is one function under one lock: no
//! write is ever retried, and none is seen half done. A watch holds no queue; it is a position in
//! the store's bounded history.
//!
//! Owner references are followed as kube-controller-manager does: every write keeps an index of
//! them (`owners`), and what a write leaves without an owner is deleted by the running front, some
//! objects at a time (`collect`).
//!
//! # Floors
//! A file uses files of the floors below its own, and of its own floor those to its right; never
//! one above.
//! ```text
//! socket          server
//! HTTP            front, verbs, answer
//! a verb          watch, read, table, encode | scale, patch, strategic, write | delete | collect
//! one object      call | end, change, crd, namespace | fill
//! the cluster     state, registry, openapi | tls, error
//! kinds           refuse, selector, builtin, kinds, jsonpath
//! stored objects  store, owners, object, meta, status
//! ```
//! Beside them stand the forms of requests and answers, which know refusals and at most the kinds
//! that are served: `route`, `request`, `negotiate`, `protobuf`, `discovery`. Below all are the
//! crates `vmhost-schema` and `vmhost-merge`.
//!
//! # What differs from a real server
//! - One token, no access control: every review is answered "allowed".
//! - No controllers but the garbage collector: a Deployment makes no ReplicaSet, nothing runs a Pod
//!   or fills Endpoints.
//! - Deletion has no grace period. The policy of a deletion counts for neither namespaces nor
//!   definitions, and an owner of a kind that is not served counts as there, also when the kind
//!   comes later.
//! - Built-in kinds are checked by their schema: rules between fields (a selector and its template)
//!   and most immutable fields are not enforced, amounts (`cpu: 0.5`) are kept as they are written,
//!   and services get no node ports.
//! - Namespaces and definitions end within the request that deletes them, unless finalizers hold
//!   them.
//! - Answers are JSON (OpenAPI v2 apart); bodies may be protobuf for the built-in kinds, less
//!   definitions.
//! - No admission, no conversion by webhooks, no CEL rules, no watches of single objects by
//!   `/watch/` paths.

mod answer;
mod builtin;
mod call;
mod change;
mod collect;
mod crd;
mod delete;
mod discovery;
mod encode;
mod end;
mod error;
mod fill;
mod front;
mod jsonpath;
mod kinds;
mod meta;
mod namespace;
mod negotiate;
mod object;
mod openapi;
mod owners;
mod patch;
mod protobuf;
mod read;
mod refuse;
mod registry;
mod request;
mod route;
mod scale;
mod selector;
mod server;
mod state;
mod status;
mod store;
mod strategic;
mod table;
#[cfg(test)]
mod tests;
mod tls;
mod verbs;
mod watch;
mod write;

pub use error::Error;
pub use server::{Options, Server};
pub use state::{Backup, State};
