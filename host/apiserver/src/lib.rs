//! The embedded Kubernetes API server of `vmhost dev` and of the tests: in memory, on loopback, for development only.
//!
//! Owns a small cluster ([`State`]: objects, their history, the kinds that are served) and the HTTPS front of it
//! ([`Server`]). It must not know controllers, plugins or WebAssembly: whatever speaks to it is a Kubernetes client.
//!
//! Kinds are data (`kinds.json`, and CustomResourceDefinitions at run time); no handler names a kind, except for the
//! two that act on others: namespaces and CustomResourceDefinitions. What is not served is refused with the `Status`
//! that a real server would send, never answered with a wrong success.

mod answer;
mod apply;
mod crd;
mod delete;
mod discovery;
mod encode;
mod error;
mod front;
mod jsonpath;
mod kinds;
mod meta;
mod namespace;
mod negotiate;
mod openapi;
mod patch;
mod protobuf;
mod read;
mod registry;
mod request;
mod scale;
mod schema;
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
mod watch;
mod write;

pub use error::Error;
pub use server::{Options, Server};
pub use state::State;
