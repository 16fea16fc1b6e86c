//! The connection to the API server: proxies, credentials that are replaced, a peer that vanishes.

mod credentials;
mod proxies;
mod vanished;
