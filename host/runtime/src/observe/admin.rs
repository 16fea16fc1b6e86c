//! Serves probes, metrics and the state over HTTP. It only reads.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Weak};

use anyhow::{Context, Result};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

use crate::deploy::plugins::Plugins;
use crate::observe::metrics::Metrics;

pub(crate) mod health;
pub(crate) mod snapshot;
pub mod state;

/// The path of the state on the metrics address.
pub const STATE_PATH: &str = "/debug/state";

/// Listeners. They are bound before anything else starts, so that a port in use is reported at
/// once.
pub struct Admin {
    metrics: Option<TcpListener>,
    probes: Option<TcpListener>,
}

impl Admin {
    /// Binds the listeners. The addresses of a list are tried in order. `None` disables the
    /// listener.
    pub fn bind(metrics: Option<Vec<SocketAddr>>, probes: Option<Vec<SocketAddr>>) -> Result<Self> {
        Ok(Self {
            metrics: bind("--metrics-bind-address", metrics)?,
            probes: bind("--health-probe-bind-address", probes)?,
        })
    }

    /// The address of metrics and state, if they are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// Serves until the process ends. Probes are answered from now on; they report ready when the
    /// plugins are.
    pub fn serve(self, metrics: Arc<Metrics>, plugins: Weak<Plugins>) -> Result<()> {
        if let Some(listener) = self.metrics {
            let router = Router::new()
                .route("/metrics", get(render))
                .with_state(metrics)
                .merge(
                    Router::new()
                        .route(STATE_PATH, get(debug_state))
                        .with_state(plugins.clone()),
                );
            spawn(listener, router)?;
        }
        if let Some(listener) = self.probes {
            spawn(listener, health::router(plugins))?;
        }
        Ok(())
    }
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

fn spawn(listener: TcpListener, router: Router) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!("an admin endpoint stopped: {error}");
        }
    });
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

async fn debug_state(State(plugins): State<Weak<Plugins>>) -> Response {
    match plugins.upgrade() {
        Some(plugins) => Json(snapshot::state(&plugins)).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response(),
    }
}
