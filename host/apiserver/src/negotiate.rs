//! The forms of answers and bodies.
//!
//! Owns `Accept` and `Content-Type`. Must not know how the forms are created.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use crate::status::ApiError;

/// The form of an answer with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The objects themselves.
    Plain,
    /// `Table`, with the requested apiVersion of the group `meta.k8s.io`.
    Table,
    /// `PartialObjectMetadata`, or its list.
    Partial,
}

/// One clause of an `Accept` header.
#[derive(Debug)]
pub(crate) struct Clause {
    pub media: String,
    params: Vec<(String, String)>,
    quality: f32,
}

impl Clause {
    pub fn param(&self, name: &str) -> &str {
        self.params
            .iter()
            .find(|(n, _)| n == name)
            .map_or("", |(_, value)| value)
    }

    pub fn is_json(&self) -> bool {
        matches!(
            self.media.as_str(),
            "application/json" | "application/*" | "*/*"
        )
    }

    /// Returns whether objects can be answered so, in JSON or converted from it.
    fn is_text(&self) -> bool {
        self.is_json() || self.media == "application/yaml"
    }
}

/// Returns the clauses of the `Accept` headers, best first.
pub(crate) fn clauses(headers: &HeaderMap) -> Vec<Clause> {
    let texts: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .collect();
    let mut clauses: Vec<Clause> = texts
        .iter()
        .flat_map(|t| t.split(','))
        .filter_map(clause)
        .collect();
    if clauses.is_empty() {
        clauses.extend(clause("*/*"));
    }
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

fn clause(text: &str) -> Option<Clause> {
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().filter(|m| !m.is_empty())?.to_ascii_lowercase();
    let mut clause = Clause {
        media,
        params: Vec::new(),
        quality: 1.0,
    };
    for (name, value) in parts.filter_map(|p| p.split_once('=')) {
        match name.trim() {
            "q" => clause.quality = value.trim().parse().unwrap_or(1.0),
            name => clause
                .params
                .push((name.to_owned(), value.trim().to_owned())),
        }
    }
    (clause.quality > 0.0).then_some(clause)
}

/// Returns the form for one object or a watch (`list` is false), or for a list.
pub(crate) fn form(headers: &HeaderMap, list: bool) -> Result<Form, ApiError> {
    let partial = if list {
        "PartialObjectMetadataList"
    } else {
        "PartialObjectMetadata"
    };
    for clause in clauses(headers).iter().filter(|c| c.is_text()) {
        let meta = clause.param("g") == "meta.k8s.io" && clause.param("v") == "v1";
        match clause.param("as") {
            "" => return Ok(Form::Plain),
            "Table" if meta => return Ok(Form::Table),
            name if meta && name == partial => return Ok(Form::Partial),
            _ => {}
        }
    }
    Err(ApiError::not_acceptable("application/json"))
}

/// Returns whether the first supported form of `/openapi/v2` is protobuf, and not JSON.
pub(crate) fn openapi_v2(headers: &HeaderMap) -> Result<bool, ApiError> {
    for clause in clauses(headers) {
        match clause.media.as_str() {
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
            | "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" => return Ok(true),
            _ if clause.is_json() => return Ok(false),
            _ => {}
        }
    }
    Err(ApiError::not_acceptable(
        "application/json, application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    ))
}

/// Returns the media type of a body, without parameters. A missing one means JSON.
pub(crate) fn body_type(headers: &HeaderMap) -> String {
    let text = headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let media = text
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if media.is_empty() {
        "application/json".to_owned()
    } else {
        media
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str, list: bool) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, text.parse().unwrap());
        form(&headers, list).ok()
    }

    #[test]
    fn the_accept_headers_of_clients_are_understood() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(asked(table, true), Some(Form::Table));
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(asked(metadata, true), Some(Form::Partial));
        assert_eq!(
            asked("application/vnd.kubernetes.protobuf, */*", false),
            Some(Form::Plain)
        );
        assert_eq!(
            asked("application/json, */*;q=0.8", false),
            Some(Form::Plain)
        );
        assert_eq!(asked("application/vnd.kubernetes.protobuf", false), None);
        assert_eq!(asked("application/yaml", false), Some(Form::Plain));
        assert_eq!(asked("text/html", false), None);
        assert_eq!(
            asked("application/json;as=Table;v=v1beta1;g=meta.k8s.io", true),
            None
        );
        assert_eq!(form(&HeaderMap::new(), false).ok(), Some(Form::Plain));
    }
}
