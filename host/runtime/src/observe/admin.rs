//! Serves metrics, probes, and the admin address: the state, the turns, and orders to a plugin.
//! This module owns the listeners. It must not know what a turn does, or how an order is carried
//! out.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use axum::Router;
use vmhost_webhook::{Https, Limited, TowerToHyperService};

mod access;
pub(crate) mod asked;
mod callers;
pub(crate) mod follow;
mod gate;
mod guard;
pub(crate) mod health;
pub mod keys;
mod later;
mod orders;
pub mod page;
pub mod paths;
pub mod questions;
mod reviewed;
mod room;
mod routes;
pub(crate) mod running;
pub(crate) mod shadowed;
pub(crate) mod snapshot;
mod starting;
pub mod state;
mod states;
pub mod token;
pub(crate) mod turns;
pub(crate) mod wanted;

pub use questions::STATE_PATH;
pub use starting::Starting;
use token::Token;

/// The addresses on which a host listens. The addresses of a list are tried in order. `None`
/// disables the listener.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Serves metrics.
    pub metrics: Option<Vec<SocketAddr>>,
    /// Serves probes.
    pub probes: Option<Vec<SocketAddr>>,
    /// Serves the state and the turns, and takes orders.
    pub admin: Option<Vec<SocketAddr>>,
}

/// Listeners. They are bound before anything else starts, so that a port in use is reported at
/// once.
pub struct Admin {
    metrics: Option<TcpListener>,
    probes: Option<TcpListener>,
    admin: Option<TcpListener>,
    /// The token that orders must carry. `None` refuses all orders.
    token: Option<Token>,
    /// With what metrics are served over TLS. `None` for plain HTTP.
    https: Option<Https>,
    /// The same of the admin address.
    admin_https: Option<Https>,
}

impl Admin {
    /// Binds the listeners.
    pub fn bind(addresses: Addresses) -> Result<Self> {
        Ok(Self {
            admin: bind("--admin-bind-address", addresses.admin)?,
            metrics: bind("--metrics-bind-address", addresses.metrics)?,
            probes: bind("--health-probe-bind-address", addresses.probes)?,
            token: None,
            https: None,
            admin_https: None,
        })
    }

    /// Serves metrics over TLS.
    #[must_use]
    pub fn with_https(mut self, https: Https) -> Self {
        self.https = Some(https);
        self
    }

    /// Serves the admin address over TLS.
    #[must_use]
    pub fn with_admin_https(mut self, https: Https) -> Self {
        self.admin_https = Some(https);
        self
    }

    /// Accepts orders that carry this token.
    #[must_use]
    pub fn with_token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Returns the address that serves metrics, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        local(self.metrics.as_ref())
    }

    /// Returns the admin address, if it is served.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        local(self.admin.as_ref())
    }

    /// Serves until the process ends. Probes are answered from now on; all else when the host has
    /// loaded its plugins and reached its cluster, which can take a minute.
    pub fn start(self) -> Result<Starting> {
        Starting::new(self)
    }
}

fn local(listener: Option<&TcpListener>) -> Option<SocketAddr> {
    listener?.local_addr().ok()
}

fn bind(flag: &str, addresses: Option<Vec<SocketAddr>>) -> Result<Option<TcpListener>> {
    let Some(addresses) = addresses else {
        return Ok(None);
    };
    let shown = addresses
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    let listener = TcpListener::bind(&addresses[..]).with_context(|| {
        format!("cannot listen on {shown} ({flag}): choose another address, or 0 to disable it; another vmhost may use this one")
    })?;
    listener.set_nonblocking(true)?;
    tracing::info!("{flag}: listening on {}", listener.local_addr()?);
    Ok(Some(listener))
}

/// Serves on a listener until the process ends, over TLS with `https`. Its connections are limited:
/// any client in the network of a cluster's pods may open thousands.
fn spawn(
    name: &'static str,
    listener: TcpListener,
    https: Option<Https>,
    router: Router,
) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let limited = Limited::new(name, listener, https)?;
    tokio::spawn(limited.serve(TowerToHyperService::new(router)));
    Ok(())
}
