//! Builds the document of [`super::state`] from the running plugins. It uses accessors that hold
//! each lock only for a moment, so that no worker waits.
//!
//! It shows no text that an API server or a plugin wrote about a turn. The text may repeat a
//! sensitive value, and only the turn's record shows which part of the text that is. This module
//! must not know how the document is served.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use vmhost_cluster::{InformerState, Phase};
use vmhost_core::{ObjectName, Refusal};
use vmhost_engine::Code;

use super::reviewed::{Counted, webhooks};
use super::state::{
    BreakerState, CanaryState, ControllerState, FAILING_SHOWN, Failing, FailingKey, HostState,
    Instances, PluginState, QueueState, StoreState, TurnCounts, WARNINGS_SHOWN, WebhookState,
};
use crate::controller::Controller;
use crate::deploy::breaker::Breaker;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Slot};
use crate::journal::story::Warning;
use crate::lead::Leadership;

/// Returns what the last failed turns of keys came to, by the controller's label, as far as their
/// records are kept.
pub(crate) type Why<'a> = dyn Fn(&str, &HashSet<ObjectName>) -> HashMap<ObjectName, String> + 'a;

/// Describes the present state of the host, with these warnings. Without `why`, failing keys are
/// only counted.
pub(crate) fn state(
    plugins: &Plugins,
    mut warnings: Vec<Warning>,
    why: Option<&Why<'_>>,
) -> HostState {
    let warned = warnings.len();
    warnings.truncate(WARNINGS_SHOWN);
    let reviews = Counted::of(&plugins.metrics);
    let keeper = plugins.keeper.get().map(|keeper| &**keeper);
    let mut shown: Vec<PluginState> = plugins
        .slots()
        .iter()
        .map(|slot| {
            let live = slot.current();
            plugin(slot, &live, webhooks(&live, keeper, &reviews), why)
        })
        .collect();
    shown.sort_by(|a, b| a.name.cmp(&b.name));
    let at_home = plugins.informers.states();
    let mut stores: Vec<StoreState> = at_home.iter().map(|state| store(state, None)).collect();
    for site in plugins.sites.engaged() {
        let states = site.informers.states();
        stores.extend(
            states
                .iter()
                .map(|state| store(state, Some(&*site.member.name))),
        );
    }
    let place = |state: &StoreState| {
        let StoreState {
            cluster,
            kind,
            namespace,
            ..
        } = state;
        (cluster.clone(), kind.clone(), namespace.clone())
    };
    stores.sort_by_cached_key(place);
    HostState {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        time: Timestamp::now().to_string(),
        stopping: plugins.is_stopping(),
        leader: leader(&plugins.leadership).to_owned(),
        plugins: shown,
        stores,
        clusters: plugins.sites.states(),
        warnings,
        warned,
    }
}

fn leader(leadership: &Leadership) -> &'static str {
    match (leadership.is_elected(), leadership.is_leading()) {
        (false, _) => "alone",
        (true, true) => "leading",
        (true, false) => "standby",
    }
}

fn plugin(
    slot: &Slot,
    generation: &Generation,
    webhooks: Vec<WebhookState>,
    why: Option<&Why<'_>>,
) -> PluginState {
    let instances = generation.plugin.instances();
    let (failures, pause) = [&generation.breaker, &generation.map_breaker]
        .map(Breaker::status)
        .into_iter()
        .max_by_key(|(failures, pause)| (pause.is_some(), *failures))
        .unwrap_or_default();
    let mut controllers: Vec<ControllerState> = generation
        .everywhere()
        .iter()
        .map(|(wired, _)| controller(&wired.controller, why))
        .collect();
    controllers.sort_by(|a, b| (&a.name, &a.cluster).cmp(&(&b.name, &b.cluster)));
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
        webhooks,
        reload: slot.last_reload.load_full().map(|last| (*last).clone()),
        // If calls succeed again, no rollback is needed.
        rollback_suggested: slot
            .probation
            .suggested(generation.number)
            .filter(|_| failures > 0),
        canary: slot.canary.load().as_deref().map(CanaryState::of),
    }
}

fn controller(controller: &Controller, why: Option<&Why<'_>>) -> ControllerState {
    let stats = controller.queue.stats();
    let shown = if why.is_some() { FAILING_SHOWN } else { 0 };
    let (total, some) = controller.memory.some_failing(shown);
    let names: HashSet<ObjectName> = some.iter().map(|(key, _)| key.clone()).collect();
    let mut told = match why {
        Some(why) if !names.is_empty() => why(&controller.label, &names),
        _ => HashMap::new(),
    };
    let mut keys: Vec<FailingKey> = some
        .into_iter()
        .map(|(key, failing)| FailingKey {
            last: told
                .remove(&key)
                .or_else(|| failing.last.as_ref().map(refusal)),
            key: key.to_string(),
            attempt: failing.attempt,
        })
        .collect();
    keys.sort_by(|a, b| a.key.cmp(&b.key));
    ControllerState {
        name: controller.name.clone(),
        label: controller.label.to_string(),
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
        turns: TurnCounts {
            total: controller.metrics.turns(),
            failed: controller.metrics.failed_turns(),
        },
        cluster: controller
            .member
            .as_ref()
            .map(|member| member.name.to_string()),
    }
}

/// Describes a refusal whose record was dropped for newer ones, without the text of the API server.
fn refusal(refusal: &Refusal) -> String {
    match refusal.code {
        0 => format!("effect {}: no answer", refusal.effect),
        code => format!("effect {}: refused with {code}", refusal.effect),
    }
}

fn store(state: &InformerState, cluster: Option<&str>) -> StoreState {
    let spec = &state.spec;
    StoreState {
        cluster: cluster.map(str::to_owned),
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
