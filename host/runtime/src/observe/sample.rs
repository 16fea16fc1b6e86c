//! Sets the gauges of all plugins, controllers and stores at each scrape. This module must not know
//! how a metric is served.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::deploy::plugins::Plugins;
use crate::journal::story::Warning;
use crate::journal::watch::Warnings;
use crate::observe::metrics::gauges::Gauges;
use crate::site::sites::UP;

/// Sets the gauges at each scrape, until the plugins are dropped.
pub(crate) fn at_scrapes(plugins: &Arc<Plugins>, warnings: &Arc<Warnings>) {
    let (sampled, warnings) = (Arc::downgrade(plugins), warnings.clone());
    plugins.metrics.on_scrape(move |gauges| {
        if let Some(plugins) = sampled.upgrade() {
            sample(&plugins, gauges);
            canaries(&plugins);
            for ((controller, warning), keys) in counts(&warnings.all()) {
                gauges.key_warnings(controller, warning, keys);
            }
        }
    });
}

/// The number of warnings, by the controller's label and the warning's name.
fn counts(warnings: &[Warning]) -> BTreeMap<(&str, &str), usize> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for warning in warnings {
        let labels = (warning.controller.as_str(), warning.name.as_str());
        *counts.entry(labels).or_default() += 1;
    }
    counts
}

fn canaries(plugins: &Plugins) {
    let metrics = &plugins.metrics.canary;
    metrics.reset();
    for slot in plugins.slots() {
        if let Some(candidate) = &slot.lineup().candidate {
            let (keys, _) = candidate.canary.counts();
            let (number, permille) = (candidate.generation.number, candidate.weight.permille());
            metrics.set(&slot.name, number, permille, keys);
        }
    }
}

fn sample(plugins: &Plugins, gauges: &Gauges) {
    for slot in plugins.slots() {
        let generation = slot.current();
        gauges.plugin(&slot.name, &generation.plugin.instances());
        for (wired, branch) in generation.everywhere() {
            let (controller, queue) = (&wired.controller, wired.controller.queue.stats());
            gauges.controller(controller.metrics.label(), controller.workers, &queue);
            if let Some(branch) = branch {
                gauges.cluster_depth(&branch.member.name, &queue);
            }
        }
    }
    members(plugins, gauges);
    for state in plugins.informers.states() {
        gauges.store(&state.spec, state.objects, state.bytes);
        if let Some(silence) = state.silence {
            gauges.watch(&state.spec, silence);
        }
    }
}

/// Sets the gauges of member clusters. Their watches have none, since each cluster has as many as
/// home.
fn members(plugins: &Plugins, gauges: &Gauges) {
    for state in plugins.sites.states() {
        gauges.cluster(&state.name, state.phase == UP);
    }
    for site in plugins.sites.engaged() {
        for state in site.informers.states() {
            gauges.store(&state.spec, state.objects, state.bytes);
            gauges.cluster_store(&site.member.name, state.bytes);
        }
    }
}
