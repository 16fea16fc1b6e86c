//! What a request asks for: its path and its query, read once.
//!
//! Owns the grammar of API paths and the options of every verb. Must not know what is done with them.

use axum::extract::Query;
use http::Uri;

use crate::status::{ApiError, FORBIDDEN, INVALID, NOT_SUPPORTED, cause};

/// Where a path leads.
#[derive(Debug, PartialEq)]
pub(crate) enum Route {
    Root,
    Health,
    Version,
    Api,
    Apis,
    Group(String),
    GroupVersion(String, String),
    OpenapiV2,
    OpenapiV3,
    OpenapiV3Of(String, String),
    Resource(ResourcePath),
    Unknown,
}

/// A path to objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResourcePath {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    pub plural: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
}

/// Reads a path; slashes at its end do not count.
pub(crate) fn route(path: &str) -> Route {
    let parts: Vec<String> = path
        .split('/')
        .filter(|p| !p.is_empty())
        .map(percent_decode)
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [] => Route::Root,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["version"] => Route::Version,
        ["api"] => Route::Api,
        ["apis"] => Route::Apis,
        ["openapi", "v2"] => Route::OpenapiV2,
        ["openapi", "v3"] => Route::OpenapiV3,
        ["openapi", "v3", "api", version] => {
            Route::OpenapiV3Of(String::new(), (*version).to_owned())
        }
        ["openapi", "v3", "apis", group, version] => {
            Route::OpenapiV3Of((*group).to_owned(), (*version).to_owned())
        }
        ["api", version] => Route::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group] => Route::Group((*group).to_owned()),
        ["apis", group, version] => Route::GroupVersion((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let (namespace, rest) = match rest {
        // The namespace object itself, and its subresources.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] if group.is_empty() => {
            (None, rest)
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            (Some((*namespace).to_owned()), rest)
        }
        rest => (None, rest),
    };
    let owned = |at: usize| rest.get(at).map(|s| (*s).to_owned());
    match owned(0) {
        Some(plural) if rest.len() <= 3 => Route::Resource(ResourcePath {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace,
            plural,
            name: owned(1),
            subresource: owned(2),
        }),
        _ => Route::Unknown,
    }
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = if first == b'%' {
            tail.get(..2).and_then(|h| hex::decode(h).ok())
        } else {
            None
        };
        match hex {
            Some(byte) => {
                bytes.extend(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What to do with fields that a kind does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub watch: bool,
    pub label_selector: String,
    pub field_selector: String,
    pub limit: usize,
    pub continuation: String,
    pub version: String,
    pub version_match: String,
    pub timeout_seconds: Option<u64>,
    pub bookmarks: bool,
    pub initial_events: Option<bool>,
    pub dry_run: bool,
    pub manager: Option<String>,
    pub validation: Validation,
    pub force: bool,
    pub include_object: Option<String>,
    /// What a DELETE says here and not in its body.
    pub propagation: Option<String>,
    pub orphan: Option<bool>,
}

impl Options {
    pub fn parse(uri: &Uri) -> Result<Options, ApiError> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let mut options = Options::default();
        let truth = |value: &str| matches!(value, "" | "1" | "t" | "T" | "true" | "TRUE" | "True");
        for (name, value) in pairs {
            match name.as_str() {
                "watch" => options.watch = truth(&value),
                "labelSelector" => options.label_selector = value,
                "fieldSelector" => options.field_selector = value,
                "limit" => options.limit = number(&name, &value)?.unwrap_or(0) as usize,
                "continue" => options.continuation = value,
                "resourceVersion" => options.version = value,
                "resourceVersionMatch" => options.version_match = value,
                "timeoutSeconds" => options.timeout_seconds = number(&name, &value)?,
                "allowWatchBookmarks" => options.bookmarks = truth(&value),
                "sendInitialEvents" => options.initial_events = Some(truth(&value)),
                "dryRun" => match value.as_str() {
                    "" => {}
                    "All" => options.dry_run = true,
                    other => return Err(not_supported("dryRun", other, "\"All\"")),
                },
                "fieldManager" => options.manager = Some(value),
                "fieldValidation" => {
                    options.validation = match value.as_str() {
                        "Ignore" => Validation::Ignore,
                        "" | "Warn" => Validation::Warn,
                        "Strict" => Validation::Strict,
                        other => {
                            return Err(not_supported(
                                "fieldValidation",
                                other,
                                "\"Ignore\", \"Strict\", \"Warn\"",
                            ));
                        }
                    }
                }
                "force" => options.force = truth(&value),
                "includeObject" => options.include_object = Some(value),
                "propagationPolicy" => options.propagation = Some(value),
                "orphanDependents" => options.orphan = Some(truth(&value)),
                _ => {}
            }
        }
        if options.manager.as_ref().is_some_and(|m| m.len() > 128) {
            let too_long = cause(
                "FieldValueTooLong",
                "fieldManager",
                "Too long: may not be more than 128 bytes",
            );
            return Err(ApiError::invalid_of(
                "CreateOptions.meta.k8s.io",
                "",
                &[too_long],
            ));
        }
        Ok(options)
    }

    /// The rules between the options of a list or watch.
    pub fn check_list(&self) -> Result<(), ApiError> {
        let refuse = |reason, field: &str, message: &str| {
            Err(ApiError::invalid_of(
                "ListOptions.meta.k8s.io",
                "",
                &[cause(reason, field, message)],
            ))
        };
        let matching = "resourceVersionMatch";
        if self.watch && self.initial_events.is_some() {
            return match self.version_match.as_str() {
                "NotOlderThan" => Ok(()),
                "" => refuse(
                    FORBIDDEN,
                    matching,
                    "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ),
                other => refuse(
                    NOT_SUPPORTED,
                    matching,
                    &format!("Unsupported value: {other:?}: supported values: \"NotOlderThan\""),
                ),
            };
        }
        if self.initial_events.is_some() {
            return refuse(
                FORBIDDEN,
                "sendInitialEvents",
                "Forbidden: sendInitialEvents is forbidden for list",
            );
        }
        if self.version_match.is_empty() {
            return Ok(());
        }
        if self.watch {
            let why = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            return refuse(FORBIDDEN, matching, why);
        }
        if self.version.is_empty() {
            let why =
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
            return refuse(FORBIDDEN, matching, why);
        }
        if !self.continuation.is_empty() {
            return refuse(
                FORBIDDEN,
                matching,
                "Forbidden: resourceVersionMatch is forbidden when continue is provided",
            );
        }
        match self.version_match.as_str() {
            "NotOlderThan" => Ok(()),
            "Exact" if self.version == "0" => refuse(
                FORBIDDEN,
                matching,
                "Forbidden: resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"",
            ),
            "Exact" => Ok(()),
            other => refuse(
                NOT_SUPPORTED,
                matching,
                &format!(
                    "Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""
                ),
            ),
        }
    }

    /// The version as a number; `None` when any will do.
    pub fn version_number(&self) -> Result<Option<u64>, String> {
        match self.version.as_str() {
            "" | "0" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                format!(
                    "Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
                )
            }),
        }
    }
}

fn number(name: &str, value: &str) -> Result<Option<u64>, ApiError> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|_| {
        let message = format!("Invalid value: {value:?}: must be a number");
        let mut error = ApiError::invalid_of(
            "ListOptions.meta.k8s.io",
            "",
            &[cause(INVALID, name, message)],
        );
        error.code = 400;
        error.reason = "BadRequest";
        error
    })
}

