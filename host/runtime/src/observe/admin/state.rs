//! The document that `/debug/state` serves and `vmhost status` reads: what runs, and how it does. Plain data.
//!
//! It is bounded: numbers, never a list of all keys. Fields are only added; a reader ignores those that it does not know.

use serde::{Deserialize, Serialize};

pub use crate::deploy::last::LastReload;

/// Failing keys of one controller that are named.
pub const FAILING_SHOWN: usize = 100;

/// A host at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostState {
    /// Version of vmhost.
    pub version: String,
    /// Process id, in the host's own numbering.
    pub pid: u32,
    /// Does it shut down?
    pub stopping: bool,
    /// `alone`: there is no election; `leading`; `standby`: another host works.
    pub leader: String,
    /// By name.
    pub plugins: Vec<PluginState>,
    /// One for each watch, by kind and namespace.
    pub stores: Vec<StoreState>,
}

/// A plugin and its present generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginState {
    /// The name in its description.
    pub name: String,
    /// The version in its description; empty: it names none.
    pub version: String,
    /// From 1; a swap adds one.
    pub generation: u64,
    /// `sha256:` and the component's digest in hex.
    pub digest: String,
    /// `baseline`, `optimised`, or `unloaded` until the next call.
    pub code: String,
    /// Its instances.
    pub instances: Instances,
    /// Its circuit breakers, for its policy and for its `map-changes`: the one that is open, or has
    /// counted more.
    pub breaker: BreakerState,
    /// By name.
    pub controllers: Vec<ControllerState>,
    /// How the last change of its file ended, and when what failed is tried again. Absent
    /// if it never changed.
    pub reload: Option<LastReload>,
}

/// Instances of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instances {
    /// Alive, idle or in a call.
    pub live: usize,
    /// Idle.
    pub idle: usize,
    /// Made since this generation was loaded.
    pub created: u64,
}

/// A circuit breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BreakerState {
    /// Do calls wait?
    pub open: bool,
    /// Failed calls in a row.
    pub failures: u32,
    /// Until a call is tried, in milliseconds.
    pub pause_ms: u64,
}

/// A controller and its queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerState {
    /// The name in the description.
    pub name: String,
    /// The kind of its keys: `VirtualMachine.v1.cloud.waibizi.com`.
    pub kind: String,
    /// Keys worked on at once.
    pub workers: u32,
    /// Do its workers run?
    pub started: bool,
    /// Its keys.
    pub queue: QueueState,
    /// Keys that wait for a back-off.
    pub back_offs: usize,
    /// Keys that are held since they kept themselves busy.
    pub held: usize,
    /// Changes that the policy has still to map.
    pub unmapped: usize,
    /// Keys whose last turn was no success.
    pub failing: Failing,
}

/// Keys of a queue, by what they wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueState {
    /// Fresh changes that wait for a worker.
    pub high: usize,
    /// Keys of initial lists, resyncs and swaps that wait for a worker.
    pub low: usize,
    /// Keys that come up later, back-offs among them.
    pub delayed: usize,
    /// Keys with a worker.
    pub processing: usize,
    /// How long the oldest of these turns has been going.
    pub longest_running_ms: u64,
}

/// Keys whose last turn was no success: how many, and [`FAILING_SHOWN`] of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failing {
    /// How many there are.
    pub total: usize,
    /// Some of them, by name.
    pub keys: Vec<FailingKey>,
}

/// A key whose last turn was no success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailingKey {
    /// `namespace/name`.
    pub key: String,
    /// Failures since the last success.
    pub attempt: u32,
    /// The effect that the API server refused last, and why; none: it refused none.
    pub last: Option<String>,
}

/// A store and the watch that fills it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreState {
    /// The kind: `VirtualMachine.v1.cloud.waibizi.com`.
    pub kind: String,
    /// None: all namespaces, or a cluster-scoped kind.
    pub namespace: Option<String>,
    /// None: all objects.
    pub label_selector: Option<String>,
    /// None: all objects.
    pub field_selector: Option<String>,
    /// Fields that are kept besides the metadata, as a short text.
    pub wanted: String,
    /// `starting`, `waitingForKind`, `listing`, `watching`, `forbidden` or `failing`.
    pub phase: String,
    /// What the phase means here, on one line.
    pub about: String,
    /// Has the first list ended?
    pub synced: bool,
    /// Objects.
    pub objects: usize,
    /// Memory, about.
    pub bytes: usize,
    /// Lists after the first.
    pub relists: u64,
    /// Objects that could not be kept.
    pub skipped: u64,
    /// Failed requests.
    pub failures: u64,
    /// Who uses it: a controller of each generation, a narration of `vmhost dev`.
    pub subscribers: usize,
    /// How long ago the watch's last sign of life came, in milliseconds; `null` before the first.
    pub silence_ms: Option<u64>,
}
