//! How the last reload of a plugin ended: plain data, for the status.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How the last change of a plugin's file ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastReload {
    /// `swapped`, `unchanged` or `failed`, as the metric `vmhost_reloads_total` counts them.
    pub result: String,
    /// When, in UTC: `2026-01-31T12:00:00Z`.
    pub at: String,
    /// What was swapped, or why not.
    pub about: String,
    /// When what failed is tried again with the same file, in UTC. None after a failure: only
    /// another file can mend it.
    pub next_try: Option<String>,
}

impl LastReload {
    /// A reload that ended now. `next_try`: after how long the same file is tried again.
    pub(crate) fn now(result: &str, about: String, next_try: Option<Duration>) -> Arc<Self> {
        let now = Timestamp::now().as_second();
        let text = |second| Timestamp::from_second(second).map(|at| at.to_string());
        Arc::new(Self {
            result: result.to_owned(),
            at: text(now).unwrap_or_default(),
            about,
            // Rounded up: it has not been tried before that second.
            next_try: next_try.and_then(|after| text(now + after.as_secs() as i64 + 1).ok()),
        })
    }
}
