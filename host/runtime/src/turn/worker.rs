//! **Get, call, settle, done**: the hot path. One worker is one task on the guests' runtime. It
//! waits for keys and never for another worker. This module must not know how an effect is written,
//! or why a key is retried.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::{ObjectReader, Outcome, Request};
use vmhost_engine::CallError;
use vmhost_otlp::Tracer;
use vmhost_queue::Decision;

use crate::canary::end::Abort;
use crate::canary::score::Noted;
use crate::controller::Controller;
use crate::deploy::slot::Slot;
use crate::deploy::starts::Starting;
use crate::journal::Journal;
use crate::journal::record::{Act, Acts};
use crate::journal::tag::Cause;
use crate::lead::Leadership;
use crate::observe::metrics::controller::TurnResult;
use crate::observe::metrics::worker::WorkerMetrics;
use crate::observe::trace::reader::TracedReader;
use crate::rights::wait::Rights;
use crate::turn::conclude::{Conclusion, conclude, leave};
use crate::turn::decide::Ended;
use crate::turn::desks::Desks;
use crate::turn::draft::{Draft, End, record_pause};
use crate::turn::effects::{Effects, Settled};
use crate::turn::finalizer::{Phase, phase};
use crate::turn::{Desk, PAUSE_STEP, PUT_OFF, Turn};

mod next;

/// One worker of a controller.
#[derive(Clone)]
pub(crate) struct Worker {
    /// The slot of the plugin.
    pub(crate) slot: Arc<Slot>,
    /// The controller whose keys the worker processes.
    pub(crate) controller: Arc<Controller>,
    /// Carries out the effects that the plugin returns.
    pub(crate) effects: Arc<Effects>,
    /// Wakes keys whose writes are forbidden.
    pub(crate) rights: Arc<Rights>,
    /// Tells whether this host may take keys.
    pub(crate) leadership: Arc<Leadership>,
    /// Keeps a record of each turn.
    pub(crate) journal: Arc<Journal>,
    /// Exports the traces of turns. `None` if none are exported.
    pub(crate) tracer: Option<Tracer>,
}

impl Worker {
    /// Processes keys until the queue is shut down, or until the controller is not part of the
    /// plugin any more.
    pub(crate) async fn run(self) {
        let Self {
            slot, controller, ..
        } = &self;
        if self.leads().await.is_none() {
            return;
        }
        // The host may be ending instead, or have another controller in its place.
        if self.leadership.is_leading() && slot.current().sources(controller).is_some() {
            controller.tell_of_start();
        }
        let mut metrics = WorkerMetrics::new(&controller.metrics);
        let mut kept: Option<Desks> = None;
        let mut draft: Option<Box<Draft>> = None;
        loop {
            let lease = match self.ready() {
                Some(lease) => lease,
                None => {
                    // The worker may wait long, so it hands its metrics over and releases an old
                    // generation first.
                    metrics.flush();
                    (kept, draft) = (None, None);
                    match self.next().await {
                        Some(lease) => lease,
                        None => return,
                    }
                }
            };
            // With a full queue and a fast plugin this task would never yield: let other tasks use
            // the thread now and then.
            tokio::task::coop::consume_budget().await;
            // Begins after `get`, so that no call starts under an older line-up after a newer one
            // was announced.
            let (desk, seen, starting) = loop {
                let desks = match &kept {
                    Some(desks) => desks,
                    None => match Desks::new(slot.lineup(), controller) {
                        Some(desks) => kept.insert(desks),
                        // The controller's successor finds the key in the queue.
                        None => return lease.finish(Decision::Postpone(Duration::ZERO)),
                    },
                };
                let (desk, seen) = desks.of(lease.key());
                if let Some(starting) = slot.begin(&desks.lineup) {
                    break (desk, seen, starting);
                }
                kept = None;
            };
            let began = Instant::now();
            if let Some(rest) = controller.memory.rest(lease.key()) {
                record_pause(&self.journal, desk, &lease, began, Act::Held(rest));
                lease.finish(Decision::Postpone(rest));
                continue;
            }
            if let Some(pause) = desk.breaker().pause() {
                drop(starting);
                record_pause(&self.journal, desk, &lease, began, Act::Paused(pause));
                if desk.part.is_some() {
                    // During a canary, the keys of the other version must not wait for this worker.
                    lease.finish(Decision::Postpone(pause.min(PUT_OFF)));
                    continue;
                }
                // The worker sleeps here, in steps that a shutdown can interrupt. If the key went
                // around through the queue instead, the thread would stay busy.
                tokio::time::sleep(pause.min(PAUSE_STEP)).await;
                lease.finish(Decision::Postpone(Duration::ZERO));
                continue;
            }
            let mut turn = Turn::at(desk, lease.key(), seen);
            if let Some(tracer) = &self.tracer {
                turn.trace(tracer);
            }
            let reconcile = turn.reconcile.clone();
            let draft = match &mut draft {
                Some(draft) => {
                    draft.reset(&lease, began);
                    draft
                }
                None => draft.insert(Box::new(Draft::new(&lease, began))),
            };
            // Boxed while it runs: thousands of workers wait for a key, and few have one.
            let turn = Box::pin(self.turn(turn, starting, draft, &mut metrics));
            let end = reconcile.scope(turn).await;
            controller.arm_timer(lease.key());
            metrics.turn(lease.wait(), (began, end.at), end.result);
            let tried = desk.candidate().map(|_| lease.key().clone());
            lease.finish(end.decision);
            if let Some(key) = tried
                && desk.is_taken_back()
            {
                // The canary may have ended after the end of this turn was decided, and its keys
                // may have been put back by then. The live version must not wait for the
                // candidate's back-off.
                controller.forgive_these(&[key]);
            }
        }
    }

