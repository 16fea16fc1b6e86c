//! Maps changes to keys with the plugin's own `map-changes`. Changes are kept until a call has
//! succeeded, whatever traps, errors and swaps occur meanwhile.
//!
//! Changes of one object stay in order, and no state in between is left out, since each may have
//! named another key. A failed call is retried with fewer changes, down to one object, which then
//! goes to the end of the line, so that an object that cannot be mapped does not block the others.
//! If there are too many changes, or an object can never be mapped, its changes are dropped and
//! every key is enqueued instead, which is always correct. This module must not know what becomes
//! of a key.

use std::sync::Arc;

use vmhost_core::{MapRequest, ObjectName, one_line};
use vmhost_engine::CallError;

use crate::controller::Controller;
use crate::controller::changes::{Batch, Missed};
use crate::deploy::slot::Slot;
use crate::journal::tag::Cause;
use crate::lead::Leadership;
use crate::turn::{PAUSE_STEP, STANDBY_STEP};
use crate::wake::sources::Sources;

/// Maps changes while this host leads, until the controller ends.
pub(crate) async fn run(slot: Arc<Slot>, controller: Arc<Controller>, leadership: Arc<Leadership>) {
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
        // As for a turn, no call starts under an older line-up after a newer one was announced.
        // Only the live version maps changes.
        let lineup = slot.lineup();
        let generation = &lineup.live;
        let Some(starting) = slot.begin(&lineup) else {
            continue;
        };
        let Some(sources) = generation.sources(&controller) else {
            return;
        };
        let branch = generation.branch(&controller);
        let [breaker, map_breaker] = match &branch {
            None => [&generation.breaker, &generation.map_breaker],
            Some(branch) => [&branch.breaker, &branch.map_breaker],
        };
        if let Some(missed) = controller.mapper.missed() {
            look_at_all(&controller, &sources, missed);
        }
        if controller.mapper.is_empty() {
            continue;
        }
        // The trial calls of the main breaker are left to `reconcile`.
        if let Some(pause) = breaker.open().or_else(|| map_breaker.pause()) {
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
                map_breaker.success();
                controller.mapper.succeeded();
                controller.metrics.wakes.mapped("success");
                wake(&controller, &sources, &batch.versions(), &names);
            }
            Ok(Err(message)) => {
                map_breaker.success();
                failed(
                    &controller,
                    batch,
                    &one_line(vmhost_core::cut(&message, 1024)),
                );
            }
            Err(error) => {
                controller.metrics.call_error(&error);
                if !matches!(error, CallError::Busy(_)) && map_breaker.failure().is_some() {
                    controller.metrics.breaker_opened();
                }
                failed(&controller, batch, &error.to_string());
            }
        }
    }
}

/// Enqueues every key, because changes are missing.
fn look_at_all(controller: &Controller, sources: &Sources, missed: Missed) {
    let controller_name = &*controller.label;
    match missed {
        Missed::Dropped => tracing::warn!(
            controller = controller_name,
            "unmapped changes were dropped; enqueueing every key instead"
        ),
        Missed::StoodBy => tracing::debug!(
            controller = controller_name,
            "enqueueing every key, since changes were not kept while another host led"
        ),
    }
    let queue = controller.queue.tagged(Cause::Mapped.into());
    queue.add_low_all(sources.names());
}

/// Enqueues the keys that a call returned. Only objects in the store are enqueued, since a missing
/// one is woken by its own event later. The store's copy of the name is used, not the plugin's.
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
        "cannot map the changes of {} objects to keys (the first is {}); retrying with fewer at once: {problem}",
        count,
        first.map_or("", ObjectName::as_str),
    );
    controller.mapper.put_back(batch);
}
