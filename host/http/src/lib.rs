//! Sends HTTP requests of plugins to services outside of the cluster.
//!
//! ```text
//! request --target--> scheme, host, port, path --grant--> the entry that covers it
//!    --prepare--> checked request --values--> headers that the host adds
//!    --resolve--> addresses that may be connected to --client--> response
//! ```
//! It owns what may be sent: the grants of a description, narrowed by the operator, the addresses
//! behind a name, the sizes and the headers. It must not know plugins, turns' outcomes, or who
//! leads: its caller asks for that right before it sends.
//!
//! These never happen:
//! - a connection to an address that was not checked: a name is resolved once, and the checked
//!   addresses are the ones that are connected to
//! - a redirect that is followed, or a proxy that is used
//! - a header that the host added, in an error

mod address;
mod allow;
mod client;
mod grant;
mod idempotency;
mod prepare;
mod resolve;
mod target;
mod tls;

pub use allow::{Allow, AllowError};
pub use client::{Client, Outside};
pub use prepare::{Prepared, REQUEST_MAX, RESPONSE_MAX};
pub use tls::{Authorities, AuthorityError};
