//! The questions that the admin address answers: their paths and parameters, and the answers that
//! no other module describes. The host parses a query, and a command writes one. Plain data. This
//! module must not know how a question is answered.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::journal::story::Turn;

/// The path of the state.
pub const STATE_PATH: &str = "/debug/state";

/// The path of the turns.
pub const TURNS_PATH: &str = "/turns";

/// The path of one key's story.
pub const WHY_PATH: &str = "/why";

/// The path of what the shadow would have done with one key.
pub const SHADOW_PATH: &str = "/shadow";

/// The path of the warnings.
pub const WARNINGS_PATH: &str = "/warnings";

/// The path of turns as cases.
pub const CASES_PATH: &str = "/cases";

/// `/debug/state`: the form of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateQuery {
    /// Send a stream of states as server-sent events, at most two a second, instead of one state.
    /// These states only contain the numbers of failing keys and of warnings, without names.
    pub follow: bool,
}

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
    /// Only turns of keys that contain this text in their `namespace/name`.
    pub text: Option<String>,
    /// Only turns that failed.
    pub failed: bool,
    /// Only turns that took at least this many milliseconds.
    pub slow: Option<u64>,
    /// Only turns that began at this time or later: `2026-01-31T12:00:00Z`.
    pub since: Option<String>,
    /// Only this many of the newest. Default: 1,000. With `follow`, at most this many every 250 ms,
    /// and an event `skipped` with the number of the others; there, the default is all.
    pub limit: Option<usize>,
    /// Send a stream of the turns that end from now on, as server-sent events, instead of the list.
    pub follow: bool,
}

/// `/why`: the object whose turns are listed.
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
    /// Only this many of the newest turns. Without it, all.
    pub limit: Option<usize>,
    /// Whether objects are left out, as in `/turns`.
    pub brief: bool,
    /// Send a stream of the turns that end from now on, as server-sent events, instead of the
    /// story.
    pub follow: bool,
}

/// `/cases`: which turns are written as cases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CasesQuery {
    /// Only turns of this kind, as in [`WhyQuery`].
    pub kind: Option<String>,
    /// The namespace of the object, as in [`WhyQuery`].
    pub namespace: Option<String>,
    /// Only turns of the object of this name.
    pub name: Option<String>,
    /// Only turns of this controller, by its label: `vm/virtualmachines`.
    pub controller: Option<String>,
    /// Only turns that failed.
    pub failed: bool,
    /// Only this many of the newest. Without it, 10.
    pub count: Option<usize>,
}

/// The answer to `/turns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Listed {
    /// The turns without objects, oldest first.
    pub turns: Vec<Turn>,
}

impl TurnsQuery {
    /// Returns the path with the query.
    pub fn path(&self) -> String {
        let flag = |on: bool| on.then(|| "true".to_owned());
        path(
            TURNS_PATH,
            [
                ("controller", self.controller.clone()),
                ("key", self.key.clone()),
                ("kind", self.kind.clone()),
                ("text", self.text.clone()),
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
    /// Returns the path with the query.
    pub fn path(&self) -> String {
        self.at(WHY_PATH)
    }

    /// Returns the path of what the shadow would have done with the same key.
    pub fn shadow_path(&self) -> String {
        self.at(SHADOW_PATH)
    }

    fn at(&self, at: &str) -> String {
        let flag = |on: bool| on.then(|| "true".to_owned());
        path(
            at,
            [
                ("kind", Some(self.kind.clone())),
                ("namespace", self.namespace.clone()),
                ("name", Some(self.name.clone())),
                ("limit", self.limit.map(|limit| limit.to_string())),
                ("brief", flag(self.brief)),
                ("follow", flag(self.follow)),
            ],
        )
    }
}

impl CasesQuery {
    /// Returns the path with the query.
    pub fn path(&self) -> String {
        path(
            CASES_PATH,
            [
                ("kind", self.kind.clone()),
                ("namespace", self.namespace.clone()),
                ("name", self.name.clone()),
                ("controller", self.controller.clone()),
                ("failed", self.failed.then(|| "true".to_owned())),
                ("count", self.count.map(|count| count.to_string())),
            ],
        )
    }
}

/// Joins a path and those parameters that have a value.
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
            text: Some("b c".into()),
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
            limit: Some(9),
            brief: true,
            follow: false,
        };
        for path in [why.path(), why.shadow_path()] {
            let uri = path.parse().unwrap();
            assert_eq!(Query::<WhyQuery>::try_from_uri(&uri).unwrap().0, why);
        }
        let cases = CasesQuery {
            kind: Some("Foo".into()),
            namespace: Some("a".into()),
            name: Some("x".into()),
            controller: Some("vm/virtualmachines".into()),
            failed: true,
            count: Some(2),
        };
        for query in [cases, CasesQuery::default()] {
            let uri = query.path().parse().unwrap();
            assert_eq!(Query::<CasesQuery>::try_from_uri(&uri).unwrap().0, query);
        }
    }

    #[test]
    fn an_unknown_parameter_is_refused() {
        for path in ["/turns?fialed=true", "/turns?slow=soon"] {
            let uri = path.parse().unwrap();
            assert!(Query::<TurnsQuery>::try_from_uri(&uri).is_err(), "{path}");
        }
    }
}
