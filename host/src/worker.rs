//! HOT PATH: get, call, settle, done. One worker is one task on the guests' runtime; it waits for a key and never for another worker.

use std::sync::Arc;
use std::time::Duration;

use vmhost_core::{ObjectName, Outcome, Request, Snapshot};
use vmhost_engine::CallError;

use crate::controller::Controller;
use crate::finalizer::{self, Phase};
use crate::leader::Leadership;
use crate::log::Reconcile;
use crate::registry::{Generation, Slot, Starting};
use crate::settle::{Settler, leave, prepare, settle, warn};
use crate::sources::Sources;

/// One turn of one key: what it saw, and who saw it.
pub struct Turn {
    /// The generation, from get to settle.
    pub generation: Arc<Generation>,
    /// The controller.
    pub controller: Arc<Controller>,
    /// The generation's stores.
    pub sources: Arc<Sources>,
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
const PAUSE_STEP: Duration = Duration::from_millis(100);

/// How often a standby's tasks look whether they are still wanted.
pub const STANDBY_STEP: Duration = Duration::from_secs(10);

/// Works on keys until the queue is shut down, or until the controller is not part of the plugin any more.
pub async fn run(
    slot: Arc<Slot>,
    controller: Arc<Controller>,
    settler: Arc<Settler>,
    leadership: Arc<Leadership>,
) {
    while let Some(lease) = next(&slot, &controller, &leadership).await {
        // Neither a full queue nor a quick policy ever makes this task wait: let others have the thread now and then.
        tokio::task::coop::consume_budget().await;
        // Loaded after `get`: no call starts on an older generation after a newer one was announced.
        let starting = slot.begin();
        let generation = starting.generation.clone();
        let Some(sources) = generation.sources(&controller).cloned() else {
            return;
        };
        if let Some(rest) = controller.hot.pause(lease.key()) {
            controller.queue.add_after(lease.key().clone(), rest);
            continue;
        }
        if let Some(pause) = slot.breaker.pause() {
            drop(starting);
            // Waited out here, in steps that a shutdown can end: a key that goes round the queue instead would keep the thread busy.
            tokio::time::sleep(pause.min(PAUSE_STEP)).await;
            controller.queue.add_low(lease.key().clone());
            continue;
        }
        let turn = Turn::new(generation, &controller, sources, lease.key().clone());
        let reconcile = turn.reconcile.clone();
        let mut unsettled = Unsettled(Some((&controller, lease.key())));
        reconcile.scope(turn.run(&slot, &settler, starting)).await;
        unsettled.0 = None;
        // done: the lease drops.
    }
}

/// The next key while this host leads; none: the worker ends.
async fn next(
    slot: &Slot,
    controller: &Arc<Controller>,
    leadership: &Leadership,
) -> Option<vmhost_queue::Lease<ObjectName>> {
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
    fn new(
        generation: Arc<Generation>,
        controller: &Arc<Controller>,
        sources: Arc<Sources>,
        key: ObjectName,
    ) -> Self {
        let object = sources.snapshot(&key);
        let previous = sources
            .description()
            .previous
            .then(|| controller.previous.get(&key))
            .flatten();
        let replaced =
            matches!((&previous, &object), (Some(old), Some(new)) if old.uid() != new.uid());
        let number = generation.number;
        Self {
            reconcile: Reconcile::new(controller.label.clone(), number, key.clone()),
            generation,
            controller: controller.clone(),
            sources,
            key,
            object: object.filter(|_| !replaced),
            previous,
            deleting: false,
            replaced,
        }
    }

    async fn run(mut self, slot: &Slot, settler: &Arc<Settler>, starting: Starting) {
        let controller = self.controller.clone();
        let _active = Active::new(&controller);
        let finalizer = self.sources.description().finalizer.as_deref();
        match finalizer::phase(finalizer, &controller.kind, self.object.as_ref()) {
            Phase::Call { deleting } => {
                self.deleting = deleting;
                let outcome = self.call(slot, settler, starting).await;
                settle(settler, Arc::new(self), outcome).await;
            }
            Phase::Add(effect) => {
                // No call starts here: a swap need not wait for this write.
                drop(starting);
                prepare(settler, Arc::new(self), effect).await;
            }
            Phase::Leave => leave(&self),
        }
    }

    async fn call(
        &self,
        slot: &Slot,
        settler: &Settler,
        starting: Starting,
    ) -> Result<Outcome, CallError> {
        let failing = self.controller.failing(&self.key);
        let request = Request {
            controller: &self.controller.name,
            kind: &self.controller.kind,
            name: &self.key,
            object: self.object.clone(),
            previous: self.previous.clone(),
            deleting: self.deleting,
            attempt: failing.as_ref().map_or(0, |failing| failing.attempt),
            last: failing.as_ref().and_then(|failing| failing.last.as_ref()),
        };
        let called = {
            let _timer = self.controller.metrics.call_time.start_timer();
            self.generation
                .plugin
                .call(&request, self.sources.clone(), || drop(starting))
                .await
        };
        match &called {
            Ok(_) => slot.breaker.success(),
            // A full pool is the host's affair.
            Err(CallError::Busy(_)) => {}
            // What the old code does says nothing about the new.
            Err(_) if !Arc::ptr_eq(&self.generation, &slot.current()) => {}
            Err(_) => {
                if let Some(pause) = slot.breaker.failure() {
                    let note = format!("all calls of the plugin fail: it is paused for {pause:?}");
                    tracing::error!(plugin = slot.name, "{note}");
                    self.controller.metrics.breaker_opened();
                    warn(settler, self, "PluginPaused", note);
                }
            }
        }
        called
    }
}

/// A worker has a key.
struct Active<'a> {
    controller: &'a Controller,
    started: std::time::Instant,
}

impl<'a> Active<'a> {
    fn new(controller: &'a Controller) -> Self {
        controller.metrics.active_workers.inc();
        Self {
            controller,
            started: std::time::Instant::now(),
        }
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.controller.metrics.active_workers.dec();
        self.controller
            .metrics
            .reconcile_time
            .observe(self.started.elapsed().as_secs_f64());
    }
}
