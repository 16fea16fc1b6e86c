//! Probes and metrics over HTTP. It looks and never changes anything.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Weak};

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::manager::Manager;
use crate::telemetry::Metrics;

/// Listeners that are bound before anything else starts, so that a taken port is told at once.
pub struct Admin {
    metrics: Option<TcpListener>,
    probes: Option<TcpListener>,
}

impl Admin {
    /// Binds. Each address list is tried in order; none: nowhere.
    pub fn bind(metrics: Option<Vec<SocketAddr>>, probes: Option<Vec<SocketAddr>>) -> Result<Self> {
        Ok(Self {
            metrics: bind("--metrics-bind-address", metrics)?,
            probes: bind("--health-probe-bind-address", probes)?,
        })
    }

    /// Serves until the process ends. The probes answer from now on; they are ready when the manager is.
    pub fn serve(self, metrics: Arc<Metrics>, manager: Weak<Manager>) -> Result<()> {
        if let Some(listener) = self.metrics {
            spawn(
                listener,
                Router::new()
                    .route("/metrics", get(render))
                    .with_state(metrics),
            )?;
        }
        if let Some(listener) = self.probes {
            let router = Router::new()
                .route("/healthz", get(async || "ok"))
                .route("/readyz", get(ready))
                .with_state(manager);
            spawn(listener, router)?;
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
        format!("cannot listen on {shown} ({flag}): choose another address, or 0 to turn it off; is another vmhost running?")
    })?;
    listener.set_nonblocking(true)?;
    tracing::info!("{flag}: listening on {}", listener.local_addr()?);
    Ok(Some(listener))
}

fn spawn(listener: TcpListener, router: Router) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!("an admin endpoint ended: {error}");
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

/// 500 with a line for each thing that is not ready, as controller-runtime's.
async fn ready(State(manager): State<Weak<Manager>>) -> impl IntoResponse {
    let Some(manager) = manager.upgrade() else {
        return (
            StatusCode::INTERNAL_SERVER_ERROR,
            "[-]shutting down\n".to_owned(),
        );
    };
    let waiting = manager.not_ready();
    if waiting.is_empty() {
        return (StatusCode::OK, "ok".to_owned());
    }
    let mut text = String::new();
    for what in waiting {
        let _ = writeln!(text, "[-]{what}");
    }
    (StatusCode::INTERNAL_SERVER_ERROR, text)
}
