//! Chooses records of the journal for a list or a stream of turns. This module must not know
//! documents.

use std::time::{Duration, Instant, SystemTime};

use vmhost_core::{Gvk, ObjectName};

use crate::journal::Journal;
use crate::journal::record::{Origin, Quiet, TurnRecord};

/// A record of one turn, or of several quiet ones.
pub(crate) enum Record {
    Turn(Box<TurnRecord>),
    Quiet(Box<Quiet>),
}

/// The records that a question asks for. A field that is `None` excludes no record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Those of this controller.
    pub(crate) controller: Option<String>,
    /// Those of one of these keys.
    pub(crate) keys: Option<Vec<String>>,
    /// Those of one of these kinds.
    pub(crate) kinds: Option<Vec<Gvk>>,
    /// Those of keys that contain this text.
    pub(crate) text: Option<String>,
    /// Only failed turns.
    pub(crate) failed: bool,
    /// Those that took at least this long.
    pub(crate) slow: Duration,
    /// Those that began at this time or later.
    pub(crate) since: Option<SystemTime>,
}

impl Record {
    /// What all turns of the controller share.
    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::Turn(turn) => &turn.origin,
            Self::Quiet(quiet) => &quiet.origin,
        }
    }

    /// The key.
    pub(crate) fn key(&self) -> &ObjectName {
        match self {
            Self::Turn(turn) => &turn.key,
            Self::Quiet(quiet) => &quiet.key,
        }
    }

    /// When the turn, or the last of the quiet ones, began.
    pub(crate) fn began(&self) -> Instant {
        match self {
            Self::Turn(turn) => turn.began,
            Self::Quiet(quiet) => quiet.began,
        }
    }

    fn took(&self) -> Duration {
        match self {
            Self::Turn(turn) => turn.took,
            Self::Quiet(quiet) => quiet.took,
        }
    }

    fn is_failure(&self) -> bool {
        matches!(self, Self::Turn(turn) if turn.is_failure())
    }
}

impl Wanted {
    /// The records of turns that ended after a time, in the order in which they began.
    pub(crate) fn of(&self, journal: &Journal, ended_after: Instant) -> Vec<Record> {
        let (turns, quiets) = journal.since(ended_after);
        let turns = turns.into_iter().map(|turn| Record::Turn(Box::new(turn)));
        let quiets = quiets.into_iter().map(|turn| Record::Quiet(Box::new(turn)));
        let mut records: Vec<Record> = turns
            .chain(quiets)
            .filter(|record| self.has(record, journal))
            .collect();
        records.sort_by_key(Record::began);
        records
    }

    fn has(&self, record: &Record, journal: &Journal) -> bool {
        let (origin, key) = (record.origin(), record.key().as_str());
        let controller = self.controller.as_deref();
        controller.is_none_or(|label| label == &*origin.controller)
            && is_among(self.keys.as_deref(), |wanted| wanted == key)
            && is_among(self.kinds.as_deref(), |kind| *kind == origin.kind)
            && self
                .text
                .as_ref()
                .is_none_or(|part| key.contains(part.as_str()))
            && (!self.failed || record.is_failure())
            && record.took() >= self.slow
            && self
                .since
                .is_none_or(|since| journal.time(record.began()) >= since)
    }
}

/// Returns whether one of the values satisfies the condition. `None` stands for all values.
fn is_among<T>(values: Option<&[T]>, is_meant: impl Fn(&T) -> bool) -> bool {
    values.is_none_or(|values| values.iter().any(is_meant))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use vmhost_core::Next;
    use vmhost_queue::Decision;

    use super::*;
    use crate::journal::record::Act;
    use crate::journal::tag::WakeTag;

    fn quiet(controller: &str, name: &str, took: u64) -> Quiet {
        let now = Instant::now();
        Quiet {
            origin: Arc::new(Origin {
                finalizer: None,
                controller: controller.into(),
                kind: Gvk::new("", "v1", "Pod"),
                field_manager: String::new(),
                generation: 1,
                digest: String::new(),
                cluster: BTreeMap::new(),
                settings: Default::default(),
            }),
            key: ObjectName::new(Some("default"), name),
            began: now,
            since: now,
            count: 1,
            took: Duration::from_millis(took),
            call: Duration::ZERO,
            wait: Duration::ZERO,
            tag: WakeTag::default(),
            version: None,
            act: Act::Returned(Next::AwaitChange),
            decision: Decision::Forget,
        }
    }

    #[test]
    fn records_are_chosen_by_all_conditions() {
        let journal = Journal::new(1 << 20, 1);
        let started = journal.time(Instant::now());
        let record = Record::Quiet(Box::new(quiet("vm", "x", 100)));
        let of = |kind: &str| Some(vec![Gvk::new("", "v1", kind)]);
        let later = SystemTime::now() + Duration::from_secs(3600);
        for (what, wanted, expected) in [
            ("all", Wanted::default(), true),
            (
                "its controller",
                Wanted {
                    controller: Some("vm".into()),
                    ..Wanted::default()
                },
                true,
            ),
            (
                "another",
                Wanted {
                    controller: Some("vms".into()),
                    ..Wanted::default()
                },
                false,
            ),
            (
                "its key",
                Wanted {
                    keys: Some(vec!["x".into(), "default/x".into()]),
                    ..Wanted::default()
                },
                true,
            ),
            (
                "another key",
                Wanted {
                    keys: Some(vec!["x".into()]),
                    ..Wanted::default()
                },
                false,
            ),
            (
                "a part of its key",
                Wanted {
                    text: Some("lt/x".into()),
                    ..Wanted::default()
                },
                true,
            ),
            (
                "a part of another key",
                Wanted {
                    text: Some("y".into()),
                    ..Wanted::default()
                },
                false,
            ),
            (
                "its kind",
                Wanted {
                    kinds: of("Pod"),
                    ..Wanted::default()
                },
                true,
            ),
            (
                "another kind",
                Wanted {
                    kinds: of("Node"),
                    ..Wanted::default()
                },
                false,
            ),
            (
                "failures",
                Wanted {
                    failed: true,
                    ..Wanted::default()
                },
                false,
            ),
            (
                "as slow",
                Wanted {
                    slow: Duration::from_millis(100),
                    ..Wanted::default()
                },
                true,
            ),
            (
                "slower",
                Wanted {
                    slow: Duration::from_millis(101),
                    ..Wanted::default()
                },
                false,
            ),
            (
                "since the start",
                Wanted {
                    since: Some(started),
                    ..Wanted::default()
                },
                true,
            ),
            (
                "later",
                Wanted {
                    since: Some(later),
                    ..Wanted::default()
                },
                false,
            ),
        ] {
            assert_eq!(wanted.has(&record, &journal), expected, "{what}");
        }
    }

    #[test]
    fn records_of_all_kinds_are_in_order() {
        let journal = Journal::new(1 << 20, 1);
        let start = Instant::now();
        for name in ["a", "b", "c"] {
            journal.quiet(quiet("vm", name, 1));
        }
        let records = Wanted::default().of(&journal, start);
        let times: Vec<Instant> = records.iter().map(Record::began).collect();
        assert!(times.is_sorted() && !times.is_empty(), "{times:?}");
    }
}
