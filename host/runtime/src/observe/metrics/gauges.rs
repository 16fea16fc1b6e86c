//! Gauges that each scrape sets anew from the current state, so that a removed plugin or kind
//! leaves no last value behind.
//!
//! It owns the gauges' names. It must not know where the values come from.

use std::time::Duration;

use prometheus::{GaugeVec, IntGaugeVec, Registry};
use vmhost_cluster::WatchSpec;
use vmhost_queue::Stats;

use super::vectors::{float_gauges, gauges};

/// The gauges of all plugins, controllers, stores and watches.
pub(crate) struct Gauges {
    depth: IntGaugeVec,
    unfinished: GaugeVec,
    longest_running: GaugeVec,
    max_concurrent: IntGaugeVec,
    active_workers: IntGaugeVec,
    instances: IntGaugeVec,
    instances_created: IntGaugeVec,
    plugin_loaded: IntGaugeVec,
    plugin_unloads: IntGaugeVec,
    store_objects: IntGaugeVec,
    store_bytes: IntGaugeVec,
    watch_silence: GaugeVec,
    key_warnings: IntGaugeVec,
    cluster_up: IntGaugeVec,
    cluster_depth: IntGaugeVec,
    cluster_store_bytes: IntGaugeVec,
}

impl Gauges {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let whole = |name, help, labels: &[&str]| gauges(registry, name, help, labels);
        let float = |name, help, labels: &[&str]| float_gauges(registry, name, help, labels);
        let (by_plugin, by_controller) = (&["plugin"], &["controller"]);
        let by_queue = &["name", "controller"];
        Ok(Self {
            depth: whole(
                "workqueue_depth",
                "Current depth of workqueue by workqueue and priority",
                &["name", "controller", "priority"],
            )?,
            unfinished: float(
                "workqueue_unfinished_work_seconds",
                "How many seconds of work is in progress and not yet observed",
                by_queue,
            )?,
            longest_running: float(
                "workqueue_longest_running_processor_seconds",
                "How many seconds has the longest running processor been running",
                by_queue,
            )?,
            max_concurrent: whole(
                "controller_runtime_max_concurrent_reconciles",
                "Maximum number of concurrent reconciles per controller",
                by_controller,
            )?,
            active_workers: whole(
                "controller_runtime_active_workers",
                "Number of currently used workers per controller",
                by_controller,
            )?,
            instances: whole(
                "vmhost_instances",
                "Instances of the plugin's current generation",
                &["plugin", "state"],
            )?,
            instances_created: whole(
                "vmhost_instances_created",
                "Instances created by the plugin's current generation",
                by_plugin,
            )?,
            plugin_loaded: whole(
                "vmhost_plugin_loaded",
                "Whether the plugin's code is in memory",
                by_plugin,
            )?,
            plugin_unloads: whole(
                "vmhost_plugin_unloads",
                "How often the code of the plugin's current generation was unloaded",
                by_plugin,
            )?,
            store_objects: whole(
                "vmhost_store_objects",
                "Objects in all stores of a kind, over all namespaces and selectors",
                &["kind"],
            )?,
            store_bytes: whole(
                "vmhost_store_bytes",
                "Approximate bytes in all stores of a kind",
                &["kind"],
            )?,
            watch_silence: float(
                "vmhost_watch_silence_seconds",
                "Seconds since the watch last received data: an event, a bookmark, a part of a list, or response headers",
                &["kind", "namespace", "label_selector", "field_selector"],
            )?,
            key_warnings: whole(
                "vmhost_key_warnings",
                "Keys whose turns show a warning, by the warning's name",
                &["controller", "warning"],
            )?,
            cluster_up: whole(
                "vmhost_cluster_up",
                "Whether a member cluster answers and takes the host's credentials",
                &["cluster"],
            )?,
            cluster_depth: whole(
                "vmhost_cluster_depth",
                "Keys that wait for a worker, in all queues of a member cluster",
                &["cluster"],
            )?,
            cluster_store_bytes: whole(
                "vmhost_cluster_store_bytes",
                "Approximate bytes in all stores of a member cluster",
                &["cluster"],
            )?,
        })
    }

    pub(super) fn reset(&self) {
        let Self {
            depth,
            unfinished,
            longest_running,
            max_concurrent,
            active_workers,
            instances,
            instances_created,
            plugin_loaded,
            plugin_unloads,
            store_objects,
            store_bytes,
            watch_silence,
            key_warnings,
            cluster_up,
            cluster_depth,
            cluster_store_bytes,
        } = self;
        for gauge in [unfinished, longest_running, watch_silence] {
            gauge.reset();
        }
        for gauge in [
            depth,
            max_concurrent,
            active_workers,
            instances,
            instances_created,
            plugin_loaded,
            plugin_unloads,
            store_objects,
            store_bytes,
            key_warnings,
            cluster_up,
            cluster_depth,
            cluster_store_bytes,
        ] {
            gauge.reset();
        }
    }

    /// Sets the gauges of a plugin's current generation.
    pub(crate) fn plugin(&self, name: &str, stats: &vmhost_engine::InstanceStats) {
        for (state, count) in [("live", stats.live), ("idle", stats.idle)] {
            self.instances
                .with_label_values(&[name, state])
                .set(count as i64);
        }
        let by_plugin = &[name];
        self.instances_created
            .with_label_values(by_plugin)
            .set(stats.created as i64);
        self.plugin_loaded
            .with_label_values(by_plugin)
            .set(stats.loaded.into());
        self.plugin_unloads
            .with_label_values(by_plugin)
            .set(stats.unloads as i64);
    }

    /// Adds a controller with this many workers to the gauges of its label, which it has in common
    /// with the same controller in other clusters.
    pub(crate) fn controller(&self, label: &str, workers: u32, queue: &Stats) {
        let (by_controller, by_queue) = (&[label], &[label, label]);
        // The low lane gets the priority that controller-runtime gives to the initial list.
        for (priority, depth) in [("-100", queue.low), ("0", queue.high)] {
            self.depth
                .with_label_values(&[label, label, priority])
                .add(depth as i64);
        }
        self.unfinished
            .with_label_values(by_queue)
            .add(queue.unfinished.as_secs_f64());
        let longest = self.longest_running.with_label_values(by_queue);
        longest.set(longest.get().max(queue.longest_running.as_secs_f64()));
        self.max_concurrent
            .with_label_values(by_controller)
            .add(workers.into());
        self.active_workers
            .with_label_values(by_controller)
            .add(queue.processing as i64);
    }

    /// Sets whether a member cluster works.
    pub(crate) fn cluster(&self, name: &str, is_up: bool) {
        self.cluster_up.with_label_values(&[name]).set(is_up.into());
    }

    /// Adds keys that wait in queues to the gauge of a member cluster.
    pub(crate) fn cluster_depth(&self, name: &str, queue: &Stats) {
        self.cluster_depth
            .with_label_values(&[name])
            .add((queue.high + queue.low) as i64);
    }

    /// Adds a store to the gauges of a member cluster.
    pub(crate) fn cluster_store(&self, name: &str, bytes: usize) {
        self.cluster_store_bytes
            .with_label_values(&[name])
            .add(bytes as i64);
    }

    /// Adds one store to the gauges of its kind, which may have several.
    pub(crate) fn store(&self, spec: &WatchSpec, objects: usize, bytes: usize) {
        let kind = spec.kind.to_string();
        let by_kind = &[kind.as_str()];
        self.store_objects
            .with_label_values(by_kind)
            .add(objects as i64);
        self.store_bytes
            .with_label_values(by_kind)
            .add(bytes as i64);
    }

    /// Sets how many of a controller's keys show a warning.
    pub(crate) fn key_warnings(&self, controller: &str, warning: &str, keys: usize) {
        self.key_warnings
            .with_label_values(&[controller, warning])
            .set(keys as i64);
    }

    /// Sets how long a watch has been silent.
    pub(crate) fn watch(&self, spec: &WatchSpec, silence: Duration) {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let labels = [
            spec.kind.to_string(),
            text(&spec.namespace),
            text(&spec.label_selector),
            text(&spec.field_selector),
        ];
        let gauge = self.watch_silence.with_label_values(&labels);
        // While a watch is being replaced, two watches have these labels.
        gauge.set(gauge.get().max(silence.as_secs_f64()));
    }
}
