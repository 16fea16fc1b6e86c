//! Sets the gauges of all plugins, controllers and stores at each scrape.

use std::sync::Arc;

use crate::deploy::plugins::Plugins;
use crate::journal::watch::Warnings;
use crate::observe::metrics::gauges::Gauges;

/// Sets the gauges at each scrape, until the plugins are dropped.
pub(crate) fn at_scrapes(plugins: &Arc<Plugins>, warnings: &Arc<Warnings>) {
    let (sampled, warnings) = (Arc::downgrade(plugins), warnings.clone());
    plugins.metrics.on_scrape(move |gauges| {
        if let Some(plugins) = sampled.upgrade() {
            sample(&plugins, gauges);
            for ((controller, warning), keys) in warnings.watch.lock().counts() {
                gauges.key_warnings(&controller, &warning, keys);
            }
        }
    });
}

fn sample(plugins: &Plugins, gauges: &Gauges) {
    for slot in plugins.slots() {
        let generation = slot.current();
        gauges.plugin(&slot.name, &generation.plugin.instances());
        for wired in generation.controllers.values() {
            let controller = &wired.controller;
            gauges.controller(
                &controller.label,
                controller.workers,
                &controller.queue.stats(),
            );
        }
    }
    for state in plugins.informers.states() {
        gauges.store(&state.spec, state.objects, state.bytes);
        if let Some(silence) = state.silence {
            gauges.watch(&state.spec, silence);
        }
    }
}
