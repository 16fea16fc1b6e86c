//! The document that `/debug/state` serves and `vmhost status` reads: the plugins and their state.
//! Plain data.
//!
//! Its size is bounded: it holds counts, never a list of all keys. Fields are only ever added, and
//! readers ignore unknown ones. This module must not know how the state is found out or printed.

use serde::{Deserialize, Serialize};

pub use crate::canary::told::CanaryState;
pub use crate::deploy::history::report::RollbackSuggested;
pub use crate::deploy::last::LastReload;
use crate::journal::story::Warning;
pub use crate::site::sites::ClusterState;

/// The most warnings that are shown.
pub const WARNINGS_SHOWN: usize = 100;

/// The number of failing keys that are named per controller.
pub const FAILING_SHOWN: usize = 100;

/// The state of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostState {
    /// The version of vmhost.
    pub version: String,
    /// The process id, in the host's own PID namespace.
    pub pid: u32,
    /// The time of this state by the host's clock, in RFC 3339.
    #[serde(default)]
    pub time: String,
    /// Whether the host is shutting down.
    pub stopping: bool,
    /// `alone` without an election, else `leading` or `standby`.
    pub leader: String,
    /// The plugins, by name.
    pub plugins: Vec<PluginState>,
    /// One entry for each watch, by cluster, kind and namespace.
    pub stores: Vec<StoreState>,
    /// The clusters besides the host's own, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterState>,
    /// The first warnings about keys.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// The number of all warnings about keys.
    #[serde(default)]
    pub warned: usize,
}

/// A plugin and its current generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginState {
    /// The name in the plugin's description.
    pub name: String,
    /// The version in the description. Empty if there is none.
    pub version: String,
    /// The generation number, from 1. Each swap adds one.
    pub generation: u64,
    /// `sha256:` and the component's digest in hex.
    pub digest: String,
    /// `baseline`, `optimised`, or `unloaded` until the next call.
    pub code: String,
    /// The plugin's instances.
    pub instances: Instances,
    /// The more critical of the two circuit breakers (for `reconcile` and for `map-changes`): the
    /// open one, or the one with more failures.
    pub breaker: BreakerState,
    /// The controllers, by name.
    pub controllers: Vec<ControllerState>,
    /// The webhooks and then the conversions, in the order of the description.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookState>,
    /// The result of the last change of the plugin's file, or of a later rollback, and the time of
    /// the next try after a failure. Absent if there was none.
    pub reload: Option<LastReload>,
    /// The canary that runs, or the last one. Absent if there was none.
    #[serde(default)]
    pub canary: Option<CanaryState>,
    /// A rollback that may help, because all calls of this generation have failed since its swap.
    #[serde(default)]
    pub rollback_suggested: Option<RollbackSuggested>,
}

/// A webhook or a conversion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookState {
    /// The name in the description.
    pub name: String,
    /// The label, as logs, turns and metrics name it: `guard/images`.
    pub label: String,
    /// `validating`, `mutating` or `conversion`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Why it cannot answer yet. Absent: it can.
    #[serde(default)]
    pub waiting: Option<String>,
    /// Whether the API server is told to ask it, as of the last look, of which there is one every
    /// 10 s. Absent: it is not known, or webhooks are not served.
    #[serde(default)]
    pub registered: Option<bool>,
    /// What came of its reviews.
    #[serde(default)]
    pub reviews: ReviewCounts,
}

/// The reviews of a webhook or a conversion since the host started, over all generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewCounts {
    /// All of them.
    pub total: u64,
    /// Those that it denied.
    pub denied: u64,
    /// Those without an answer.
    pub failed: u64,
}

/// Instances of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instances {
    /// Existing instances, idle or in a call.
    pub live: usize,
    /// Idle instances.
    pub idle: usize,
    /// Instances created since this generation was loaded.
    pub created: u64,
}

/// A circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakerState {
    /// Whether the breaker is open, so that calls wait.
    pub open: bool,
    /// Consecutive failed calls.
    pub failures: u32,
    /// Milliseconds until a trial call.
    pub pause_ms: u64,
}

/// A controller and its queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerState {
    /// The controller's name in the description.
    pub name: String,
    /// The controller's label, as turns and metrics name it: `vm/virtualmachines`.
    #[serde(default)]
    pub label: String,
    /// The kind of its keys: `VirtualMachine.v1.cloud.waibizi.com`.
    pub kind: String,
    /// Keys processed at once.
    pub workers: u32,
    /// Whether the workers run.
    pub started: bool,
    /// The workqueue.
    pub queue: QueueState,
    /// Keys in back-off.
    pub back_offs: usize,
    /// Keys that are held because their own turns kept waking them.
    pub held: usize,
    /// Objects with unmapped changes.
    pub unmapped: usize,
    /// Keys whose last turn failed.
    pub failing: Failing,
    /// The turns since the host started, in all clusters.
    #[serde(default)]
    pub turns: TurnCounts,
    /// The member cluster of its keys. Absent at home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

/// How many turns a controller had, over all generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnCounts {
    /// All turns. A worker adds its turns at least every 100 ms while it works.
    pub total: u64,
    /// Those that failed.
    pub failed: u64,
}

/// The keys of a workqueue, by what they wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueState {
    /// Keys of fresh changes that wait for a worker.
    pub high: usize,
    /// Keys of initial lists, resyncs and swaps that wait for a worker.
    pub low: usize,
    /// Keys that become ready later, including those in back-off.
    pub delayed: usize,
    /// Keys that a worker processes.
    pub processing: usize,
    /// How long the longest of these turns has been running.
    pub longest_running_ms: u64,
}

/// The number of keys whose last turn failed, and up to [`FAILING_SHOWN`] of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failing {
    /// The number of failing keys.
    pub total: usize,
    /// Some of the keys, by name.
    pub keys: Vec<FailingKey>,
}

/// A key whose last turn failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailingKey {
    /// `namespace/name`.
    pub key: String,
    /// Failures since the last success.
    pub attempt: u32,
    /// What the last failed turn came to, as its record shows. If the record was dropped for newer
    /// ones, the number and the code of the effect that the API server refused; `None` if it
    /// refused no effect.
    pub last: Option<String>,
}

/// A store and the watch that fills it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreState {
    /// The member cluster. Absent at home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The kind: `VirtualMachine.v1.cloud.waibizi.com`.
    pub kind: String,
    /// The namespace. `None` for all namespaces, or for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// The label selector. `None` for all objects.
    pub label_selector: Option<String>,
    /// The field selector. `None` for all objects.
    pub field_selector: Option<String>,
    /// The fields that are kept besides the metadata, as a short text.
    pub wanted: String,
    /// `starting`, `waitingForKind`, `listing`, `watching`, `forbidden` or `failing`.
    pub phase: String,
    /// A description of the phase, on one line.
    pub about: String,
    /// Whether the first list has ended.
    pub synced: bool,
    /// The number of objects.
    pub objects: usize,
    /// Approximate memory use in bytes.
    pub bytes: usize,
    /// The number of lists after the first.
    pub relists: u64,
    /// Objects that could not be stored.
    pub skipped: u64,
    /// The number of failed requests.
    pub failures: u64,
    /// The number of users: controllers of each generation, and narrations of `vmhost dev`.
    pub subscribers: usize,
    /// Milliseconds since the watch last received data. `null` before the first data.
    pub silence_ms: Option<u64>,
}
