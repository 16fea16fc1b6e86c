//! The list of keys that the admin address serves at `/keys`: its parameters and its document.
//! Plain data; fields are only ever added, and readers ignore unknown ones. This module must not
//! know the running controllers.
//!
//! A host may have 20,000 keys, so a list has pages: each page contains the parameter that asks for
//! the next one.

use serde::{Deserialize, Serialize};

use crate::journal::story::Warning;

pub(crate) mod pick;

/// The path of the keys.
pub const KEYS_PATH: &str = "/keys";

/// The number of keys on a page if the query gives no limit.
pub(crate) const LIMIT: usize = 50;

/// The largest number of keys on a page.
pub(crate) const LARGEST: usize = 500;

/// `/keys`: which keys are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeysQuery {
    /// The state of the keys.
    pub state: KeyState,
    /// Only keys of this controller, by its label: `vm/virtualmachines`.
    pub controller: Option<String>,
    /// Only keys whose name, `namespace/name`, has this part.
    pub text: Option<String>,
    /// Only this many, up to 500. Without it, 50.
    pub limit: Option<usize>,
    /// Only keys after this place: [`KeyList::next`] of the page before.
    pub after: Option<String>,
}

/// The state of the keys that a query asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyState {
    /// Keys that fail, are held, or have a warning.
    #[default]
    Troubled,
    /// Keys whose last turn failed.
    Failing,
    /// Keys that are held because their own turns kept waking them.
    Held,
    /// Keys with a warning.
    Warned,
    /// All keys.
    All,
}

/// The answer to `/keys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyList {
    /// The number of keys that the query asks for, on all pages.
    pub total: usize,
    /// The keys of this page, by the controller's label, then by name.
    pub keys: Vec<ListedKey>,
    /// The value of `after` for the next page. Absent on the last page.
    pub next: Option<String>,
}

/// A key of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListedKey {
    /// The controller's label.
    pub controller: String,
    /// The kind: `VirtualMachine.v1.cloud.waibizi.com`.
    pub kind: String,
    /// The key: `namespace/name`, or `name`.
    pub key: String,
    /// How the key fails. Absent if its last turn did not fail.
    pub failure: Option<Failure>,
    /// How many milliseconds the key is still held because its own turns kept waking it. Absent if
    /// it is not held.
    pub held_ms: Option<u64>,
    /// The warnings about the key.
    pub warnings: Vec<Warning>,
}

/// How a key fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Failure {
    /// Failures since the last success.
    pub attempt: u32,
    /// What the last failed turn came to, as its record shows. Absent if the record was dropped for
    /// newer ones.
    pub why: Option<String>,
    /// The rights that the key waits for: `patch apps.example.com/status in namespace a`.
    pub waits_for: Vec<String>,
}
