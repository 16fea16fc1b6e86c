//! `/plugins/{plugin}/shadow`: the report (`null` without a shadow), `POST .../start` and
//! `POST .../stop`. This module must not know how a shadow is run.
//!
//! Each answer is made on a thread of its own: the thread of a shadow has the lowest priority and
//! may hold a lock for a long time, and the only thread for I/O must not wait for it.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use super::desk::{Desk, Refused};
use crate::deploy::orders::OrderError;
use crate::shadow::report::ShadowReport;

/// The parameters of a start.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StartQuery {
    /// How many milliseconds the shadow runs. Without it, until it is stopped.
    #[serde(rename = "for")]
    lasts: Option<u64>,
}

pub(super) fn reports() -> Router<Desk> {
    Router::new().route("/plugins/{plugin}/shadow", get(report))
}

pub(super) fn orders() -> Router<Desk> {
    Router::new()
        .route("/plugins/{plugin}/shadow/start", post(start))
        .route("/plugins/{plugin}/shadow/stop", post(stop))
}

async fn report(State(desk): State<Desk>, Path(plugin): Path<String>) -> Response {
    let found = tokio::task::spawn_blocking(move || -> Result<_, Refused> {
        desk.slot(&plugin)?;
        Ok(desk.shadows.report(&plugin))
    });
    match found.await.unwrap_or(Err(Refused::Stopping)) {
        Ok(report) => Json(report).into_response(),
        Err(refused) => refused.into_response(),
    }
}

async fn start(
    State(desk): State<Desk>,
    Path(plugin): Path<String>,
    Query(query): Query<StartQuery>,
    component: Bytes,
) -> Response {
    let lasts = query.lasts.map(Duration::from_millis);
    let started = move |desk: &Desk, plugin: &str| desk.shadows.start(plugin, component, lasts);
    order(desk, plugin, started).await
}

async fn stop(State(desk): State<Desk>, Path(plugin): Path<String>) -> Response {
    order(desk, plugin, |desk, plugin| desk.shadows.stop(plugin)).await
}

async fn order(
    desk: Desk,
    plugin: String,
    give: impl FnOnce(&Desk, &str) -> Result<ShadowReport, OrderError> + Send + 'static,
) -> Response {
    let given = tokio::task::spawn_blocking(move || -> Result<_, Refused> {
        desk.slot(&plugin)?;
        Ok(give(&desk, &plugin)?)
    });
    match given.await.unwrap_or(Err(Refused::Stopping)) {
        Ok(report) => Json(report).into_response(),
        Err(refused) => refused.into_response(),
    }
}
