//! The questions that the admin address answers: their paths and parameters, and the answers that
//! no other module describes. Both ends use it: the host parses a query, a command writes one.
//! Plain data.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::journal::story::Turn;

/// The path of the state.
pub const STATE_PATH: &str = "/debug/state";

/// The path of the turns.
pub const TURNS_PATH: &str = "/turns";

/// The path of one key's story.
pub const WHY_PATH: &str = "/why";

/// The path of the warnings.
pub const WARNINGS_PATH: &str = "/warnings";

/// `/turns`: which turns are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnsQuery {
    /// Only turns of this controller, by its label: `vm/virtualmachines`.
    pub controller: Option<String>,
    /// Only turns of this key: `namespace/name`, or `name`.
    pub key: Option<String>,
    /// Only turns of this kind, as in [`WhyQuery`].
    pub kind: Option<String>,
    /// Only turns that failed.
    pub failed: bool,
    /// Only turns that took at least this many milliseconds.
    pub slow: Option<u64>,
    /// Only turns that began at this time or later: `2026-01-31T12:00:00Z`.
    pub since: Option<String>,
    /// Only this many of the newest. Without it, 1,000.
    pub limit: Option<usize>,
    /// Instead of the list, a stream of the turns that end from now on, as server-sent events.
    pub follow: bool,
}

/// `/why`: the object whose turns are told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhyQuery {
    /// The kind as kubectl takes it: `virtualmachines`, `virtualmachine`, `VirtualMachine`, each
    /// also with the group, or version and group, behind a dot.
    pub kind: String,
    /// The namespace. Without it, a cluster-scoped object, else one in `default`.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// Instead of the story, a stream of the turns that end from now on, as server-sent events.
    pub follow: bool,
}

/// The answer to `/turns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Listed {
    /// The turns without objects, oldest first.
    pub turns: Vec<Turn>,
}

impl TurnsQuery {
    /// The path with the query.
    pub fn path(&self) -> String {
        let flag = |on: bool| on.then(|| "true".to_owned());
        path(
            TURNS_PATH,
            [
                ("controller", self.controller.clone()),
                ("key", self.key.clone()),
                ("kind", self.kind.clone()),
                ("failed", flag(self.failed)),
                ("slow", self.slow.map(|ms| ms.to_string())),
                ("since", self.since.clone()),
                ("limit", self.limit.map(|limit| limit.to_string())),
                ("follow", flag(self.follow)),
            ],
        )
    }
}

impl WhyQuery {
    /// The path with the query.
    pub fn path(&self) -> String {
        path(
            WHY_PATH,
            [
                ("kind", Some(self.kind.clone())),
                ("namespace", self.namespace.clone()),
                ("name", Some(self.name.clone())),
                ("follow", self.follow.then(|| "true".to_owned())),
            ],
        )
    }
}

/// Joins a path and the parameters that are given.
fn path<const N: usize>(path: &str, parameters: [(&str, Option<String>); N]) -> String {
    let given = parameters
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let pairs: Vec<String> = given
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC)))
        .collect();
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::Query;

    use super::*;

    #[test]
    fn a_query_is_parsed_as_it_was_written() {
        let turns = TurnsQuery {
            controller: Some("vm/virtualmachines".into()),
            key: Some("a/b".into()),
            kind: Some("Foo.example.com".into()),
            failed: true,
            slow: Some(100),
            since: Some("2026-01-31T12:00:00.5+01:00".into()),
            limit: Some(3),
            follow: true,
        };
        for query in [turns, TurnsQuery::default()] {
            let uri = query.path().parse().unwrap();
            assert_eq!(Query::<TurnsQuery>::try_from_uri(&uri).unwrap().0, query);
        }
        let why = WhyQuery {
            kind: "Foo".into(),
            namespace: Some("a b&c=%".into()),
            name: "\u{e9}".into(),
            follow: false,
        };
        let uri = why.path().parse().unwrap();
        assert_eq!(Query::<WhyQuery>::try_from_uri(&uri).unwrap().0, why);
    }

    #[test]
    fn an_unknown_parameter_is_refused() {
        for path in ["/turns?fialed=true", "/turns?slow=soon"] {
            let uri = path.parse().unwrap();
            assert!(Query::<TurnsQuery>::try_from_uri(&uri).is_err(), "{path}");
        }
    }
}
