//! Checks the parameters of questions about turns against the running controllers, and says why a
//! question is refused. This module must not know the journal.

use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use vmhost_core::{Gvk, ObjectName};

use super::questions::{CasesQuery, TurnsQuery, WhyQuery};
use super::running::{Keyed, Running};
use super::wanted::Wanted;

/// The namespace of an object if the question names none, as for kubectl.
const DEFAULT_NAMESPACE: &str = "default";

/// Why a question has no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// The host shuts down.
    #[error("shutting down")]
    Stopping,
    /// The answer could not be made.
    #[error("the answer could not be made: see the log of vmhost")]
    Broken,
    /// `since` is not a time.
    #[error("since={0:?} is not a time such as 2026-01-31T12:00:00Z")]
    NotATime(String),
    /// No controller has keys of the kind.
    #[error("no controller reconciles the kind {asked:?}; the kinds are: {known}")]
    NoKind { asked: String, known: String },
    /// No controller has the label.
    #[error("no controller is named {asked:?}; the controllers are: {known}")]
    NoController { asked: String, known: String },
    /// Nothing is recorded about the object.
    #[error("no turn of {object} is recorded: {why}")]
    NoTurn { object: String, why: &'static str },
}

/// Returns the records that a query for turns asks for.
pub(crate) fn wanted(query: &TurnsQuery, running: &Running) -> Result<Wanted, Refused> {
    let kinds = match given(&query.kind) {
        Some(kind) => Some(kinds_of(&of_kind(kind, running)?)),
        None => None,
    };
    let since: Option<SystemTime> = match given(&query.since) {
        Some(text) => match text.parse::<Timestamp>() {
            Ok(time) => Some(time.into()),
            Err(_) => return Err(Refused::NotATime(text.to_owned())),
        },
        None => None,
    };
    Ok(Wanted {
        controller: of_label(given(&query.controller), running)?,
        keys: given(&query.key).map(|key| vec![key.to_owned()]),
        kinds,
        text: given(&query.text).map(str::to_owned),
        failed: query.failed,
        slow: Duration::from_millis(query.slow.unwrap_or_default()),
        since,
    })
}

/// Returns the records that a query for one key's story asks for.
pub(crate) fn wanted_of(query: &WhyQuery, running: &Running) -> Result<Wanted, Refused> {
    let (controllers, names) = meant(query, running)?;
    Ok(Wanted {
        keys: Some(names.iter().map(ToString::to_string).collect()),
        kinds: Some(kinds_of(&controllers)),
        ..Wanted::default()
    })
}

/// Returns the controllers and the names that a query stands for: without a namespace, a
/// cluster-scoped object or one in the default namespace.
pub(crate) fn meant<'a>(
    query: &WhyQuery,
    running: &'a Running,
) -> Result<(Vec<&'a Keyed>, Vec<ObjectName>), Refused> {
    let controllers = of_kind(&query.kind, running)?;
    Ok((controllers, names(&query.namespace, &query.name)))
}

/// Returns the records that a query for cases asks for.
pub(crate) fn wanted_cases(query: &CasesQuery, running: &Running) -> Result<Wanted, Refused> {
    let kinds = match given(&query.kind) {
        Some(kind) => Some(kinds_of(&of_kind(kind, running)?)),
        None => None,
    };
    let keys = given(&query.name).map(|name| names(&query.namespace, name));
    Ok(Wanted {
        controller: of_label(given(&query.controller), running)?,
        keys: keys.map(|keys| keys.iter().map(ToString::to_string).collect()),
        kinds,
        failed: query.failed,
        ..Wanted::default()
    })
}

/// Returns the object that a query for cases names, as a query for its story.
pub(crate) fn why_of(query: &CasesQuery) -> Option<WhyQuery> {
    Some(WhyQuery {
        kind: given(&query.kind)?.to_owned(),
        namespace: query.namespace.clone(),
        name: given(&query.name)?.to_owned(),
        ..WhyQuery::default()
    })
}

/// Returns the names that a query stands for. Without a namespace, the default namespace is tried
/// too.
fn names(namespace: &Option<String>, name: &str) -> Vec<ObjectName> {
    let namespaces = match given(namespace) {
        Some(namespace) => vec![Some(namespace)],
        None => vec![None, Some(DEFAULT_NAMESPACE)],
    };
    let names = namespaces.into_iter();
    names
        .map(|namespace| ObjectName::new(namespace, name))
        .collect()
}

/// Names the object as the first of these controllers does.
pub(crate) fn named(controllers: &[&Keyed], query: &WhyQuery) -> String {
    let namespaced = controllers.iter().any(|keyed| keyed.namespaced);
    let namespace = given(&query.namespace).or(namespaced.then_some(DEFAULT_NAMESPACE));
    let kind = controllers
        .first()
        .map_or("", |keyed| keyed.kind.kind.as_str());
    format!("{kind} {}", ObjectName::new(namespace, &query.name))
}

/// Checks the label of a controller. With a wrong label, a list would be empty and a stream silent.
fn of_label(asked: Option<&str>, running: &Running) -> Result<Option<String>, Refused> {
    let mut labels = running.controllers.iter().map(|keyed| &*keyed.controller);
    match asked {
        Some(asked) if !labels.any(|label| label == asked) => Err(Refused::NoController {
            asked: asked.to_owned(),
            known: running.labels(),
        }),
        asked => Ok(asked.map(str::to_owned)),
    }
}

fn of_kind<'a>(asked: &str, running: &'a Running) -> Result<Vec<&'a Keyed>, Refused> {
    let found = running.of_kind(asked);
    match found.is_empty() {
        true => Err(Refused::NoKind {
            asked: asked.to_owned(),
            known: running.kinds(),
        }),
        false => Ok(found),
    }
}

/// Returns the value of a parameter. An empty value counts as missing.
fn given(parameter: &Option<String>) -> Option<&str> {
    parameter.as_deref().filter(|text| !text.is_empty())
}

fn kinds_of(controllers: &[&Keyed]) -> Vec<Gvk> {
    controllers.iter().map(|keyed| keyed.kind.clone()).collect()
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotATime(_) => StatusCode::BAD_REQUEST,
            Self::NoKind { .. } | Self::NoController { .. } | Self::NoTurn { .. } => {
                StatusCode::NOT_FOUND
            }
        };
        (status, format!("{self}\n")).into_response()
    }
}

#[cfg(test)]
mod tests;
