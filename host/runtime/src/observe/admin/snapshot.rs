//! Builds the document of [`super::state`] from the running plugins. It uses accessors that hold
//! each lock only for a moment, so that no worker waits.

use vmhost_cluster::{InformerState, Phase};
use vmhost_core::Refusal;
use vmhost_engine::Code;

use super::state::{
    BreakerState, ControllerState, FAILING_SHOWN, Failing, FailingKey, HostState, Instances,
    PluginState, QueueState, StoreState, WARNINGS_SHOWN,
};
use crate::controller::Controller;
use crate::deploy::breaker::Breaker;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Slot};
use crate::journal::story::Warning;
use crate::lead::Leadership;

/// The current state of the host, with these warnings.
pub(crate) fn state(plugins: &Plugins, mut warnings: Vec<Warning>) -> HostState {
    warnings.truncate(WARNINGS_SHOWN);
    let mut shown: Vec<PluginState> = plugins
        .slots()
        .iter()
        .map(|slot| plugin(slot, &slot.current()))
        .collect();
    shown.sort_by(|a, b| a.name.cmp(&b.name));
    let mut stores: Vec<StoreState> = plugins.informers.states().iter().map(store).collect();
    stores.sort_by(|a, b| (&a.kind, &a.namespace).cmp(&(&b.kind, &b.namespace)));
    HostState {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        stopping: plugins.is_stopping(),
        leader: leader(&plugins.leadership).to_owned(),
        plugins: shown,
        stores,
        warnings,
    }
}

fn leader(leadership: &Leadership) -> &'static str {
    match (leadership.is_elected(), leadership.is_leading()) {
        (false, _) => "alone",
        (true, true) => "leading",
        (true, false) => "standby",
    }
}

fn plugin(slot: &Slot, generation: &Generation) -> PluginState {
    let instances = generation.plugin.instances();
    let (failures, pause) = [&generation.breaker, &generation.map_breaker]
        .map(Breaker::status)
        .into_iter()
        .max_by_key(|(failures, pause)| (pause.is_some(), *failures))
        .unwrap_or_default();
    let mut controllers: Vec<ControllerState> = generation
        .controllers
        .values()
        .map(|wired| controller(&wired.controller))
        .collect();
    controllers.sort_by(|a, b| a.name.cmp(&b.name));
    PluginState {
        name: slot.name.clone(),
        version: generation.description().version.clone(),
        generation: generation.number,
        digest: format!("sha256:{}", generation.plugin.digest()),
        code: match generation.plugin.code() {
            _ if !instances.loaded => "unloaded".to_owned(),
            Code::Baseline => "baseline".to_owned(),
            Code::Optimised => "optimised".to_owned(),
        },
        instances: Instances {
            live: instances.live,
            idle: instances.idle,
            created: instances.created,
        },
        breaker: BreakerState {
            open: pause.is_some(),
            failures,
            pause_ms: pause.map_or(0, |pause| pause.as_millis() as u64),
        },
        controllers,
        reload: slot.last_reload.load_full().map(|last| (*last).clone()),
    }
}

fn controller(controller: &Controller) -> ControllerState {
    let stats = controller.queue.stats();
    let (total, some) = controller.memory.some_failing(FAILING_SHOWN);
    let mut keys: Vec<FailingKey> = some
        .into_iter()
        .map(|(key, failing)| FailingKey {
            key: key.to_string(),
            attempt: failing.attempt,
            last: failing.last.as_ref().map(refusal),
        })
        .collect();
    keys.sort_by(|a, b| a.key.cmp(&b.key));
    ControllerState {
        name: controller.name.clone(),
        kind: controller.kind.to_string(),
        workers: controller.workers,
        started: controller.has_started(),
        queue: QueueState {
            high: stats.high,
            low: stats.low,
            delayed: stats.delayed,
            processing: stats.processing,
            longest_running_ms: stats.longest_running.as_millis() as u64,
        },
        back_offs: stats.backing_off,
        held: controller.memory.resting(),
        unmapped: controller.mapper.len(),
        failing: Failing { total, keys },
    }
}

fn refusal(refusal: &Refusal) -> String {
    vmhost_core::one_line(&format!(
        "effect {}: {} ({} {})",
        refusal.effect, refusal.message, refusal.code, refusal.reason
    ))
    .to_string()
}

fn store(state: &InformerState) -> StoreState {
    let spec = &state.spec;
    StoreState {
        kind: spec.kind.to_string(),
        namespace: spec.namespace.clone(),
        label_selector: spec.label_selector.clone(),
        field_selector: spec.field_selector.clone(),
        wanted: spec.wanted.to_string(),
        phase: match &state.phase {
            Phase::Starting => "starting",
            Phase::WaitingForKind => "waitingForKind",
            Phase::Listing => "listing",
            Phase::Watching => "watching",
            Phase::Forbidden { .. } => "forbidden",
            Phase::Failing { .. } => "failing",
        }
        .to_owned(),
        about: state.to_string(),
        synced: state.synced,
        objects: state.objects,
        bytes: state.bytes,
        relists: state.relists,
        skipped: state.skipped,
        failures: state.failures,
        subscribers: state.subscribers,
        silence_ms: state.silence.map(|silence| silence.as_millis() as u64),
    }
}
