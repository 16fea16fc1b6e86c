//! The embedded Kubernetes API server of `vmhost dev` and of the tests: in memory, on loopback, for
//! development only.
//!
//! Owns a small cluster ([`State`]: objects, their history, the served kinds) and its HTTPS front
//! ([`Server`]). It must not know controllers, plugins or WebAssembly: all its clients are
//! Kubernetes clients.
//!
//! Kinds are data (`kinds.json`, and CustomResourceDefinitions at run time). No handler names a
//! kind, except for the two that act on other objects: namespaces and CustomResourceDefinitions.
//! That data also refers by name to the code in `fill`, which computes what data cannot express
//! (addresses of services, classes of pods). An unsupported request is refused with the `Status` of
//! a real server, and never answered with a wrong success.
//!
//! # How a write works
//! ```text
//! front, verbs (path, method, forms) -> write | patch | delete
//!     -> vmhost-schema (prune, default, validate) -> vmhost-merge (field ownership)
//!     -> change -> store (version, history)
//! verbs <- read | watch <- store
//! ```
//! Everything from the read of the live object to the store is one function under one lock: a write
//! is never retried, and never visible half done. A watch has no queue; it is a position in the
//! store's bounded history.
//!
//! Owner references work as in kube-controller-manager: every write updates an index of them
//! (`owners`), and the running front deletes objects that a write leaves without an owner, some
//! objects at a time (`collect`).
//!
//! An [`Overlay`] is a part of another cluster: it has no socket, its owner brings the objects in,
//! and writes change nothing but its own copy.
//!
//! # Floors
//! A file uses files of lower floors, and of its own floor those to its right; never a file of a
//! higher floor.
//! ```text
//! socket          server | overlay
//! HTTP            front, verbs, answer
//! a verb          watch, read, table, encode | scale, patch, strategic, write | delete | collect
//! one object      call | end, change, crd, namespace | fill
//! the cluster     state, registry, openapi | tls, error
//! kinds           refuse, selector, builtin, kinds, jsonpath
//! stored objects  store, owners, object, meta, status
//! ```
//! Beside them are the forms of requests and answers, which know refusals and at most the served
//! kinds: `route`, `request`, `negotiate`, `protobuf`, `discovery`. Below all are the crates
//! `vmhost-schema` and `vmhost-merge`.
//!
//! # Differences from a real server
//! - One token, no access control: every access review is answered "allowed".
//! - No controllers but the garbage collector: a Deployment creates no ReplicaSet, and nothing runs
//!   Pods or fills Endpoints.
//! - Deletion has no grace period. Namespaces and definitions ignore the propagation policy. An
//!   owner of a kind that is not served counts as existing, even if the kind is served later.
//! - Built-in kinds are validated by their schema: rules between fields (a selector and its
//!   template) and most immutable fields are not enforced, quantities (`cpu: 0.5`) are not
//!   normalised, and services get no node ports.
//! - Namespaces and definitions are deleted within the DELETE request, unless finalizers hold them.
//! - Answers are JSON (except OpenAPI v2). Bodies may be protobuf for the built-in kinds except
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
mod overlay;
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
pub use overlay::{Changed, Overlay};
pub use server::{Options, Server};
pub use state::{Backup, State};
