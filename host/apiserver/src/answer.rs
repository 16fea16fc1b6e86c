//! Builds answers: bodies with their headers.
//!
//! Owns media types, entity tags and warnings of answers. Must not know requests.

use axum::body::Body;
use http::header::{CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::call::Done;
use crate::encode::{self, Written};
use crate::kinds::Target;
use crate::negotiate::{Form, Wire};
use crate::read::{self, View};
use crate::status::ApiError;
use crate::{discovery, protobuf};

pub(crate) use crate::encode::JSON;

const WARNING: HeaderName = HeaderName::from_static("warning");

/// Returns a refusal in JSON.
pub(crate) fn refusal(error: &ApiError) -> Response<Body> {
    refusal_as(Wire::Json, error)
}

pub(crate) fn refusal_as(wire: Wire, error: &ApiError) -> Response<Body> {
    let mut response = value_answer(error.code, wire, &error.to_value());
    let details = error.details.as_ref();
    let wait = details.and_then(|details| details.get("retryAfterSeconds")?.as_u64());
    if let Some(seconds) = wait {
        response
            .headers_mut()
            .insert(http::header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

pub(crate) fn done_answer(target: &Target, done: &Done, view: View) -> Response<Body> {
    let plain = View {
        form: if target.kind.answer.is_some() {
            Form::Plain
        } else {
            view.form
        },
        ..view
    };
    let object = read::object(target, &done.object, plain);
    warned(written(done.code, object), &done.warnings)
}

pub(crate) fn json_answer(code: u16, value: &Value) -> Response<Body> {
    value_answer(code, Wire::Json, value)
}

/// Returns an answer that is no object of a kind: a status, a scale, discovery.
pub(crate) fn value_answer(code: u16, wire: Wire, value: &Value) -> Response<Body> {
    written(code, encode::object_as(wire, value, false))
}

pub(crate) fn written(code: u16, body: Written) -> Response<Body> {
    answer(code, body.media, body.bytes)
}

pub(crate) fn answer(code: u16, media: &'static str, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert(
        http::header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}

/// Returns the events of a watch.
pub(crate) fn stream(wire: Wire, body: Body) -> Response<Body> {
    let media = match wire {
        Wire::Json => JSON,
        Wire::Protobuf => protobuf::STREAM,
    };
    let mut response = answer(200, media, Vec::new());
    *response.body_mut() = body;
    response
}

/// Returns an answer that a client may cache and revalidate by its hash.
pub(crate) fn cached(headers: &HeaderMap, media: &'static str, value: &Value) -> Response<Body> {
    cached_bytes(headers, media, encode::object(value, false))
}

/// Returns discovery, which may be aggregated.
pub(crate) fn discovered(
    headers: &HeaderMap,
    (is_aggregated, wire): (bool, Wire),
    value: &Value,
) -> Response<Body> {
    let body = encode::object_as(wire, value, false);
    let media = match (is_aggregated, body.media == protobuf::MEDIA) {
        (true, true) => discovery::AGGREGATED_PROTOBUF,
        (true, false) => discovery::AGGREGATED,
        (false, _) => body.media,
    };
    cached_bytes(headers, media, body.bytes)
}

pub(crate) fn cached_bytes(
    headers: &HeaderMap,
    media: &'static str,
    body: Vec<u8>,
) -> Response<Body> {
    let tag = format!("\"{}\"", hex::encode_upper(Sha256::digest(&body)));
    let asked = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|v| v.to_str().ok());
    let same = asked.flat_map(|v| v.split(',')).any(|v| v.trim() == tag);
    let mut response = if same {
        answer(304, media, Vec::new())
    } else {
        answer(200, media, body)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
        .headers_mut()
        .insert(http::header::VARY, HeaderValue::from_static("Accept"));
    response
}

pub(crate) fn warned(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    for warning in warnings {
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}
