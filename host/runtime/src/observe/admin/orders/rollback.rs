//! `GET /plugins/{plugin}/history` and `POST /plugins/{plugin}/rollback`. This module must not know
//! how a rollback is carried out.

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use super::desk::{Desk, Refused};
use crate::deploy::history;
use crate::deploy::history::report::{HistoryReport, RolledBack};
use crate::deploy::orders::Order;

/// The parameters of a rollback.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RollbackQuery {
    /// The beginning of a digest. Without it, the version before the running one.
    to: Option<String>,
}

pub(super) fn reports() -> Router<Desk> {
    Router::new().route("/plugins/{plugin}/history", get(history))
}

pub(super) fn orders() -> Router<Desk> {
    Router::new().route("/plugins/{plugin}/rollback", post(order))
}

async fn history(State(desk): State<Desk>, Path(plugin): Path<String>) -> Response {
    match reported(&desk, &plugin).await {
        Ok(report) => Json(report).into_response(),
        Err(refused) => refused.into_response(),
    }
}

async fn reported(desk: &Desk, plugin: &str) -> Result<HistoryReport, Refused> {
    let name = desk.slot(plugin)?.name.clone();
    let report = history::with(&desk.history, move |history| history.report(&name));
    Ok(report.await.ok_or(Refused::Stopping)??)
}

async fn order(
    State(desk): State<Desk>,
    Path(plugin): Path<String>,
    Query(query): Query<RollbackQuery>,
) -> Response {
    match roll_back(&desk, &plugin, query.to).await {
        Ok(done) => Json(done).into_response(),
        Err(refused) => refused.into_response(),
    }
}

async fn roll_back(desk: &Desk, plugin: &str, to: Option<String>) -> Result<RolledBack, Refused> {
    let slot = desk.slot(plugin)?;
    // An empty text is refused: it may be a script's variable that was not set.
    let order = slot.orders.ask(|answer| Order::Rollback { to, answer });
    Ok(order.await?)
}
