//! The embedded Kubernetes API server of `vmhost dev`, `vmhost apiserver` and of tests: on
//! loopback, for development only.
//!
//! ```no_run
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use vmhost_apiserver::{Options, Server, State};
//!
//! let server = Server::start(State::new(), Options::default()).await?;
//! std::fs::write("kubeconfig", server.kubeconfig())?; // for kube, client-go, kubectl, ...
//! server.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! It listens as soon as `start` returns, and stops when the `Server` is dropped; the [`State`]
//! outlives it. [`State::open`] keeps a cluster in a folder. [`Options::with_rbac`] lets roles
//! decide, and [`Server::kubeconfig_of`] is a user without any; without it every known user may do
//! everything. The README of this crate shows kube's `Controller` on it.
//!
//! Owns a small cluster ([`State`]: objects, their history, the served kinds) and its HTTPS front
//! ([`Server`]). It must not know controllers, plugins or WebAssembly: all its clients are
//! Kubernetes clients.
//!
//! Kinds are data: all kinds of a kube-apiserver, from a table that `tests/tables.sh` makes of its
//! discovery and OpenAPI documents (`builtin`), and CustomResourceDefinitions at run time. Of the
//! built-in kinds, `builtin/behaviour.json` has what no document says (immutable fields, the cells
//! of tables, how objects are deleted), and refers by name to the code in `fill`, which computes
//! what data cannot express (addresses of services, classes of pods). No handler names a kind,
//! except for those that act on other objects: namespaces, CustomResourceDefinitions, and pods
//! (`subresource`). An unsupported request is refused with the `Status` of a real server, and never
//! answered with a wrong success.
//!
//! # How a write works
//! ```text
//! front, verbs (path, method, forms) -> write | patch | delete
//!     -> vmhost-schema (prune, default, validate) -> vmhost-merge (field ownership)
//!     -> change -> store (version, history)
//! verbs <- read | watch <- store
//! ```
//! Everything from the read of the live object to the store is one function under one lock: a write
//! is never visible half done. It is repeated only if it has to ask webhooks: it ends with a
//! question before it has stored anything, the question is asked without the lock, and the write
//! begins anew (`questions`, `answers`, `admission`, `conversion`). With a `journal` it is in a
//! file before an answer or a watch shows it. A watch has no queue; it is a position in the store's
//! bounded history.
//!
//! A state of an object is one text (`object`), which the store, the history, the journal and the
//! answers share. It is read as a value where a write, a selector or another form needs that; only
//! the kinds that the server itself reads all the time are kept as values too. An event is written
//! once for all watches that show it in the same way (`events`).
//!
//! Owner references work as in kube-controller-manager: every write updates an index of them
//! (`owners`), and the running front deletes objects that a write leaves without an owner, some
//! objects at a time (`collect`).
//!
//! An [`Overlay`] holds copies of a part of another cluster's objects. It has no socket: its caller
//! puts the objects in, and writes change only these copies.
//!
//! # Floors
//! A file uses files of lower floors, and of its own floor those to its right; never a file of a
//! higher floor.
//! ```text
//! socket          server, kubeconfig | options | overlay
//! HTTP            front, verbs, yaml, answer, body
//! a verb          watch, read, table, encode | subresource | scale, patch, strategic, write |
//!                 delete | answers | collect
//! one object      end, change, crd, namespace | access/{review, escalation, ...} |
//!                 admission/{dispatch, enforce, ...}, conversion | call, questions | fill
//! who             access/{impersonate, rbac, credentials, ...}
//! the cluster     state, admission/{registered, webhook, policy, rules}, registry, openapi |
//!                 journal, secrets | events | outside | tls, access/token | error
//! kinds           refuse, selector, ownership, builtin, kinds, reach, autoscaler, jsonpath
//! stored objects  store, owners, object, meta, status
//! ```
//! Beside them are the forms of requests and answers, which know refusals and at most the served
//! kinds: `route`, `request`, `negotiate`, `decode`, `operations`, `protobuf`, `discovery`. Below
//! all are the crates `vmhost-schema`, `vmhost-rules` and `vmhost-merge`.
//!
//! # Differences from a real server
//! - Access control only with [`Options::with_rbac`]: roles, no other authorizers. Credentials are
//!   the administrator's token, tokens of service accounts and client certificates. A service
//!   account does not impersonate its own node.
//! - No controllers but the garbage collector and the one of aggregated cluster roles: a Deployment
//!   creates no ReplicaSet, and nothing runs Pods, fills Endpoints or computes disruption budgets.
//!   The service `kubernetes` has no Endpoints and no EndpointSlice: the server listens on
//!   loopback, which they may not name. A deletion removes the finalizer that protects a volume,
//!   whether the volume is in use or not. Logs, commands and proxies of pods are refused, as by a
//!   server whose nodes do not answer.
//! - Deletion has no grace period: a pod is marked as deleted and removed by one request.
//!   Namespaces and definitions ignore the propagation policy. An owner of a kind that is not
//!   served counts as existing, even if the kind is served later.
//! - Built-in kinds are validated by their schema, and by some rules of their code: immutable
//!   fields, selectors and their templates, images of containers, addresses and ports of services,
//!   contents and conditions of requests for certificates. A list that Go would print as null is
//!   left out: `rules` of a role, `endpoints` and `ports` of an EndpointSlice.
//! - Objects nest 100 levels at most, the operations of a JSON patch copy 3 MiB at most, and the
//!   aliases of YAML add 400,000 values at most.
//! - The documents are those of one version of Kubernetes, without alpha and beta versions, which a
//!   real server serves only with `--runtime-config`.
//! - Namespaces and definitions are deleted within the DELETE request, unless finalizers hold them.
//! - Bodies and answers are JSON, YAML (except watches and discovery), or, of built-in kinds,
//!   protobuf; never CBOR. A field of protobuf that no kind has is refused.
//! - No admission plugins but the defaults of tolerations, priorities and new nodes, webhooks,
//!   MutatingAdmissionPolicies and ValidatingAdmissionPolicies. A webhook is reached by a URL; a
//!   Service leads somewhere only if it has an external name. Garbage collection, and the deletion
//!   of what is in a namespace, call no webhook. Audit annotations are dropped.
//! - Expressions of admission know no types of their objects. Time zones by name are those of the
//!   machine. An apply configuration of a subresource with a kind of its own (`scale`) is merged
//!   without a schema.
//! - Every write wakes every watch, which then looks whether it is concerned.
//! - No watches of single objects by `/watch/` paths.

mod access;
mod admission;
mod answer;
mod answers;
mod autoscaler;
mod body;
mod builtin;
mod call;
mod change;
mod collect;
mod conversion;
mod crd;
mod decode;
mod delete;
mod discovery;
mod encode;
mod end;
mod error;
mod events;
mod fill;
mod front;
mod journal;
mod jsonpath;
mod kinds;
mod kubeconfig;
mod kubernetes_service;
mod meta;
mod namespace;
mod negotiate;
mod object;
mod openapi;
mod operations;
mod options;
mod outside;
mod overlay;
mod owners;
mod ownership;
mod patch;
mod protobuf;
mod questions;
mod reach;
mod read;
mod refuse;
mod registry;
mod request;
mod route;
mod scale;
mod secrets;
mod selector;
mod server;
mod state;
mod status;
mod store;
mod strategic;
mod subresource;
mod table;
#[cfg(test)]
mod tests;
mod tls;
mod verbs;
mod watch;
mod write;
mod yaml;

pub use admission::conditions::MatchConditions;
pub use error::Error;
pub use options::Options;
pub use overlay::{Changed, Overlay};
pub use protobuf::{from_protobuf, to_protobuf};
pub use server::Server;
pub use state::{Backup, State};
