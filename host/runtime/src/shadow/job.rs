//! A turn of the live version as its shadow needs it: the request, the answers to the call's
//! questions, and what the call returned. Plain data.
//!
//! This module must not know how a generation is made, or what becomes of the turn.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use vmhost_core::{Gvk, Next, ObjectName, Outcome, Refusal, Request, Snapshot, Trace};
use vmhost_engine::{CallError, Plugin, Told};

/// What a call returned.
pub(crate) type Called = Result<Outcome, CallError>;

/// The live version that ran a turn, and its controller.
pub(crate) trait Live: Send + Sync {
    /// The version.
    fn plugin(&self) -> &Plugin;
    /// The number of its generation.
    fn generation(&self) -> u64;
    /// The controller's name in the description.
    fn controller(&self) -> &str;
    /// The controller's label in metrics and records.
    fn label(&self) -> &Arc<str>;
    /// The kind of the controller's keys.
    fn kind(&self) -> &Gvk;
}

/// One turn of the live version.
pub(crate) struct Job {
    /// Shared with one worker only, so that the workers do not all count references in one place.
    pub(crate) live: Arc<dyn Live>,
    pub(crate) key: ObjectName,
    /// When the turn began.
    pub(crate) began: Instant,
    pub(crate) object: Option<Snapshot>,
    pub(crate) previous: Option<Snapshot>,
    pub(crate) deleting: bool,
    pub(crate) attempt: u32,
    pub(crate) last: Option<Refusal>,
    /// What the call asked, with the answers.
    pub(crate) trace: Trace,
    /// What the live version returned.
    pub(crate) called: Called,
}

impl Job {
    /// The bytes that the turn counts for: all its texts, including those that it shares with the
    /// store.
    pub(crate) fn bytes(&self) -> usize {
        let text =
            |object: &Option<Snapshot>| object.as_ref().map_or(0, |object| object.text.len());
        let returned = match &self.called {
            Ok(outcome) => {
                let next = match &outcome.next {
                    Next::Retry(text) | Next::Fail(text) => text.len(),
                    _ => 0,
                };
                let effects = outcome.effects.iter();
                let effects = effects.map(|effect| effect.text_bytes() + 512);
                effects.sum::<usize>() + next
            }
            Err(error) => error.to_string().len(),
        };
        let last = self.last.as_ref();
        let last = last.map_or(0, |last| last.reason.len() + last.message.len());
        size_of::<Self>()
            + self.key.as_str().len()
            + text(&self.object)
            + text(&self.previous)
            + self.trace.bytes()
            + last
            + returned
    }