fn not_supported(field: &str, value: &str, known: &str) -> ApiError {
    let message = format!("Unsupported value: {value:?}: supported values: {known}");
    ApiError::invalid_of(
        "PatchOptions.meta.k8s.io",
        "",
        &[cause(NOT_SUPPORTED, field, message)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> (String, Option<String>, Option<String>, Option<String>) {
        match route(text) {
            Route::Resource(p) => (p.plural, p.namespace, p.name, p.subresource),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn paths_are_read_as_a_real_server_reads_them() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(
            path("/api/v1/namespaces/x"),
            ("namespaces".into(), None, some("x"), None)
        );
        assert_eq!(
            path("/api/v1/namespaces/x/status"),
            ("namespaces".into(), None, some("x"), some("status"))
        );
        assert_eq!(
            path("/api/v1/namespaces/x/pods/"),
            ("pods".into(), some("x"), None, None)
        );
        assert_eq!(
            path("/apis/g/v1/vms/a%3Ab/status"),
            ("vms".into(), None, some("a:b"), some("status"))
        );
        assert_eq!(
            path("/apis/g/v1/namespaces/n/vms/a/scale"),
            ("vms".into(), some("n"), some("a"), some("scale"))
        );
        assert_eq!(route("/apis/"), Route::Apis);
        assert_eq!(
            route("/apis/g/v1/namespaces/n/vms/a/scale/more"),
            Route::Unknown
        );
        assert_eq!(route("/metrics"), Route::Unknown);
    }
}
