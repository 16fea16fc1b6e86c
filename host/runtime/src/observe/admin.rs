//! Serves metrics, probes, and the admin address: the state, the turns, and orders to a plugin.
//! This module owns the listeners. It must not know what a turn does, or how an order is carried
//! out.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;
use vmhost_cluster::CallerReviews;
use vmhost_webhook::{Https, Limited, TowerToHyperService};

use crate::deploy::plugins::Plugins;
use crate::journal::watch::Warnings;
use crate::observe::metrics::Metrics;
use crate::shadow::order::Shadows;

mod access;
pub(crate) mod asked;
mod callers;
pub(crate) mod follow;
mod gate;
mod guard;
pub(crate) mod health;
pub mod keys;
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
pub mod state;
mod states;
pub mod token;
pub(crate) mod turns;
pub(crate) mod wanted;

use access::Door;
use callers::Callers;
use orders::desk::Desk;
pub use questions::STATE_PATH;
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
    /// Knows who may read metrics and use the admin address. `None` if everyone may.
    callers: Option<Arc<Callers>>,
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
            callers: None,
            https: None,
            admin_https: None,
        })
    }

    /// Serves metrics and the admin address only to users of the cluster who may use the path, and
    /// to callers with the host's own token. Probes stay open.
    #[must_use]
    pub fn with_reviews(mut self, reviews: CallerReviews) -> Self {
        self.callers = Some(Arc::new(Callers::new(reviews)));
        self
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

    /// Serves until the process ends. Probes are answered from now on; they report ready when the
    /// plugins are.
    pub fn serve(
        self,
        metrics: Arc<Metrics>,
        plugins: &Arc<Plugins>,
        warnings: &Arc<Warnings>,
        shadows: &Arc<Shadows>,
    ) -> Result<()> {
        self.warn_of_strangers();
        self.warn_of_tokens();
        if let Some(listener) = self.metrics {
            let router = Router::new().route("/metrics", get(render));
            let router = behind(router.with_state(metrics), &self.callers, None);
            spawn("metrics", listener, self.https, router)?;
        }
        if let Some(listener) = self.probes {
            let router = health::router(Arc::downgrade(plugins));
            spawn("health probes", listener, None, router)?;
        }
        if let Some(listener) = self.admin {
            let bound = listener.local_addr()?.ip();
            let (host, held) = (Arc::downgrade(plugins), warnings.clone());
            let desk = Desk {
                slots: Arc::new(move || Some(host.upgrade()?.slots())),
                history: plugins.loader.history.clone(),
                largest_component: plugins.loader.config.limits.component,
                loader: plugins.loader.clone(),
                redact: warnings.redact.clone(),
                warned: Arc::new(move || held.all()),
                shadows: shadows.clone(),
            };
            let routes = routes::router(plugins, warnings, shadows.clone());
            let router = routes.merge(orders::router(desk, self.token));
            let router = behind(router, &self.callers, self.token);
            let guarded = router.layer(from_fn_with_state(bound, guard::check));
            spawn("admin address", listener, self.admin_https, guarded)?;
        }
        Ok(())
    }
}

impl Admin {
    /// Tells that others may look at objects.
    fn warn_of_strangers(&self) {
        if let Some(address) = far(self.admin.as_ref())
            && self.callers.is_none()
        {
            tracing::warn!(
                "--admin-bind-address {address}: other machines may reach it, and it shows objects to everyone who asks; --metrics-access token asks who it is"
            );
        }
    }

    /// Tells where tokens cross the network as plain HTTP: those of users, and that of orders.
    fn warn_of_tokens(&self) {
        let asks = self.callers.is_some();
        let metrics = self.metrics.as_ref();
        let metrics = metrics.filter(|_| asks && self.https.is_none());
        let admin = self.admin.as_ref();
        let admin = admin.filter(|_| (asks || self.token.is_some()) && self.admin_https.is_none());
        for (flag, listener, cure) in [
            ("--metrics-bind-address", metrics, "use --metrics-secure"),
            (
                "--admin-bind-address",
                admin,
                "bind it to 127.0.0.1, or use --admin-cert-dir",
            ),
        ] {
            if let Some(address) = far(listener) {
                tracing::warn!("{flag} {address}: tokens come as plain HTTP; {cure}");
            }
        }
    }
}

/// The address of a listener that other machines may reach.
fn far(listener: Option<&TcpListener>) -> Option<SocketAddr> {
    local(listener).filter(|address| !address.ip().is_loopback())
}

/// Puts a door before these routes, if access is controlled.
fn behind(router: Router, callers: &Option<Arc<Callers>>, own: Option<Token>) -> Router {
    match callers {
        None => router,
        Some(callers) => {
            let callers = callers.clone();
            router.layer(from_fn_with_state(Door { callers, own }, access::check))
        }
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

async fn render(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    (
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        metrics.render(),
    )
}
