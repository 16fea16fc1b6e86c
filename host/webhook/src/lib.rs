//! Admission and conversion webhooks over HTTPS.
//!
//! ```text
//! API server --https--> server --> desk --> review --> Policy (the host's plugins)
//!                         | shows                 answer <--/
//!                      certificates <-- keeper --> Secret, caBundle of what registers webhooks
//! ```
//!
//! - [`Server`] owns sockets, TLS and the graceful end; a [`Policy`] answers what it reads.
//! - [`Keeper`] owns the certificate that is shown, and that clients trust it: an authority in a
//!   Secret with rotation, or a folder.
//! - [`Limited`] is another listener of the host, such as that of its metrics, with the limits of
//!   [`Server`], and [`Https`] its TLS.
//! - [`Registration`] owns the objects that tell an API server of webhooks.
//!
//! This crate must not know plugins, wasm, or the runtime: it exchanges names and JSON text with
//! [`Policy`]. A review without an answer is an HTTP error, so that the registration's
//! `failurePolicy` decides; it never becomes a permission.

mod accept;
mod arrival;
mod budget;
mod bundle;
mod certificates;
mod convert;
mod crowd;
mod desk;
mod error;
mod https;
mod keeper;
mod limited;
mod metrics;
mod policy;
mod reach;
mod registration;
mod review;
mod seen;
mod server;
mod silence;
mod target;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use arrival::Arrival;
pub use certificates::shown::Shown;
pub use error::Error;
pub use https::Https;
/// Makes a service for [`Limited::serve`].
pub use hyper_util::service::TowerToHyperService;
pub use keeper::{Keeper, Looked, Source};
pub use limited::Limited;
pub use metrics::Metrics;
pub use policy::{Policy, Unanswered, Verdict};
pub use reach::{Reach, ReachError};
pub use registration::{Conversion, Registration, Rule, Webhook, WebhookType};
pub use review::conversion::Converted;
pub use seen::Registered;
pub use server::{SERVE_ON, Server};
pub use target::{Target, configuration_name};
