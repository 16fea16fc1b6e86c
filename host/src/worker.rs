//! HOT PATH: get, call, settle, done. One worker is one task on the guests' runtime; it waits for a key and never for another worker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::{ObjectName, Outcome, Request, Snapshot};
use vmhost_engine::CallError;
use vmhost_queue::Lease;

use crate::controller::Controller;
use crate::desk::Desk;
use crate::finalizer::{self, Phase};
use crate::leader::Leadership;
use crate::log::Reconcile;
use crate::registry::{Slot, Starting};
use crate::settle::{Settler, leave, prepare, settle, warn};
use crate::telemetry::{TurnResult, WorkerMetrics};

/// One turn of one key: what it saw, and who saw it.
pub struct Turn {
    /// What it works with, from get to settle.
    pub desk: Arc<Desk>,
    /// The key.
    pub key: ObjectName,
    /// What log lines say of it.
    pub reconcile: Arc<Reconcile>,
    /// The snapshot; none: gone.
    pub object: Option<Snapshot>,
    /// What the last successful turn saw, if the controller asks for that.
    pub previous: Option<Snapshot>,
    /// It is being deleted, and waits for the policy's clean-up.
    pub deleting: bool,
    /// Another object has the name by now: this turn tells that the old one is gone, the next one shows the new one.
    pub replaced: bool,
}

/// Longest sleep of a worker whose plugin's circuit breaker is open.
pub const PAUSE_STEP: Duration = Duration::from_millis(100);

/// How often a standby's tasks look whether they are still wanted.
pub const STANDBY_STEP: Duration = Duration::from_secs(10);

/// Works on keys until the queue is shut down, or until the controller is not part of the plugin any more.
pub async fn run(
    slot: Arc<Slot>,
    controller: Arc<Controller>,
    settler: Arc<Settler>,
    leadership: Arc<Leadership>,
) {
    let mut metrics = WorkerMetrics::new(&controller.metrics);
    let mut kept: Option<Arc<Desk>> = None;
    loop {
        let lease = match ready(&controller, &leadership) {
            Some(lease) => lease,
            None => {
                // It may wait for long: what others look at is handed over, and an old generation is not held.
                metrics.flush();
                kept = None;
                match next(&slot, &controller, &leadership).await {
                    Some(lease) => lease,
                    None => return,
                }
            }
        };
        // Neither a full queue nor a quick policy ever makes this task wait: let others have the thread now and then.
        tokio::task::coop::consume_budget().await;
        // Begun after `get`: no call starts on an older generation after a newer one was announced.
        let (desk, starting) = loop {
            let desk = match &kept {
                Some(desk) => desk,
                None => match Desk::new(slot.current(), &controller) {
                    Some(desk) => kept.insert(desk),
                    None => return,
                },
            };
            if let Some(starting) = slot.begin(&desk.generation) {
                break (desk, starting);
            }
            kept = None;
        };
        if let Some(rest) = controller.hot.pause(lease.key()) {
            controller.queue.add_after(lease.key().clone(), rest);
            continue;
        }
        if let Some(pause) = desk.generation.breaker.pause() {
            drop(starting);
            // Waited out here, in steps that a shutdown can end: a key that goes round the queue instead would keep the thread busy.
            tokio::time::sleep(pause.min(PAUSE_STEP)).await;
            controller.queue.add_low(lease.key().clone());
            continue;
        }
        let began = Instant::now();
        let turn = Turn::new(desk.clone(), lease.key().clone());
        let reconcile = turn.reconcile.clone();
        let mut unsettled = Unsettled(Some((&controller, lease.key())));
        // On the heap while it lasts: thousands of workers wait for a key, and few have one.
        let turn = Box::pin(turn.run(&slot, &settler, starting, &mut metrics));
        let result = reconcile.scope(turn).await;
        unsettled.0 = None;
        metrics.turn(lease.wait(), began, result);
        // done: the lease drops.
    }
}

/// A key, if one is ready now and this host leads.
fn ready(controller: &Controller, leadership: &Leadership) -> Option<Lease<ObjectName>> {
    if !leadership.is_leading() {
        return None;
    }
    controller.queue.try_get()
}

