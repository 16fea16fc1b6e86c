//! Changes that the policy itself maps to keys: kept until a call of its `map-changes` has succeeded, whatever traps, errors and swaps come in between.
//!
//! Changes of one object stay in their order, and none of the states in between is left out: each may have named another key. A call that fails is tried with fewer
//! changes, down to one, so that one object which cannot be mapped holds up no other: it goes to the end of the line. What becomes too much, or cannot be mapped at all, is
//! dropped in exchange for a look at every key, which is always right.

use std::sync::Arc;
use std::time::Duration;

use vmhost_core::{MapRequest, ObjectName};
use vmhost_engine::CallError;

use crate::controller::Controller;
use crate::controller::changes::{Batch, Missed};
use crate::deploy::slot::{Generation, Slot};
use crate::lead::Leadership;
use crate::turn::{PAUSE_STEP, STANDBY_STEP};
use crate::wake::sources::Sources;

/// Maps changes until the controller ends, while this host leads.
pub async fn run(slot: Arc<Slot>, controller: Arc<Controller>, leadership: Arc<Leadership>) {
    while controller.mapper.ready().await {
        if !leadership.is_leading() {
            controller.mapper.stand_by();
            let _ = tokio::time::timeout(STANDBY_STEP, leadership.leads()).await;
            if controller.mapper.is_closed() {
                return;
            }
            continue;
        }
        controller.mapper.lead();
        // As for a turn: no call starts on an older generation after a newer one was announced.
        let generation = slot.current();
        let Some(starting) = slot.begin(&generation) else {
            continue;
        };
        let Some(sources) = generation.sources(&controller).cloned() else {
            return;
        };
        if let Some(missed) = controller.mapper.missed() {
            look_at_all(&controller, &sources, missed);
        }
        if controller.mapper.is_empty() {
            continue;
        }
        if let Some(pause) = paused(&generation) {
            drop(starting);
            tokio::time::sleep(pause.min(PAUSE_STEP)).await;
            continue;
        }
        let batch = controller.mapper.take();
        let changes = batch.changes();
        let request = MapRequest {
            controller: &controller.name,
            changes: &changes,
        };
        let mapped = generation
            .plugin
            .map_changes(&request, sources.clone(), || drop(starting))
            .await;
        match mapped {
            Ok(Ok(names)) => {
                generation.map_breaker.success();
                controller.mapper.succeeded();
                controller.metrics.wakes.mapped("success");
                wake(&controller, &sources, &batch.versions(), &names);
            }
            Ok(Err(message)) => {
                generation.map_breaker.success();
                failed(&controller, batch, vmhost_core::cut(&message, 1024));
            }
            Err(error) => {
                controller.metrics.call_error(&error);
                if !matches!(error, CallError::Busy(_))
                    && generation.map_breaker.failure().is_some()
                {
                    controller.metrics.breaker_opened();
                }
                failed(&controller, batch, &error.to_string());
            }
        }
    }
}

/// How long the generation's circuit breakers keep it from mapping. Whether the policy works again
/// is for its own calls to find out.
fn paused(generation: &Generation) -> Option<Duration> {
    generation
        .breaker
        .open()
        .or_else(|| generation.map_breaker.pause())
}

/// Instead of mapping what is not there any more.
fn look_at_all(controller: &Controller, sources: &Sources, missed: Missed) {
    let controller_name = &*controller.label;
    match missed {
        Missed::Dropped => tracing::warn!(
            controller = controller_name,
            "changes that wait to be mapped were dropped: every key is looked at instead"
        ),
        Missed::StoodBy => tracing::debug!(
            controller = controller_name,
            "every key is looked at, since changes were not kept while another host led"
        ),
    }
    controller.queue.add_low_all(sources.names());
}

/// What the store does not hold is no key: its own event wakes it when it comes. The store's own name is queued, not the policy's.
fn wake(controller: &Controller, sources: &Sources, versions: &[(u16, u64)], names: &[ObjectName]) {
    for object in names.iter().filter_map(|name| sources.snapshot(name)) {
        controller.wake_by_one_of(&object.name, versions);
    }
}

fn failed(controller: &Controller, batch: Batch, problem: &str) {
    controller.metrics.wakes.mapped("error");
    let (count, first) = batch.objects();
    tracing::error!(
        controller = &*controller.label,
        "cannot map the changes of {} objects to keys, {} the first of them; will be tried again, fewer at once: {problem}",
        count,
        first.map_or("", ObjectName::as_str),
    );
    controller.mapper.put_back(batch);
}
