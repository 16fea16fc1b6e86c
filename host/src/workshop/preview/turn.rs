//! One turn of a key: the finalizer's step or the call, its effects, and what becomes of the key.
//! This module must not know how an effect is carried out.
//!
//! A turn follows the rules of a running host, but nothing waits for time to pass: a key that would
//! be retried after some time is retried as soon as something has changed.

use std::sync::Arc;

use vmhost_core::trace::Asked;
use vmhost_core::{Effect, Next, ObjectName, Outcome, Refusal, Request, Snapshot, Trace};
use vmhost_runtime::journal::shown::Saw;
use vmhost_runtime::turn::finalizer::{self, NOT_DELETING, Phase, phase};
use vmhost_runtime::turn::verdict::Verdict;

use super::carry::Carried;
use super::keys::State;
use super::stage::{Desk, Stage, Turn};

/// A requeue of fewer milliseconds counts as immediate, as for a running host.
const AT_ONCE: u32 = 100;

/// How a turn ended.
struct Ended {
    /// Whether it changed an object.
    changed: bool,
    then: Then,
}

/// What becomes of the key.
enum Then {
    /// It waits for a change.
    Rest,
    /// It is requeued after a time.
    Later,
    /// It asks for another turn.
    Again,
    /// It failed; `what` says how in one word, and `text` in a sentence.
    Failed {
        what: &'static str,
        text: String,
        refusal: Option<Refusal>,
        /// Whether a running host would retry it soon.
        retried: bool,
    },
}

impl Stage {
    /// Runs one turn of a key.
    pub(super) async fn turn(&mut self, desk: Arc<Desk>, name: &ObjectName) {
        let state = self.keys.state(&(desk.at, name.clone())).clone();
        let object = desk.view.snapshot(name);
        let previous = state.previous.clone().filter(|_| desk.previous);
        let replaced =
            matches!((&previous, &object), (Some(old), Some(new)) if old.uid() != new.uid());
        let mut turn = Turn {
            desk,
            key: name.clone(),
            object: object.filter(|_| !replaced),
            saw: Saw::default(),
        };
        let finalizer = turn.desk.finalizer.as_deref();
        let ended = match phase(finalizer, &turn.desk.kind, turn.object.as_ref()) {
            Phase::Leave => Ended {
                changed: false,
                then: Then::Rest,
            },
            Phase::Add(effect) => {
                let carried = self.carry_out(&turn, &[], Some(&effect)).await;
                ended(carried, Then::Again)
            }
            Phase::Call { deleting } => self.call(&mut turn, &state, previous, deleting).await,
        };
        self.conclude(&turn, ended, replaced);
    }

    /// Calls the plugin and carries out what it returns.
    async fn call(
        &mut self,
        turn: &mut Turn,
        state: &State,
        previous: Option<Snapshot>,
        deleting: bool,
    ) -> Ended {
        let request = Request {
            controller: &turn.desk.name,
            kind: &turn.desk.kind,
            name: &turn.key,
            object: turn.object.clone(),
            previous: previous.clone(),
            deleting,
            attempt: state.attempt,
            last: state.last.as_ref(),
        };
        let mut trace = Trace::default();
        let reader = turn.desk.view.clone();
        let called = self.plugin.call(&request, reader, &mut trace, || {}).await;
        self.called(called.as_ref().err());
        turn.saw = self.saw(turn, previous, &trace);
        let Outcome { effects, mut next } = match called {
            Ok(outcome) => outcome,
            Err(error) => {
                let then = Then::Failed {
                    what: error.kind(),
                    text: error.to_string(),
                    refusal: None,
                    retried: true,
                };
                return Ended {
                    changed: false,
                    then,
                };
            }
        };
        let own = removal(turn, &next, deleting).unwrap_or_else(|reason| {
            next = Next::Fail(reason.into());
            None
        });
        let carried = self.carry_out(turn, &effects, own.as_ref()).await;
        ended(carried, then(next))
    }

