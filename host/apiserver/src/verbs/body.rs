//! The bodies of verbs.
//!
//! Owns which media types a body may have, and how often it is used. Must not know what is done
//! with it.

use http::HeaderMap;
use serde_json::Value;

use crate::answers::may_ask;
use crate::decode::{self, Body, Twice};
use crate::delete::DeleteOptions;
use crate::kinds::Target;
use crate::request::{Options, Validation};
use crate::state::Inner;
use crate::status::ApiError;
use crate::{negotiate, protobuf};

/// The media types of bodies of custom kinds.
const TEXTS: &str = "application/json, application/yaml";
/// Those of built-in kinds, and of options.
const ALL: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Returns the fields that a patch gives twice, except for an apply, which has its own.
pub(super) fn twice(media: &str, options: &Options, body: &[u8]) -> Vec<Twice> {
    let read = match media {
        _ if options.validation == Validation::Ignore => None,
        "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
            decode::json(body).ok()
        }
        _ => None,
    };
    read.map(|body| body.duplicates).unwrap_or_default()
}

/// Reads the body of a POST or PUT.
pub(super) fn read_body(
    target: &Target,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Body, ApiError> {
    let media = negotiate::body_type(headers);
    let bad = |error: &dyn std::fmt::Display| {
        ApiError::bad_request(format!("the object provided is unrecognized: {error}"))
    };
    let has_protobuf = || protobuf::knows(&target.api_version(), &target.kind.kind);
    match media.as_str() {
        "application/json" => decode::json(body).map_err(|e| bad(&e)),
        "application/yaml" => decode::yaml(body).map_err(|e| bad(&e)),
        protobuf::MEDIA if has_protobuf() => {
            let value = protobuf::object(body)?;
            let duplicates = Vec::new();
            Ok(Body { value, duplicates })
        }
        _ if has_protobuf() => Err(ApiError::unsupported_media_type(ALL)),
        _ => Err(ApiError::unsupported_media_type(TEXTS)),
    }
}

/// Reads the body of a DELETE; what it leaves out may be in the query.
pub(super) fn delete_options(
    headers: &HeaderMap,
    options: &Options,
    body: &[u8],
) -> Result<DeleteOptions, ApiError> {
    let query = DeleteOptions {
        propagation_policy: options.propagation.clone(),
        orphan_dependents: options.orphan,
        ..DeleteOptions::default()
    };
    match negotiate::body_type(headers).as_str() {
        "application/json" | "application/yaml" => DeleteOptions::parse(body, query),
        _ if body.is_empty() => DeleteOptions::parse(body, query),
        protobuf::MEDIA => DeleteOptions::of(protobuf::delete_options(body)?),
        _ => Err(ApiError::unsupported_media_type(ALL)),
    }
}

/// Returns the object of a request for one attempt of the write. It is kept for another attempt if
/// there can be one.
pub(super) fn again(inner: &Inner, target: &Target, value: &mut Value) -> Value {
    match may_ask(inner, target) {
        true => value.clone(),
        false => value.take(),
    }
}
