//! `GET /plugins/{plugin}/component`: the component of a version that runs or ran, for a replay. It
//! is no order, but needs the token as one does: the operator may have it from a private registry.
//! This module must not know where components are kept.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use super::desk::{Desk, Refused};
use crate::deploy::history;

/// The media type of a component.
const WASM: &str = "application/wasm";

/// The parameters of the question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ComponentQuery {
    /// The digest, with `sha256:` in front.
    digest: String,
}

pub(super) fn orders() -> Router<Desk> {
    Router::new().route("/plugins/{plugin}/component", get(component))
}

async fn component(
    State(desk): State<Desk>,
    Path(plugin): Path<String>,
    Query(query): Query<ComponentQuery>,
) -> Response {
    match found(&desk, &plugin, &query.digest).await {
        Ok(bytes) => ([(CONTENT_TYPE, WASM)], bytes).into_response(),
        Err(refused) => refused.into_response(),
    }
}

async fn found(desk: &Desk, plugin: &str, asked: &str) -> Result<Vec<u8>, Refused> {
    let slot = desk.slot(plugin)?;
    let digest = asked.strip_prefix("sha256:").unwrap_or(asked).to_owned();
    let canary = slot.canary.load_full();
    if let Some(bytes) = canary.and_then(|canary| canary.component(&digest)) {
        return Ok(bytes);
    }
    let name = slot.name.clone();
    let kept = history::with(&desk.history, move |history| {
        history.component(&name, &digest)
    });
    let kept = kept.await.ok_or(Refused::Stopping)?;
    kept.ok_or_else(|| Refused::NoComponent(asked.to_owned()))
}
