//! Plugins in OCI registries: push, pull, resolve, sign and verify. The crate speaks the registry's
//! HTTP interface and knows the CNCF Wasm artifact format. It must not know Kubernetes, plugins or
//! WebAssembly: a component is bytes.
//!
//! | Module | Owns |
//! |---|---|
//! | `reference` | the name of an artifact |
//! | `access`, `credentials`, `mirrors` | how a registry is reached, and as whom |
//! | `wire` | requests to one registry: addresses, tokens, limits of answers |
//! | `artifact` | the documents of an artifact, and what is refused in them |
//! | `pull`, `push`, `referrers` | the operations |
//! | `crypto` | ring, as the verification of signatures wants it |
//! | `sign` | signs an artifact with a private key |
//! | `trust` | whose signatures count, and whether an artifact has them |
//!
//! Nothing that a registry sends is trusted: each answer has a limit in bytes, and each document
//! and component is compared with the digest by which it was asked for.

mod access;
mod artifact;
mod credentials;
mod crypto;
mod digest;
mod error;
mod mirrors;
mod pull;
mod push;
mod reference;
mod referrers;
mod sign;
#[cfg(test)]
mod tests;
mod trust;
mod wire;

pub use access::Access;
pub use artifact::{CONFIG_TYPE, LAYER_TYPE};
pub use credentials::Credentials;
pub use error::Error;
pub use mirrors::Mirrors;
pub use pull::{Pull, Pulled, pull, resolve};
pub use push::{Component, push};
pub use reference::Reference;
pub use referrers::attach;
pub use sign::SigningKey;
pub use trust::{Signer, SignerKind, Trust, verify};
