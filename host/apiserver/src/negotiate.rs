//! The forms of answers and bodies.
//!
//! Owns `Accept`, `Content-Type` and `includeObject`. Must not know how the forms are created.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use crate::protobuf;
use crate::status::ApiError;

/// The media types of objects, and those of watches, which have the paths of lists.
const FORMS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

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

/// What the rows of a `Table` include of their objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    pub fn parse(text: Option<&str>) -> Option<Include> {
        match text.unwrap_or_default() {
            "" | "Metadata" => Some(Include::Metadata),
            "None" => Some(Include::Nothing),
            "Object" => Some(Include::Object),
            _ => None,
        }
    }
}

/// How an answer is written. YAML is made of JSON afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Json,
    Protobuf,
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

    /// Returns how an answer to this clause is written; `None`: it is not.
    fn wire(&self) -> Option<Wire> {
        match self.is_text() {
            true => Some(Wire::Json),
            false => (self.media == protobuf::MEDIA).then_some(Wire::Protobuf),
        }
    }

    /// Returns whether the clause asks for a kind of a group and version instead of the plain form.
    fn asks_for(&self, kind: &str, group: &str, version: &str) -> bool {
        [("as", kind), ("g", group), ("v", version)]
            .iter()
            .all(|(name, value)| self.param(name) == *value)
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

/// Returns the form for one object or a watch (`list` is false), or for a list. `is_custom`: the
/// objects themselves have no form in protobuf, but their metadata has.
pub(crate) fn form(
    headers: &HeaderMap,
    list: bool,
    is_custom: bool,
) -> Result<(Form, Wire), ApiError> {
    let partial = if list {
        "PartialObjectMetadataList"
    } else {
        "PartialObjectMetadata"
    };
    let clauses = clauses(headers);
    for clause in &clauses {
        let Some(wire) = clause.wire() else {
            continue;
        };
        let is_text = wire == Wire::Json;
        if clause.asks_for(partial, "meta.k8s.io", "v1") {
            return Ok((Form::Partial, wire));
        }
        if is_text && clause.asks_for("Table", "meta.k8s.io", "v1") {
            return Ok((Form::Table, wire));
        }
        if clause.param("as").is_empty() && (is_text || !is_custom) {
            return Ok((Form::Plain, wire));
        }
    }
    // The paths of built-in kinds say which media types they have; their parameters come later.
    let has_path = clauses.iter().any(|clause| clause.wire().is_some());
    Err(match (is_custom || has_path, list) {
        (true, _) => ApiError::not_acceptable(FORMS),
        (false, false) => ApiError::unwritten_form(FORMS),
        (false, true) => ApiError::unwritten_form(&format!("{FORMS}, {STREAMS}")),
    })
}

/// Returns how a refusal is written, or another answer that has only the plain form.
pub(crate) fn plain(headers: &HeaderMap) -> Wire {
    // Most requests do not name protobuf.
    let values = headers.get_all(ACCEPT);
    let mut texts = values.iter().filter_map(|value| value.to_str().ok());
    if !texts.any(|text| text.contains("protobuf")) {
        return Wire::Json;
    }
    let clauses = clauses(headers);
    let mut plain = clauses.iter().filter(|c| c.param("as").is_empty());
    plain.find_map(Clause::wire).unwrap_or(Wire::Json)
}

/// Returns whether the first supported form of discovery is the aggregated one, and how it is
/// written.
pub(crate) fn discovery(headers: &HeaderMap) -> (bool, Wire) {
    if headers.get(ACCEPT).is_none() {
        return (false, Wire::Json);
    }
    for clause in clauses(headers) {
        let wire = clause.wire().filter(|_| clause.media != "application/yaml");
        match wire {
            Some(wire) if clause.param("as").is_empty() => return (false, wire),
            Some(wire) if clause.asks_for("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => {
                return (true, wire);
            }
            _ => {}
        }
    }
    (false, Wire::Json)
}

/// Refuses a request for the answer to a question in another form than its own: there is no table
/// of it.
pub(crate) fn has_plain(headers: &HeaderMap) -> Result<(), ApiError> {
    let own = |clause: &Clause| clause.wire().is_some() && clause.param("as").is_empty();
    match clauses(headers).iter().any(own) {
        true => Ok(()),
        false => Err(ApiError::not_acceptable("application/json")),
    }
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

    fn headers(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, text.parse().unwrap());
        headers
    }

    fn asked(text: &str, list: bool) -> Option<Form> {
        form(&headers(text), list, true).ok().map(|(form, _)| form)
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
        let none = form(&HeaderMap::new(), false, false);
        assert_eq!(none.ok(), Some((Form::Plain, Wire::Json)));
    }

    #[test]
    fn protobuf_is_written_where_it_comes_first() {
        const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";
        const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        const TABLE: &str = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1";
        let of = |text: &str, is_custom| form(&headers(text), false, is_custom).ok();
        assert_eq!(of(PROTOBUF, false), Some((Form::Plain, Wire::Protobuf)));
        assert_eq!(of(PROTOBUF, true), Some((Form::Plain, Wire::Json)));
        assert_eq!(of(METADATA, true), Some((Form::Partial, Wire::Protobuf)));
        assert_eq!(of(TABLE, false), Some((Form::Table, Wire::Json)));
        let only = "application/vnd.kubernetes.protobuf;stream=watch";
        assert_eq!(of(only, false), Some((Form::Plain, Wire::Protobuf)));
        assert_eq!(of(only, true), None);
        let second = "application/json,application/vnd.kubernetes.protobuf";
        assert_eq!(of(second, false), Some((Form::Plain, Wire::Json)));
        assert_eq!(
            of("application/cbor,application/json", false),
            Some((Form::Plain, Wire::Json))
        );
        assert_eq!(of("application/cbor", false), None);
        assert_eq!(plain(&headers(PROTOBUF)), Wire::Protobuf);
        assert_eq!(plain(&headers(METADATA)), Wire::Json);
        assert_eq!(plain(&headers(second)), Wire::Json);
        assert_eq!(plain(&HeaderMap::new()), Wire::Json);
        assert_eq!(discovery(&headers(PROTOBUF)), (false, Wire::Protobuf));
        let aggregated = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        assert_eq!(discovery(&headers(aggregated)), (true, Wire::Protobuf));
        assert!(has_plain(&HeaderMap::new()).is_ok());
        assert!(
            has_plain(&headers(
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
            ))
            .is_ok()
        );
        assert!(has_plain(&headers(PROTOBUF)).is_ok());
        let only = headers("application/json;as=Table;v=v1;g=meta.k8s.io");
        assert_eq!(has_plain(&only).unwrap_err().code, 406);
    }
}
