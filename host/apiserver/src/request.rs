//! The query of a request, parsed once.
//!
//! Owns the options of every verb. Must not know paths, or what is done with the options.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::Query;
use http::{Method, Uri};

use crate::access::credentials::Author;
use crate::status::{ApiError, FORBIDDEN, INVALID, NOT_SUPPORTED, cause};

/// The options of a DELETE besides those that select objects.
const OF_DELETE: [&str; 3] = ["dryRun", "propagationPolicy", "orphanDependents"];

/// What to do with unknown fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The parsed query, with the author of the request.
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
    /// How the request said so, if it did.
    pub validation_as_sent: Option<&'static str>,
    pub force: bool,
    pub include_object: Option<String>,
    /// The propagation policy of a DELETE that is in the query instead of the body.
    pub propagation: Option<String>,
    pub orphan: Option<bool>,
    /// The user who sends the request. `None` for a call that no user makes, such as an overlay's:
    /// everything is allowed.
    pub author: Option<Arc<Author>>,
}

/// Returns whether a parameter with this value is set.
pub(crate) fn truth(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

/// The options of one method, as an object of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of a list, a watch or a GET.
    List,
    Create,
    Update,
    Patch,
    Delete,
}

impl Kind {
    fn of(method: &Method) -> Kind {
        match *method {
            Method::POST => Kind::Create,
            Method::PUT => Kind::Update,
            Method::PATCH => Kind::Patch,
            Method::DELETE => Kind::Delete,
            _ => Kind::List,
        }
    }

    /// Returns the name of the options in a refusal.
    fn name(self) -> &'static str {
        match self {
            Kind::List => "ListOptions.meta.k8s.io",
            Kind::Create => "CreateOptions.meta.k8s.io",
            Kind::Update => "UpdateOptions.meta.k8s.io",
            Kind::Patch => "PatchOptions.meta.k8s.io",
            Kind::Delete => "DeleteOptions.meta.k8s.io",
        }
    }

    /// Returns whether the options of this kind have a field. The fields that only one kind has are
    /// read by no other verb.
    fn has(self, field: &str) -> bool {
        match field {
            "dryRun" => self != Kind::List,
            "fieldManager" | "fieldValidation" => !matches!(self, Kind::List | Kind::Delete),
            _ => true,
        }
    }
}

impl Options {
    /// Parses the query of a request. A DELETE with a body takes its options from that: in the
    /// query, only what selects objects counts.
    pub fn parse(uri: &Uri, method: &Method, has_body: bool) -> Result<Options, ApiError> {
        let kind = Kind::of(method);
        let in_body = kind == Kind::Delete && has_body;
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let mut options = Options::default();
        let mut given = HashSet::new();
        for (name, value) in pairs {
            // Of two values the first counts: it is the one whose rights were checked.
            if name != "dryRun" && !given.insert(name.clone()) {
                continue;
            }
            if !kind.has(&name) || (in_body && OF_DELETE.contains(&name.as_str())) {
                continue;
            }
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
                    other => return Err(not_supported(kind, "dryRun", other, "\"All\"")),
                },
                "fieldManager" => options.manager = Some(value),
                "fieldValidation" => {
                    let mut words = ["Ignore", "Warn", "Strict"].into_iter();
                    options.validation_as_sent = words.find(|word| *word == value);
                    options.validation = match value.as_str() {
                        "Ignore" => Validation::Ignore,
                        "" | "Warn" => Validation::Warn,
                        "Strict" => Validation::Strict,
                        other => {
                            return Err(not_supported(
                                kind,
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
            return Err(ApiError::invalid_of(kind.name(), "", &[too_long]));
        }
        Ok(options)
    }

    /// Checks the rules between the options of a list or watch.
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

    /// Returns the version as a number; `None` if any version will do.
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
        error.reason = "BadRequest".into();
        error
    })
}

fn not_supported(kind: Kind, field: &str, value: &str, known: &str) -> ApiError {
    let message = format!("Unsupported value: {value:?}: supported values: {known}");
    let why = cause(NOT_SUPPORTED, field, message);
    ApiError::invalid_of(kind.name(), "", &[why])
}
