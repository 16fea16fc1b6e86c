//! `request.json` of a recorded case, and the layout of all its files. This module must not know
//! where the parts of a file come from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use vmhost_core::Refusal;

use crate::journal::case::Random;
use crate::journal::record::TurnRecord;

/// `request.json`. A value that equals the default is not written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'r> {
    controller: &'r str,
    /// The key, if the object is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Key<'r>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleting: bool,
    #[serde(skip_serializing_if = "is_zero")]
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Last>,
    now: String,
    random: Random,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    settings: &'r BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<Box<RawValue>>,
}

/// `last` of `request.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Last {
    effect: u32,
    code: u16,
    reason: String,
    message: String,
}

#[derive(Serialize)]
struct Key<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'r str>,
    name: &'r str,
}

impl<'r> Request<'r> {
    /// Creates the request of a turn of this controller, with the clock readings and random numbers
    /// of its call. Sensitive values must be hidden in `last`, `settings` and `previous`.
    pub(super) fn new(
        record: &'r TurnRecord,
        controller: &'r str,
        (last, settings): (Option<Last>, &'r BTreeMap<String, String>),
        previous: Option<Box<RawValue>>,
        (now, random): (String, Random),
    ) -> Self {
        let key = Key {
            namespace: record.key.namespace(),
            name: record.key.name(),
        };
        Self {
            controller,
            key: record.object.is_none().then_some(key),
            deleting: record.deleting,
            attempt: record.attempt,
            last,
            now,
            random,
            settings,
            previous,
        }
    }
}

impl From<&Refusal> for Last {
    fn from(refusal: &Refusal) -> Self {
        Self {
            effect: refusal.effect,
            code: refusal.code,
            reason: refusal.reason.clone(),
            message: refusal.message.clone(),
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Formats a file.
pub(super) fn pretty(document: &impl Serialize) -> String {
    // Serialising cannot fail, since there are only strings, numbers and JSON.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
