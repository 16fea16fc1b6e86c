//! What a question about turns means: the parameters of a query, checked against the running
//! controllers, and why a question is refused. It must not know the journal.

use std::time::{Duration, SystemTime};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use vmhost_core::{Gvk, ObjectName};

use super::questions::{TurnsQuery, WhyQuery};
use super::running::{Keyed, Running};
use super::wanted::Wanted;

/// The namespace of an object that is named without one, as for kubectl.
const DEFAULT_NAMESPACE: &str = "default";

/// Why a question has no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// The host ends.
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
    /// Nothing is recorded about the object.
    #[error("no turn of {object} is recorded: {why}")]
    NoTurn { object: String, why: &'static str },
}

/// What a query for turns asks for.
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
        controller: given(&query.controller).map(str::to_owned),
        keys: given(&query.key).map(|key| vec![key.to_owned()]),
        kinds,
        failed: query.failed,
        slow: Duration::from_millis(query.slow.unwrap_or_default()),
        since,
    })
}

/// What a query for one key's story asks for.
pub(crate) fn wanted_of(query: &WhyQuery, running: &Running) -> Result<Wanted, Refused> {
    let (controllers, names) = meant(query, running)?;
    Ok(Wanted {
        keys: Some(names.iter().map(ToString::to_string).collect()),
        kinds: Some(kinds_of(&controllers)),
        ..Wanted::default()
    })
}

/// The controllers and the names that a query means: without a namespace, a cluster-scoped object
/// or one in the default namespace.
pub(crate) fn meant<'a>(
    query: &WhyQuery,
    running: &'a Running,
) -> Result<(Vec<&'a Keyed>, Vec<ObjectName>), Refused> {
    let controllers = of_kind(&query.kind, running)?;
    let namespaces = match given(&query.namespace) {
        Some(namespace) => vec![Some(namespace)],
        None => vec![None, Some(DEFAULT_NAMESPACE)],
    };
    let names = namespaces
        .into_iter()
        .map(|namespace| ObjectName::new(namespace, &query.name));
    Ok((controllers, names.collect()))
}

/// The object in words, as the first of these controllers names it.
pub(crate) fn named(controllers: &[&Keyed], query: &WhyQuery) -> String {
    let namespaced = controllers.iter().any(|keyed| keyed.namespaced);
    let namespace = given(&query.namespace).or(namespaced.then_some(DEFAULT_NAMESPACE));
    let kind = controllers
        .first()
        .map_or("", |keyed| keyed.kind.kind.as_str());
    format!("{kind} {}", ObjectName::new(namespace, &query.name))
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

/// The value of a parameter. An empty one counts as none.
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
            Self::NoKind { .. } | Self::NoTurn { .. } => StatusCode::NOT_FOUND,
        };
        (status, format!("{self}\n")).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Running {
        Running {
            leading: true,
            controllers: vec![Keyed {
                controller: "vm".into(),
                started: true,
                kind: Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
                plural: "virtualmachines".into(),
                namespaced: true,
                reads_sensitive: false,
            }],
        }
    }

    fn query(kind: &str, namespace: Option<&str>) -> WhyQuery {
        WhyQuery {
            kind: kind.into(),
            namespace: namespace.map(str::to_owned),
            name: "x".into(),
            follow: false,
        }
    }

    #[test]
    fn a_name_alone_may_be_in_the_default_namespace() {
        let keys = |namespace| {
            let query = query("virtualmachine", namespace);
            wanted_of(&query, &running()).unwrap().keys.unwrap()
        };
        assert_eq!(keys(Some("a")), ["a/x"]);
        assert_eq!(keys(Some("")), ["x", "default/x"]);
        assert_eq!(keys(None), ["x", "default/x"]);
        let running = running();
        let (controllers, _) = meant(&query("virtualmachine", None), &running).unwrap();
        let text = named(&controllers, &query("virtualmachine", None));
        assert_eq!(text, "VirtualMachine default/x");
    }

    #[test]
    fn an_unknown_kind_is_refused_with_the_known_ones() {
        let refused = wanted_of(&query("vm", None), &running()).unwrap_err();
        let text = refused.to_string();
        for word in [
            "\"vm\"",
            "virtualmachines (VirtualMachine.v1.cloud.waibizi.com)",
        ] {
            assert!(text.contains(word), "{text}");
        }
        assert_eq!(refused.into_response().status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn a_list_is_asked_for_by_text() {
        let asked = TurnsQuery {
            controller: Some(String::new()),
            kind: Some("VirtualMachine".into()),
            slow: Some(20),
            since: Some("1970-01-01T00:00:01Z".into()),
            ..TurnsQuery::default()
        };
        let asked = wanted(&asked, &running()).unwrap();
        assert_eq!(asked.controller, None);
        assert_eq!(asked.kinds.unwrap().len(), 1);
        assert_eq!(asked.slow, Duration::from_millis(20));
        let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        assert_eq!(asked.since, Some(second));
        let bad = TurnsQuery {
            since: Some("yesterday".into()),
            ..TurnsQuery::default()
        };
        let refused = wanted(&bad, &running()).unwrap_err();
        assert_eq!(refused, Refused::NotATime("yesterday".into()));
    }
}
