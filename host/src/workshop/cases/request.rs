//! `request.json` and `conversion.json` as they are written. Plain data. This module must not know
//! what a case means for a plugin.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use vmhost_runtime::journal::case::Random;

/// `request.json`: values that differ from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct RequestFile {
    /// The name of the controller. Default: the only one, or the one of the object's kind.
    pub(crate) controller: Option<String>,
    /// The object's key. Default: the key of `object.json`.
    pub(crate) key: Option<KeyFile>,
    /// The object as of the last successful turn.
    pub(crate) previous: Option<Value>,
    /// Whether the object is handed out for clean-up. Default: as the host would decide.
    pub(crate) deleting: Option<bool>,
    /// Failures since the last success.
    pub(crate) attempt: u32,
    /// The refused effect of the last turn.
    pub(crate) last: Option<RefusalFile>,
    pub(crate) settings: BTreeMap<String, String>,
    /// The changes of a `map-changes` call.
    pub(crate) map_changes: Option<Vec<ChangeFile>>,
    /// The first reading of the wall clock in a recorded call: RFC 3339.
    pub(crate) now: Option<String>,
    /// The clock readings and random numbers that a recorded call drew.
    pub(crate) random: Option<Random>,
}

/// The key of an object of the controller's kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyFile {
    /// `None` for a cluster-scoped kind.
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// `refusal` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusalFile {
    /// Position in the last turn's effects.
    #[serde(default)]
    pub(crate) effect: u32,
    /// HTTP status code.
    pub(crate) code: u16,
    /// `AlreadyExists`, `Conflict`, ...
    pub(crate) reason: String,
    /// The message for people.
    #[serde(default)]
    pub(crate) message: String,
}

/// `change` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeFile {
    /// The object before. `None` if it is new.
    #[serde(default)]
    pub(crate) old: Option<Value>,
    /// The object now. `None` if it is deleted.
    #[serde(default)]
    pub(crate) new: Option<Value>,
}

/// `conversion.json`: the objects of a conversion.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchFile {
    /// The `apiVersion` that the objects are to have.
    #[serde(rename = "desiredAPIVersion")]
    pub(crate) desired: String,
    pub(crate) objects: Vec<Value>,
}

impl RequestFile {
    /// Returns whether the case is a recorded turn, with its clock readings and random numbers.
    pub(crate) fn is_recorded(&self) -> bool {
        self.now.is_some() || self.random.is_some()
    }
}
