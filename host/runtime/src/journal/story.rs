//! The turns of a key as a document: what the admin address serves and `vmhost why` reads. Plain
//! data; fields are only ever added, and readers ignore unknown ones. This module must not know the
//! journal.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The turns of one key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Story {
    /// The turns that are still recorded, oldest first.
    pub turns: Vec<Turn>,
    /// Changes of the key's object that no turn has followed, or not yet.
    pub pending: Vec<Woken>,
    /// The warnings about the key.
    pub warnings: Vec<Warning>,
    /// Number of records of the host that were dropped for newer ones.
    pub dropped: u64,
}

/// One turn, or several quiet ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Turn {
    /// When it began: RFC 3339 with microseconds.
    pub time: String,
    /// The controller's label: `vm/virtualmachines`.
    pub controller: String,
    /// The kind of the key: `VirtualMachine.v1.cloud.waibizi.com`.
    pub kind: String,
    /// The key: `namespace/name`, or `name`.
    pub key: String,
    /// The plugin's generation.
    pub generation: u64,
    /// `sha256:` and the digest of its component.
    pub digest: String,
    /// The digest of the plugin's settings, by a key of this process; absent without settings.
    pub settings: Option<String>,
    /// What woke it, up to 8.
    pub causes: Vec<Woken>,
    /// How many causes there were.
    pub cause_count: u64,
    /// Milliseconds that the key waited.
    pub wait_ms: f64,
    /// `high` or `low`.
    pub lane: String,
    /// Failures since the last success.
    pub attempt: u32,
    /// The refusal of the last turn that the policy was told.
    pub refusal: Option<String>,
    /// Whether the policy was asked to clean up.
    pub deleting: bool,
    /// The version of the object that it saw; absent if the object was gone.
    pub version: Option<u64>,
    /// The object that it saw.
    pub object: Option<Value>,
    /// The object of the last successful turn, if the controller asks for it.
    pub previous: Option<Value>,
    /// What the policy read.
    pub reads: Vec<Read>,
    /// The HTTP requests of the policy to services outside of the cluster.
    pub http: Vec<Http>,
    /// How it went, in a few words: `returned`, `broke: ...`, `added the finalizer`, `denied the
    /// CREATE of Pod.v1: ...`, ...
    pub act: String,
    /// What the policy wants next: `awaitChange`, `{"requeueAfterMs":5000}`, ...
    pub next: Option<Value>,
    /// The effects, with what became of them.
    pub effects: Vec<Effect>,
    /// `success`, `error`, `requeue`, `requeue_after` or `terminal`; of a review `error` or
    /// `denied`.
    pub result: String,
    /// The turn's log line about its end.
    pub message: Option<String>,
    /// What the queue does with the key, in a few words.
    pub decision: String,
    /// Milliseconds of the policy's call.
    pub call_ms: f64,
    /// Milliseconds of the whole turn.
    pub took_ms: f64,
    /// Number of quiet turns that this entry stands for; 0 for a single turn.
    pub quiet: u32,
    /// When the first of these began.
    pub since: Option<String>,
    /// Whether the texts were too large to keep: objects, reads and effects are missing, and the
    /// turn cannot be replayed.
    pub cut: bool,
    /// The digests of these texts.
    pub digests: Option<Digests>,
}

/// The digests of texts that were too large to keep, by a key of this process: equal texts have
/// equal digests, as long as it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Digests {
    /// Of the object that the turn saw; absent if the object was gone.
    pub object: Option<String>,
    /// Of the object of the last successful turn, if the controller asks for it.
    pub previous: Option<String>,
    /// Of all reads with their answers.
    pub reads: String,
    /// Number of reads.
    pub read_count: u32,
    /// Of all effects.
    pub effects: String,
    /// Number of effects.
    pub effect_count: u32,
}

/// A cause of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Woken {
    /// `changed`, `created`, `deleted`, `own-write`, `first-list`, `relist`, `rewound`, `mapped`,
    /// `timer`, `swap`, `granted`, `canary` (given to the candidate, or back), `review` (the API
    /// server asked a webhook), or `decision` (the retry or requeue of the last turn).
    pub cause: String,
    /// When the change arrived; absent if it was not logged.
    pub time: Option<String>,
    /// The object that changed: `VirtualMachine default/x`.
    pub object: Option<String>,
    /// The fields that changed, up to 8.
    pub fields: Vec<Field>,
    /// Number of fields that changed.
    pub field_count: u64,
    /// The field manager, as far as `managedFields` tells: `kubectl-edit`; several with the same
    /// time are joined by ` or `.
    pub manager: Option<String>,
    /// The version after the change.
    pub version: Option<u64>,
}

/// A field that changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Field {
    /// `spec.replicas`, `metadata.labels["app.kubernetes.io/name"]`, `spec.containers[0].image`.
    pub path: String,
    /// The value before; absent if there was none.
    pub old: Option<Value>,
    /// The value after; absent if there is none.
    pub new: Option<Value>,
}

/// A read of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Read {
    /// Whether the API server was asked, and not a store.
    pub live: bool,
    /// `get` or `list`.
    pub verb: String,
    /// `ConfigMap default/x`; for a list the kind with namespace and selectors.
    pub object: String,
    /// The number of objects in the answer.
    pub found: usize,
    /// The objects of the answer, as in the request. Empty where objects are left out.
    pub objects: Vec<Value>,
    /// Why there is no answer.
    pub error: Option<String>,
}

/// An HTTP request of the policy. Its headers and bodies are not told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Http {
    /// The method.
    pub method: String,
    /// The URL without its query.
    pub url: String,
    /// The status code of the response.
    pub status: Option<u16>,
    /// Why there is no response.
    pub error: Option<String>,
}

/// An effect with what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Effect {
    /// `apply`, `patch`, `create`, `delete`, `event` or `other`.
    pub verb: String,
    /// `VirtualMachine default/x`, and its subresource: `VirtualMachine default/x/status`.
    pub object: String,
    /// The effect as the policy returned it, in the form of a test case.
    pub effect: Value,
    /// The fields that it changes, as far as the object before it is known.
    pub fields: Vec<Field>,
    /// `written`, `unchanged`, `gone`, `repeated`, `refused`, `unanswered` (no answer came, so that
    /// it may have been carried out), `sent` (an Event), or `not sent` (an earlier effect was
    /// refused).
    pub end: String,
    /// The version after the write.
    pub version: Option<u64>,
    /// The status code of a refusal; 0 if it was not carried out for another reason.
    pub code: Option<u16>,
    /// The text of a refusal, or why no answer came.
    pub message: Option<String>,
}

/// A warning about a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Warning {
    /// `self-waking`, `write-unchanged`, `fights-with`, `never-quiet`, `waiting-on` or
    /// `finalizer-stuck`.
    pub name: String,
    /// The controller's label.
    pub controller: String,
    /// The key: `namespace/name`, or `name`.
    pub key: String,
    /// What happens, with paths, managers and objects, on one line.
    pub text: String,
}
