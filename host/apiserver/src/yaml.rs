//! Answers in YAML, for clients that prefer it.
//!
//! Owns the conversion of a whole answer. Must not know what is answered.

use axum::body::{Body, HttpBody};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use serde_json::Value;

use crate::answer::{JSON, refusal_as};
use crate::negotiate;
use crate::status::ApiError;

const YAML: &str = "application/yaml";

/// Returns an answer in the form that a client prefers. A watch stays as it is: it has no end.
pub(crate) async fn answer(
    headers: &HeaderMap,
    made: Result<Response<Body>, ApiError>,
) -> Result<Response<Body>, ApiError> {
    let clauses = negotiate::clauses(headers);
    let prefers = clauses.iter().find(|c| c.is_json() || c.media == YAML);
    if prefers.is_none_or(|clause| clause.media != YAML) {
        return made;
    }
    let response = made.unwrap_or_else(|error| refusal_as(negotiate::plain(headers), &error));
    // A watch has no size, and no end to wait for.
    if response.body().size_hint().exact().is_none() {
        return Ok(response);
    }
    let (mut parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX)
        .await
        .map_err(|error| ApiError::internal(error.to_string()))?;
    let is_json = parts
        .headers
        .get(CONTENT_TYPE)
        .is_some_and(|media| media == JSON);
    let value = serde_json::from_slice::<Value>(&bytes)
        .ok()
        .filter(|_| is_json);
    let text = value.and_then(|value| serde_yaml_ng::to_string(&value).ok());
    let Some(text) = text else {
        return Ok(Response::from_parts(parts, Body::from(bytes)));
    };
    parts.headers.remove(CONTENT_LENGTH);
    let media = HeaderValue::from_static(YAML);
    parts.headers.insert(CONTENT_TYPE, media);
    Ok(Response::from_parts(parts, Body::from(text)))
}
