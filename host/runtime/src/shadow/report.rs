//! The documents about a shadow: what the admin address serves and `vmhost shadow status` and
//! `vmhost why --shadow` read. Plain data; fields are only ever added, and readers ignore unknown
//! ones. This module must not know how a shadow is run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::journal::story::{Effect, Field};

/// A plugin's present or last shadow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShadowReport {
    /// The plugin.
    pub plugin: String,
    /// `loading`, `running` or `ended`.
    pub state: String,
    /// Why it ended.
    pub ended: Option<String>,
    /// `sha256:` and the candidate's digest; empty while it loads.
    pub candidate: String,
    /// The candidate's version, as it describes itself.
    pub version: String,
    /// `sha256:` and the digest of the live version whose turn was compared last.
    pub live: String,
    /// When it was started: RFC 3339 with microseconds.
    pub since: String,
    /// When it will end by itself; absent if it does not.
    pub until: Option<String>,
    /// When it ended.
    pub at: Option<String>,
    /// The number of turns, by their result.
    pub counts: Counts,
    /// Why turns were not compared, or how calls of the candidate failed, the most frequent first.
    pub reasons: Vec<Reason>,
    /// The kinds of differences, the most frequent first.
    pub differences: Vec<Group>,
    /// Number of differences of kinds that are not listed.
    pub other_differences: u64,
    /// The places that are not compared, because the live version differs from itself there when a
    /// turn is run again.
    pub masked: Vec<Masked>,
}

/// The number of turns, by their result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Both versions want the same.
    pub same: u64,
    /// Of these, turns with differences only in places where the live version differs from itself
    /// too.
    pub masked: u64,
    /// The versions want something different.
    pub differs: u64,
    /// Of these, turns in which the candidate drew more clock readings or random numbers than the
    /// live version: that alone may be the cause of a difference.
    pub drew: u64,
    /// The candidate's call failed, and the live version's succeeded or failed in another way.
    pub failed: u64,
    /// The versions could not be compared.
    pub incomparable: u64,
    /// Turns that were dropped because the queue was full.
    pub dropped: u64,
    /// Turns that are waiting.
    pub waiting: u64,
    /// Turns that the live version's code has run once more.
    pub rerun: u64,
}

/// Why turns were not compared, or how calls of the candidate failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reason {
    /// `incomparable` or `failed`.
    pub result: String,
    /// `read`, `record`, `draws`, `unseen`, `controller`, `finalizer`, `other`, `starved`, `busy`;
    /// or `trap`, `deadline`, `memory`, `malformed`.
    pub reason: String,
    /// The details: the read, the field.
    pub about: String,
    /// Number of turns.
    pub turns: u64,
    /// The key of one of them.
    pub example: String,
}

/// A kind of difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Group {
    /// The controller's label.
    pub controller: String,
    /// `changed`: both versions want the effect, but with different content; `missing`: only the
    /// live version wants it; `extra`: only the candidate wants it.
    pub what: String,
    /// The verb of the effect; or `next` (what comes next), `order` (of the effects), `call` (how
    /// it ended).
    pub verb: String,
    /// The kind that the effect writes, with its subresource: `VirtualMachine/status`.
    pub kind: String,
    /// The field, with `[*]` for any item of a list. Empty for the whole effect.
    pub path: String,
    /// Number of differences.
    pub count: u64,
    /// The first one.
    pub example: Example,
}

/// A difference as an example.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Example {
    /// The key.
    pub key: String,
    /// When its turn began.
    pub time: String,
    /// The value that the live version wants.
    pub live: Option<Value>,
    /// The value that the candidate wants.
    pub candidate: Option<Value>,
}

/// A place that is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Masked {
    /// The controller's label.
    pub controller: String,
    /// As in [`Group`].
    pub verb: String,
    /// As in [`Group`].
    pub kind: String,
    /// As in [`Group`]; for the verb `call` the two ends: `deadline -> returned`.
    pub path: String,
}

/// The last turns of a key in which the candidate did something else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShadowStory {
    /// The turns, oldest first.
    pub turns: Vec<ShadowTurn>,
}

/// What the candidate would have done in one turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShadowTurn {
    /// When the turn of the live version began, as in its own record.
    pub time: String,
    /// The controller's label.
    pub controller: String,
    /// The kind of the key.
    pub kind: String,
    /// The key: `namespace/name`, or `name`.
    pub key: String,
    /// The live generation.
    pub generation: u64,
    /// `sha256:` and the candidate's digest.
    pub candidate: String,
    /// `differs` or `failed`.
    pub result: String,
    /// What the call came to: `returned`, `broke: ...`.
    pub act: String,
    /// The effects that the candidate wanted. None of them was carried out.
    pub effects: Vec<Effect>,
    /// What it wanted next.
    pub next: Option<Value>,
    /// The differences to what the live version wanted.
    pub differences: Vec<Differing>,
}

/// One difference of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Differing {
    /// As in [`Group`].
    pub what: String,
    /// As in [`Group`].
    pub verb: String,
    /// As in [`Group`].
    pub kind: String,
    /// The object: `VirtualMachine default/x`.
    pub object: String,
    /// The fields. For a changed effect, the old value is the live version's and the new one the
    /// candidate's; else they are the fields that the effect changes.
    pub fields: Vec<Field>,
    /// The error of the candidate's call.
    pub message: Option<String>,
}