/// The next key while this host leads; none: the worker ends.
async fn next(
    slot: &Slot,
    controller: &Arc<Controller>,
    leadership: &Leadership,
) -> Option<Lease<ObjectName>> {
    loop {
        while !leadership.is_leading()
            && tokio::time::timeout(STANDBY_STEP, leadership.leads())
                .await
                .is_err()
        {
            // A swap may have replaced the controller meanwhile.
            slot.current().sources(controller)?;
        }
        let lease = controller.queue.get().await?;
        if leadership.is_leading() {
            return Some(lease);
        }
        // It waited for a key, and does not lead any more.
        controller.queue.add(lease.key().clone());
    }
}

/// Puts the key back if the turn ends by a panic: a bug of the host's must not lose a key.
struct Unsettled<'a>(Option<(&'a Controller, &'a ObjectName)>);

impl Drop for Unsettled<'_> {
    fn drop(&mut self) {
        if let Some((controller, key)) = self.0 {
            controller.queue.add_rate_limited(key.clone());
        }
    }
}

impl Turn {
    /// The key's turn, with what the stores show now, never with what an event brought.
    pub fn new(desk: Arc<Desk>, key: ObjectName) -> Self {
        let object = desk.sources.snapshot(&key);
        let previous = desk
            .sources
            .description()
            .previous
            .then(|| desk.controller.previous.get(&key))
            .flatten();
        let replaced =
            matches!((&previous, &object), (Some(old), Some(new)) if old.uid() != new.uid());
        let number = desk.generation.number;
        Self {
            reconcile: Reconcile::new(desk.label.clone(), number, key.clone()),
            desk,
            key,
            object: object.filter(|_| !replaced),
            previous,
            deleting: false,
            replaced,
        }
    }

    async fn run(
        mut self,
        slot: &Slot,
        settler: &Arc<Settler>,
        starting: Starting<'_>,
        metrics: &mut WorkerMetrics,
    ) -> TurnResult {
        let finalizer = self.desk.sources.description().finalizer.as_deref();
        match finalizer::phase(finalizer, &self.desk.controller.kind, self.object.as_ref()) {
            Phase::Call { deleting } => {
                self.deleting = deleting;
                let began = Instant::now();
                let outcome = self.call(starting).await;
                metrics.call(began.elapsed());
                let turn = Arc::new(self);
                let result = settle(settler, turn.clone(), outcome).await;
                turn.tell_successor(slot);
                result
            }
            Phase::Add(effect) => {
                // No call starts here: a swap need not wait for this write.
                drop(starting);
                prepare(settler, Arc::new(self), effect).await
            }
            Phase::Leave => leave(&self),
        }
    }

    /// An object that is gone is shown as gone to the code that runs now, too, if this turn's was
    /// replaced meanwhile: the swap has put back the keys of objects that are there.
    fn tell_successor(&self, slot: &Slot) {
        let Desk {
            generation,
            controller,
            ..
        } = &*self.desk;
        if self.object.is_some() || slot.is_current(generation) {
            return;
        }
        if let Some(previous) = &self.previous {
            controller.previous.record(&self.key, Some(previous));
        }
        slot.again(controller, &self.key);
    }

    async fn call(&self, starting: Starting<'_>) -> Result<Outcome, CallError> {
        let Desk {
            generation,
            controller,
            ..
        } = &*self.desk;
        let failing = controller.failing(&self.key);
        let request = Request {
            controller: &controller.name,
            kind: &controller.kind,
            name: &self.key,
            object: self.object.clone(),
            previous: self.previous.clone(),
            deleting: self.deleting,
            attempt: failing.as_ref().map_or(0, |failing| failing.attempt),
            last: failing.as_ref().and_then(|failing| failing.last.as_ref()),
        };
        let called = generation
            .plugin
            .call(&request, self.desk.clone(), || drop(starting))
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
                    warn(self, "PluginPaused", note);
                }
            }
        }
        called
    }
}