    /// Returns what a turn has read that may hold sensitive values.
    fn saw(&self, turn: &Turn, previous: Option<Snapshot>, trace: &Trace) -> Saw {
        let hide = &self.options.hide;
        let mut saw = Saw {
            objects: Vec::new(),
            more: trace.cut && self.reads_sensitive(),
        };
        if hide.concerns(&turn.desk.kind) {
            let own = turn.object.iter().cloned().chain(previous);
            let own = own.map(|object| (turn.desk.kind.clone(), object));
            saw.objects.extend(own);
        }
        for read in &trace.reads {
            match &read.asked {
                Asked::Get(kind, _, Ok(Some(object))) if hide.concerns(kind) => {
                    saw.objects.push((kind.clone(), object.clone()));
                }
                Asked::List(query, Ok(page)) if hide.concerns(&query.kind) => {
                    let objects = page.objects.iter().cloned();
                    let objects = objects.map(|object| (query.kind.clone(), object));
                    saw.objects.extend(objects);
                }
                _ => {}
            }
        }
        saw
    }

    /// Returns whether the plugin may read a kind with sensitive values.
    fn reads_sensitive(&self) -> bool {
        let controllers = self.plugin.description().controllers.iter();
        let mut kinds = controllers.flat_map(|controller| controller.kinds());
        kinds.any(|(_, watched)| self.options.hide.concerns(&watched.gvk()))
    }

    /// Notes how a turn ended, and when its key runs again.
    fn conclude(&mut self, turn: &Turn, ended: Ended, replaced: bool) {
        let key = turn.whole_key();
        let Ended { changed, then } = ended;
        let seen = turn.object.clone().filter(|_| turn.desk.previous);
        let state = self.keys.state(&key);
        state.changed = changed;
        state.last = None;
        match &then {
            Then::Rest | Then::Later => {
                state.attempt = 0;
                state.previous = seen;
            }
            Then::Again => {}
            Then::Failed { refusal, .. } => {
                state.attempt = state.attempt.saturating_add(1);
                state.last = refusal.clone();
            }
        }
        self.found.problems.remove(&key);
        self.found.later.remove(&key);
        let again = match then {
            Then::Rest => false,
            Then::Later => {
                self.found.later.insert(key.clone());
                false
            }
            Then::Again => true,
            Then::Failed {
                what,
                text,
                retried,
                ..
            } => {
                self.fails(turn, what, text);
                retried
            }
        };
        if replaced || (again && changed) {
            self.keys.add(key);
        } else if again {
            self.keys.park(key);
        }
    }
}

/// Returns what the plugin asks for.
fn then(next: Next) -> Then {
    let failed = |what, text: &str, retried| Then::Failed {
        what,
        text: vmhost_core::cut(text, 4096).to_owned(),
        refusal: None,
        retried,
    };
    match next {
        Next::AwaitChange | Next::Finalized => Then::Rest,
        Next::RequeueAfterMs(after) if after < AT_ONCE => Then::Again,
        Next::RequeueAfterMs(_) => Then::Later,
        Next::Requeue => Then::Again,
        Next::Retry(message) => failed("retry", &message, true),
        Next::Fail(message) => failed("fail", &message, false),
    }
}

/// Returns how a turn ended after its effects. `next` applies only if all of them were carried out.
fn ended(carried: Carried, next: Then) -> Ended {
    let changed = carried.changed;
    let Some(stop) = carried.stop else {
        return Ended {
            changed,
            then: next,
        };
    };
    let then = match stop.verdict {
        Verdict::Done | Verdict::Gone | Verdict::Ended => Then::Rest,
        verdict => Then::Failed {
            what: "refused",
            text: format!("cannot {}: {}", stop.what, stop.refusal.message),
            refusal: Some(stop.refusal),
            retried: !matches!(verdict, Verdict::Terminal | Verdict::Forbidden),
        },
    };
    Ended { changed, then }
}

/// Returns the write that removes the finalizer, if the plugin says that it has cleaned up.
fn removal(turn: &Turn, next: &Next, deleting: bool) -> Result<Option<Effect>, &'static str> {
    if *next != Next::Finalized {
        return Ok(None);
    }
    let finalizer = turn.desk.finalizer.as_deref();
    match (finalizer, &turn.object) {
        (Some(finalizer), Some(object)) if deleting => {
            Ok(finalizer::removal(finalizer, &turn.desk.kind, object))
        }
        _ => Err(NOT_DELETING),
    }
}
