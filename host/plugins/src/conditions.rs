//! The conditions of a `Plugin`, in the order of the steps that they stand for. Pure functions: the
//! caller brings the time. It must not know how a step is done.

use serde::{Deserialize, Serialize};

/// The types, in the order of the steps.
pub(crate) const TYPES: [&str; 6] = [
    "Pulled",
    "Verified",
    "Granted",
    "Loaded",
    "Progressing",
    "Available",
];

/// The most bytes of a message.
const MESSAGE: usize = 4096;

/// A condition, as in all Kubernetes objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) observed_generation: i64,
    pub(crate) last_transition_time: String,
}

/// What one look at a plugin found, by the condition's type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found(Vec<(&'static str, &'static str, &'static str, String)>);

/// Why a plugin goes no further, and the condition that says so.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// The condition's type.
    pub(crate) kind: &'static str,
    /// Its reason.
    pub(crate) reason: &'static str,
    /// What is wrong, and what to do.
    pub(crate) message: String,
}

impl Stop {
    /// A stop at this condition.
    pub(crate) fn at(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            reason,
            message: message.into(),
        }
    }
}

impl Found {
    /// A step that is done.
    pub(crate) fn done(&mut self, kind: &'static str, reason: &'static str, message: String) {
        self.set(kind, "True", reason, message);
    }

    /// A step that is not done.
    pub(crate) fn not(&mut self, kind: &'static str, reason: &'static str, message: String) {
        self.set(kind, "False", reason, message);
    }

    /// Takes over what another look at a part found.
    pub(crate) fn extend(&mut self, other: Self) {
        for (kind, status, reason, message) in other.0 {
            self.set(kind, status, reason, message);
        }
    }

    fn set(
        &mut self,
        kind: &'static str,
        status: &'static str,
        reason: &'static str,
        message: String,
    ) {
        self.0.retain(|(other, ..)| *other != kind);
        self.0.push((kind, status, reason, message));
    }

    /// The reason and the message of the first step that is not done.
    pub(crate) fn trouble(&self) -> Option<String> {
        let mut steps = TYPES.iter().filter(|kind| **kind != "Available");
        steps.find_map(|kind| {
            let mut found = self.0.iter();
            let (.., reason, message) =
                found.find(|(other, status, ..)| other == kind && *status == "False")?;
            Some(format!("{reason}: {message}"))
        })
    }

    /// The conditions that come of what was found, of those before, and of the time now. Those of
    /// steps that were not reached are unknown. A condition keeps its time while its status stays.
    pub(crate) fn conditions(
        &self,
        before: &[Condition],
        generation: i64,
        now: &str,
    ) -> Vec<Condition> {
        let of = |kind: &&'static str| {
            let found = self.0.iter().find(|(other, ..)| other == kind);
            let (status, reason, message) = match found {
                Some((_, status, reason, message)) => (*status, *reason, message.as_str()),
                None => ("Unknown", "NotReached", "an earlier step has not succeeded"),
            };
            let before = before.iter().find(|other| other.kind == **kind);
            let since = before
                .filter(|before| before.status == status && !before.last_transition_time.is_empty())
                .map_or(now, |before| before.last_transition_time.as_str());
            Condition {
                kind: (*kind).to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: vmhost_core::cut(message, MESSAGE).to_owned(),
                observed_generation: generation,
                last_transition_time: since.to_owned(),
            }
        };
        TYPES.iter().map(of).collect()
    }
}

/// The conditions that are news: another status or reason than before.
pub(crate) fn news<'a>(before: &[Condition], now: &'a [Condition]) -> Vec<&'a Condition> {
    let is_news = |condition: &&Condition| {
        let mut before = before.iter();
        let old = before.find(|old| old.kind == condition.kind);
        condition.status != "Unknown"
            && old
                .is_none_or(|old| old.status != condition.status || old.reason != condition.reason)
    };
    now.iter().filter(is_news).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let mut found = Found::default();
        found.done("Pulled", "Pulled", String::new());
        found.not("Granted", "Denied", "delete Secret.v1".to_owned());
        let first = found.conditions(&[], 1, "then");
        assert_eq!(first.len(), TYPES.len());
        assert_eq!(first[2].message, "delete Secret.v1");
        assert_eq!(first[3].status, "Unknown");
        let trouble = found.trouble().unwrap();
        assert_eq!(trouble, "Denied: delete Secret.v1");
        assert_eq!(news(&[], &first).len(), 2);
        found.done("Granted", "Granted", String::new());
        let mut idle = found.clone();
        idle.not("Available", "NotRunning", String::new());
        assert_eq!(idle.trouble(), None);
        let second = found.conditions(&first, 2, "now");
        assert_eq!(second[0].last_transition_time, "then");
        assert_eq!(second[2].last_transition_time, "now");
        assert_eq!(second[2].observed_generation, 2);
        let kinds: Vec<&str> = news(&first, &second)
            .iter()
            .map(|of| of.kind.as_str())
            .collect();
        assert_eq!(kinds, ["Granted"]);
    }
}
