//! HOT PATH: get, call, settle, done. One worker is one task on the guests' runtime; it waits for a
//! key and never for another worker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::{ObjectName, Outcome, Request};
use vmhost_engine::CallError;
use vmhost_queue::{Decision, Lease};

use crate::controller::Controller;
use crate::deploy::slot::Slot;
use crate::deploy::starts::Starting;
use crate::lead::Leadership;
use crate::observe::metrics::worker::WorkerMetrics;
use crate::rights::wait::Rights;
use crate::turn::conclude::{Conclusion, conclude, leave};
use crate::turn::decide::Ended;
use crate::turn::effects::{Effects, Settled};
use crate::turn::finalizer::{Phase, phase};
use crate::turn::{Desk, PAUSE_STEP, STANDBY_STEP, Turn};

/// What one worker works with.
#[derive(Clone)]
pub struct Worker {
    /// The plugin.
    pub slot: Arc<Slot>,
    /// The controller whose keys it takes.
    pub controller: Arc<Controller>,
    /// Carries out what the policy returns.
    pub effects: Arc<Effects>,
    /// Wakes keys whose writes are not allowed.
    pub rights: Arc<Rights>,
    /// Says whether this host may take keys.
    pub leadership: Arc<Leadership>,
}

impl Worker {
    /// Works on keys until the queue is shut down, or until the controller is not part of the plugin
    /// any more.
    pub async fn run(self) {
        let Self {
            slot, controller, ..
        } = &self;
        let mut metrics = WorkerMetrics::new(&controller.metrics);
        let mut kept: Option<Arc<Desk>> = None;
        loop {
            let lease = match self.ready() {
                Some(lease) => lease,
                None => {
                    // It may wait for long: what others look at is handed over, and an old
                    // generation is not held.
                    metrics.flush();
                    kept = None;
                    match self.next().await {
                        Some(lease) => lease,
                        None => return,
                    }
                }
            };
            // Neither a full queue nor a quick policy ever makes this task wait: let others have the
            // thread now and then.
            tokio::task::coop::consume_budget().await;
            // Begun after `get`: no call starts on an older generation after a newer one was
            // announced.
            let (desk, starting) = loop {
                let desk = match &kept {
                    Some(desk) => desk,
                    None => match Desk::new(slot.current(), controller) {
                        Some(desk) => kept.insert(desk),
                        // Its successor finds the key in the queue.
                        None => return lease.finish(Decision::Postpone(Duration::ZERO)),
                    },
                };
                if let Some(starting) = slot.begin(&desk.generation) {
                    break (desk, starting);
                }
                kept = None;
            };
            if let Some(rest) = controller.memory.rest(lease.key()) {
                lease.finish(Decision::Postpone(rest));
                continue;
            }
            if let Some(pause) = desk.generation.breaker.pause() {
                drop(starting);
                // Waited out here, in steps that a shutdown can end: a key that goes round the queue
                // instead would keep the thread busy.
                tokio::time::sleep(pause.min(PAUSE_STEP)).await;
                lease.finish(Decision::Postpone(Duration::ZERO));
                continue;
            }
            let began = Instant::now();
            let turn = Turn::new(desk.clone(), lease.key().clone());
            let reconcile = turn.reconcile.clone();
            // On the heap while it lasts: thousands of workers wait for a key, and few have one.
            let turn = Box::pin(self.turn(turn, starting, &mut metrics));
            let (decision, result) = reconcile.scope(turn).await;
            controller.arm_timer(lease.key());
            metrics.turn(lease.wait(), began, result);
            lease.finish(decision);
        }
    }

    /// A key, if one is ready now and this host leads.
    fn ready(&self) -> Option<Lease<ObjectName>> {
        if !self.leadership.is_leading() {
            return None;
        }
        self.controller.queue.try_get()
    }

    /// The next key while this host leads. Without one, the worker ends.
    async fn next(&self) -> Option<Lease<ObjectName>> {
        loop {
            while !self.leadership.is_leading()
                && tokio::time::timeout(STANDBY_STEP, self.leadership.leads())
                    .await
                    .is_err()
            {
                // A swap may have replaced the controller meanwhile.
                self.slot.current().sources(&self.controller)?;
            }
            let lease = self.controller.queue.get().await?;
            if self.leadership.is_leading() {
                return Some(lease);
            }
            // It waited for a key, and does not lead any more.
            lease.finish(Decision::Postpone(Duration::ZERO));
        }
    }

    async fn turn(
        &self,
        mut turn: Turn,
        starting: Starting<'_>,
        metrics: &mut WorkerMetrics,
    ) -> Conclusion {
        let finalizer = turn.desk.sources.description().finalizer.as_deref();
        match phase(finalizer, &turn.desk.controller.kind, turn.object.as_ref()) {
            Phase::Call { deleting } => {
                turn.deleting = deleting;
                let began = Instant::now();
                let called = call(&turn, starting).await;
                metrics.call(began.elapsed());
                let turn = Arc::new(turn);
                let Settled { ended, busy } = match called {
                    Ok(outcome) => self.effects.settle(&turn, outcome).await,
                    Err(error) => Settled {
                        ended: Ended::NoOutcome(error),
                        busy: false,
                    },
                };
                let conclusion = conclude(&self.rights, &turn, ended, busy);
                self.tell_successor(&turn);
                conclusion
            }
            Phase::Add(effect) => {
                // No call starts here: a swap need not wait for this write.
                drop(starting);
                let turn = Arc::new(turn);
                let Settled { ended, busy } = self.effects.prepare(&turn, effect).await;
                conclude(&self.rights, &turn, ended, busy)
            }
            Phase::Leave => leave(&turn),
        }
    }

    /// An object that is gone is shown as gone to the code that runs now, too, if this turn's was
    /// replaced meanwhile: the swap has put back the keys of objects that are there.
    fn tell_successor(&self, turn: &Turn) {
        let Desk {
            generation,
            controller,
            ..
        } = &*turn.desk;
        if turn.object.is_some() || self.slot.is_current(generation) {
            return;
        }
        if let Some(previous) = &turn.previous {
            controller.memory.saw(&turn.key, Some(previous));
        }
        self.slot.again(controller, &turn.key);
    }
}

/// Calls the policy, and counts how the call ended for the generation's circuit breaker.
async fn call(turn: &Turn, starting: Starting<'_>) -> Result<Outcome, CallError> {
    let Desk {
        generation,
        controller,
        ..
    } = &*turn.desk;
    let failing = controller.memory.failing(&turn.key);
    let request = Request {
        controller: &controller.name,
        kind: &controller.kind,
        name: &turn.key,
        object: turn.object.clone(),
        previous: turn.previous.clone(),
        deleting: turn.deleting,
        attempt: failing.as_ref().map_or(0, |failing| failing.attempt),
        last: failing.as_ref().and_then(|failing| failing.last.as_ref()),
    };
    let called = generation
        .plugin
        .call(&request, turn.desk.clone(), || drop(starting))
        .await;
    match &called {
        Ok(_) => generation.breaker.success(),
        // A full pool is the host's affair.
        Err(CallError::Busy(_)) => {}
        Err(_) => {
            if let Some(pause) = generation.breaker.failure() {
                let note = format!("all calls of the plugin fail: it is paused for {pause:?}");
                let plugin = &generation.description().name;
                tracing::error!(plugin, "{note}");
                controller.metrics.breaker_opened();
                turn.warn("PluginPaused", note);
            }
        }
    }
    called
}
