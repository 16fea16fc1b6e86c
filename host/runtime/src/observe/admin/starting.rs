//! The listeners of a host that starts. Probes are answered while plugins are loaded, so that
//! Kubernetes does not restart a host that compiles for a minute.
//!
//! This module owns what is served, and from when on. It must not know what a route answers.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;
use vmhost_cluster::CallerReviews;

use super::access::{self, Door};
use super::callers::Callers;
use super::health::Started;
use super::later::Later;
use super::orders::desk::Desk;
use super::token::Token;
use super::{Admin, guard, health, orders, routes, spawn};
use crate::deploy::plugins::Plugins;
use crate::journal::watch::Warnings;
use crate::observe::metrics::Metrics;
use crate::shadow::order::Shadows;

/// Listeners that are served.
pub struct Starting {
    metrics: Option<Later>,
    admin: Option<Later>,
    /// The plugins, for the probes.
    started: Arc<Started>,
    token: Option<Token>,
    /// Knows who may read metrics and use the admin address. `None` if everyone may.
    callers: Option<Arc<Callers>>,
    bound: Bound,
}

/// The addresses, and what is spoken there.
struct Bound {
    metrics: Option<SocketAddr>,
    /// Whether metrics are served as plain HTTP.
    metrics_is_plain: bool,
    admin: Option<SocketAddr>,
    admin_is_plain: bool,
}

impl Starting {
    pub(super) fn new(of: Admin) -> Result<Self> {
        let bound = Bound {
            metrics: of.metrics_address(),
            metrics_is_plain: of.https.is_none(),
            admin: of.admin_address(),
            admin_is_plain: of.admin_https.is_none(),
        };
        let started = Arc::new(OnceLock::new());
        if let Some(listener) = of.probes {
            let router = health::router(started.clone());
            spawn("health probes", listener, None, router)?;
        }
        let serve = |name, listener: Option<TcpListener>, https| -> Result<Option<Later>> {
            let Some(listener) = listener else {
                return Ok(None);
            };
            let (later, router) = Later::new();
            spawn(name, listener, https, router)?;
            Ok(Some(later))
        };
        Ok(Self {
            metrics: serve("metrics", of.metrics, of.https)?,
            admin: serve("admin address", of.admin, of.admin_https)?,
            started,
            token: of.token,
            callers: None,
            bound,
        })
    }

    /// Returns the address that serves metrics, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.bound.metrics
    }

    /// Returns the admin address, if it is served.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.bound.admin
    }

    /// Serves metrics and the admin address only to users of the cluster who may use the path, and
    /// to callers with the host's own token. Probes stay open.
    #[must_use]
    pub fn with_reviews(mut self, reviews: CallerReviews) -> Self {
        self.callers = Some(Arc::new(Callers::new(reviews)));
        self
    }

    /// Serves metrics and the admin address, too. Probes report ready when the plugins are.
    pub fn serve(
        self,
        metrics: Arc<Metrics>,
        plugins: &Arc<Plugins>,
        warnings: &Arc<Warnings>,
        shadows: &Arc<Shadows>,
    ) {
        self.warn_of_strangers();
        self.warn_of_tokens();
        // Nothing else sets it.
        let _ = self.started.set(Arc::downgrade(plugins));
        if let Some(later) = self.metrics {
            let router = Router::new().route("/metrics", get(render));
            later.serve(behind(router.with_state(metrics), &self.callers, None));
        }
        if let Some((later, address)) = self.admin.zip(self.bound.admin) {
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
            later.serve(router.layer(from_fn_with_state(address.ip(), guard::check)));
        }
    }

    /// Tells that others may look at objects.
    fn warn_of_strangers(&self) {
        if let Some(address) = far(self.bound.admin)
            && self.callers.is_none()
        {
            tracing::warn!(
                "--admin-bind-address {address}: other machines may reach it, and it shows objects to everyone who asks; --metrics-access token asks who it is"
            );
        }
    }

    /// Tells where tokens cross the network as plain HTTP: those of users, and that of orders.
    fn warn_of_tokens(&self) {
        let (bound, asks) = (&self.bound, self.callers.is_some());
        let metrics = far(bound.metrics).filter(|_| asks && bound.metrics_is_plain);
        let takes_tokens = asks || self.token.is_some();
        let admin = far(bound.admin).filter(|_| takes_tokens && bound.admin_is_plain);
        for (flag, address, cure) in [
            ("--metrics-bind-address", metrics, "use --metrics-secure"),
            (
                "--admin-bind-address",
                admin,
                "bind it to 127.0.0.1, or use --admin-cert-dir",
            ),
        ] {
            if let Some(address) = address {
                tracing::warn!("{flag} {address}: tokens come as plain HTTP; {cure}");
            }
        }
    }
}

/// The address, if other machines may reach it.
fn far(address: Option<SocketAddr>) -> Option<SocketAddr> {
    address.filter(|address| !address.ip().is_loopback())
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

async fn render(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    (
        [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )],
        metrics.render(),
    )
}