    async fn turn(
        &self,
        mut turn: Turn,
        starting: Starting<'_>,
        draft: &mut Draft,
        metrics: &mut WorkerMetrics,
    ) -> End {
        let finalizer = turn.desk.sources.description().finalizer.as_deref();
        match phase(finalizer, &turn.desk.controller.kind, turn.object.as_ref()) {
            Phase::Call { deleting } => {
                turn.deleting = deleting;
                let began = Instant::now();
                let called = call(&turn, starting, draft).await;
                draft.called(began);
                metrics.call(draft.call);
                let shadow = &self.slot.shadow;
                shadow.offer(|| draft.for_shadow(&turn, &called));
                let turn = Arc::new(turn);
                let Settled { ended, busy, acts } = match called {
                    Ok(outcome) => {
                        draft.returned(&outcome);
                        self.effects.settle(&turn, outcome).await
                    }
                    Err(error) => {
                        draft.broke(&error);
                        Settled {
                            ended: Ended::NoOutcome(error),
                            busy: false,
                            acts: Acts::default(),
                        }
                    }
                };
                let conclusion = conclude(&self.rights, &turn, ended, busy);
                self.tell_successor(&turn);
                self.finish(draft, &turn, acts, conclusion)
            }
            Phase::Add(effect) => {
                // No call starts here, so a swap need not wait for this write.
                drop(starting);
                let turn = Arc::new(turn);
                let Settled { ended, busy, acts } = self.effects.prepare(&turn, effect).await;
                let conclusion = conclude(&self.rights, &turn, ended, busy);
                draft.act = Act::AddedFinalizer;
                self.finish(draft, &turn, acts, conclusion)
            }
            Phase::Leave => {
                draft.act = Act::Left;
                self.finish(draft, &turn, Acts::default(), leave(&turn))
            }
        }
    }

    /// Records the turn, and aborts the canary if the turn shows that its candidate is worse.
    fn finish(&self, draft: &mut Draft, turn: &Turn, acts: Acts, conclusion: Conclusion) -> End {
        if let Some(part) = &turn.desk.part
            && let Some(breach) = part.note(&turn.key, noted(draft, &conclusion))
        {
            self.slot.abort(&part.canary, Abort::Score(breach));
        }
        let end = End {
            decision: conclusion.decision,
            result: conclusion.result,
            at: Instant::now(),
        };
        draft.finish(&self.journal, turn, acts, end, conclusion.message);
        end
    }

    /// If the generation of this turn was replaced meanwhile, enqueues a deleted object's key
    /// again, so that the new code sees the deletion too: the swap has requeued only keys of
    /// existing objects.
    fn tell_successor(&self, turn: &Turn) {
        let Desk {
            generation,
            controller,
            ..
        } = &*turn.desk;
        // The key of an aborted candidate is put back, and the new version must not go on from the
        // snapshot that this turn saw. The abort comes before the generation is gone.
        if turn.object.is_some() || self.slot.runs(generation) || turn.desk.is_taken_back() {
            return;
        }
        if let Some(previous) = &turn.previous {
            controller.memory.saw(&turn.key, Some(previous));
        }
        let keys = [turn.key.clone()];
        self.slot.again(controller, &keys, Cause::Swap, |_| {});
    }
}

/// Returns what the end of a turn shows about the version that ran it.
fn noted(draft: &Draft, conclusion: &Conclusion) -> Noted {
    let is_terminal = conclusion.result == TurnResult::Terminal;
    Noted {
        failed: is_terminal || conclusion.result == TurnResult::Error,
        broke: draft.broke.or(is_terminal.then_some("terminal failure")),
        hot: conclusion.hot,
    }
}

/// Calls the plugin, and records the result for the generation's circuit breaker.
async fn call(
    turn: &Turn,
    starting: Starting<'_>,
    draft: &mut Draft,
) -> Result<Outcome, CallError> {
    let Desk {
        generation,
        controller,
        ..
    } = &*turn.desk;
    let failing = controller.memory.failing(&turn.key);
    if let Some(failing) = failing {
        (draft.attempt, draft.last) = (failing.attempt, failing.last);
    }
    let request = Request {
        controller: &controller.name,
        kind: &controller.kind,
        name: &turn.key,
        object: turn.object.clone(),
        previous: turn.previous.clone(),
        deleting: turn.deleting,
        attempt: draft.attempt,
        last: draft.last.as_ref(),
    };
    let reader: Arc<dyn ObjectReader> = match &turn.reconcile.trace {
        None => turn.desk.clone(),
        Some(trace) => Arc::new(TracedReader::new(turn.desk.clone(), trace.clone())),
    };
    let called = generation
        .plugin
        .call(&request, reader, &mut draft.trace, || {
            drop(starting);
        })
        .await;
    match &called {
        Ok(_) => turn.desk.call_succeeded(),
        // A full pool is not the plugin's fault.
        Err(CallError::Busy(_)) => {}
        Err(_) => {
            if let Some(pause) = turn.desk.call_failed() {
                let place = controller.member.as_ref();
                let place =
                    place.map_or_else(String::new, |of| format!(" for cluster {}", of.name));
                let note = format!("all calls of the plugin{place} fail; pausing it for {pause:?}");
                let plugin = &generation.description().name;
                tracing::error!(plugin, "{note}");
                controller.metrics.breaker_opened();
                turn.warn("PluginPaused", note);
            }
        }
    }
    called
}