    /// Returns the request as a version gets it. `has_previous` says whether the version asks for
    /// the previous object.
    pub(crate) fn request(&self, has_previous: bool) -> Request<'_> {
        Request {
            controller: self.live.controller(),
            kind: self.live.kind(),
            name: &self.key,
            object: self.object.clone(),
            previous: self.previous.clone().filter(|_| has_previous),
            deleting: self.deleting,
            attempt: self.attempt,
            last: self.last.as_ref(),
        }
    }

    /// Returns the clock readings and random numbers of the call. If the call did not read the wall
    /// clock, that shows the time at which the turn began.
    pub(crate) fn told(&self) -> Told {
        let began = || SystemTime::now().checked_sub(self.began.elapsed());
        let since_1970 = || began()?.duration_since(UNIX_EPOCH).ok();
        let nanos = || since_1970().map_or(0, |time| time.as_nanos() as u64);
        let start = self.trace.start.as_deref();
        Told {
            now: self.trace.drawn.wall.first().copied().unwrap_or_else(nanos),
            seed: start.map(|start| start.seed),
            start: start.map(|start| start.drawn.clone()).unwrap_or_default(),
            call: self.trace.drawn.clone(),
        }
    }

    /// Returns whether some of the clock readings or random numbers of the call were too many to
    /// keep.
    pub(crate) fn lacks_draws(&self) -> bool {
        let at_start = self.trace.start.as_deref();
        self.trace.drawn.cut || at_start.is_some_and(|start| start.drawn.cut)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use vmhost_core::trace::{Drawn, Start};
    use vmhost_core::{Delete, Effect, Event, EventType, Object, ObjectKey};

    use super::*;

    pub(crate) struct NoPlugin {
        label: Arc<str>,
        kind: Gvk,
    }

    impl Live for NoPlugin {
        fn plugin(&self) -> &Plugin {
            unreachable!("no test calls it")
        }

        fn generation(&self) -> u64 {
            1
        }

        fn controller(&self) -> &str {
            "objects"
        }

        fn label(&self) -> &Arc<str> {
            &self.label
        }

        fn kind(&self) -> &Gvk {
            &self.kind
        }
    }

    /// Returns a turn of `default/x` of the kind Machine, with this object, that returned these
    /// effects.
    pub(crate) fn job(object: Option<&str>, effects: Vec<Effect>) -> Job {
        let key = ObjectName::new(Some("default"), "x");
        Job {
            live: Arc::new(NoPlugin {
                label: "test/objects".into(),
                kind: Gvk::new("example.com", "v1", "Machine"),
            }),
            object: object.map(|text| Object::with_text(key.clone(), "u", 1, text)),
            key,
            began: Instant::now(),
            previous: None,
            deleting: false,
            attempt: 0,
            last: None,
            trace: Trace::default(),
            called: Ok(Outcome {
                effects,
                next: Next::AwaitChange,
            }),
        }
    }

    #[test]
    fn its_texts_count() {
        let small = job(None, Vec::new()).bytes();
        let object = "x".repeat(10_000);
        let event = Effect::Event(Event {
            kind: EventType::Normal,
            reason: "Done".into(),
            action: String::new(),
            note: "n".repeat(5_000),
            related: None,
        });
        let large = job(Some(&object), vec![event]).bytes();
        assert!(large >= small + 15_000, "{large} {small}");
        let delete = Effect::Delete(Delete {
            key: ObjectKey {
                kind: Gvk::new("", "v1", "Pod"),
                name: ObjectName::new(None, &object),
            },
            uid: None,
            if_version: None,
            propagation: None,
        });
        assert!(job(None, vec![delete]).bytes() >= small + 10_000);
        let mut fails = job(None, Vec::new());
        fails.called = Ok(Outcome {
            effects: Vec::new(),
            next: Next::Fail(object.clone()),
        });
        fails.last = Some(Refusal {
            effect: 0,
            code: 422,
            reason: "Invalid".into(),
            message: object,
        });
        assert!(fails.bytes() >= small + 20_000);
    }

    #[test]
    fn the_clock_stands_where_the_call_saw_it_or_where_the_turn_began() {
        let mut job = job(None, Vec::new());
        let told = job.told();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let stood = Duration::from_nanos(told.now);
        assert!(stood <= now && now - stood < Duration::from_secs(60));
        assert_eq!(told.seed, None);
        job.trace.drawn.wall = vec![7, 8];
        job.trace.start = Some(Arc::new(Start {
            seed: 9,
            drawn: Drawn {
                random: vec![1],
                ..Drawn::default()
            },
        }));
        let told = job.told();
        assert_eq!((told.now, told.seed), (7, Some(9)));
        assert_eq!((told.start.random, told.call.wall), (vec![1], vec![7, 8]));
        assert!(!job.lacks_draws());
        job.trace.drawn.cut = true;
        assert!(job.lacks_draws());
    }

    #[test]
    fn only_who_asks_for_the_previous_object_gets_it() {
        let mut job = job(Some("{}"), Vec::new());
        job.previous = job.object.clone();
        assert!(job.request(true).previous.is_some());
        assert!(job.request(false).previous.is_none());
    }
}
