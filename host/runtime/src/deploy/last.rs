//! The result of a plugin's last reload: plain data for the status. It must not know how a reload
//! is done.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The result of the last change of a plugin's file, or of a rollback since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastReload {
    /// `swapped`, `unchanged`, `failed`, `rolled_back`, or `refused` for a version that was rolled
    /// back, as the metric `vmhost_reloads_total` counts them.
    pub result: String,
    /// The time of the result, in UTC: `2026-01-31T12:00:00Z`.
    pub at: String,
    /// A summary of the swap, or the error.
    pub about: String,
    /// When the same file is retried after a failure, in UTC. `None` if there was no failure, or if
    /// only another file can succeed.
    pub next_try: Option<String>,
}

impl LastReload {
    /// A result with the current time. `next_try` is the pause before the same file is retried.
    pub(crate) fn now(result: &str, about: String, next_try: Option<Duration>) -> Arc<Self> {
        let now = Timestamp::now().as_second();
        let text = |second| Timestamp::from_second(second).map(|at| at.to_string());
        Arc::new(Self {
            result: result.to_owned(),
            at: text(now).unwrap_or_default(),
            about,
            // Rounded up, so that the retry never comes before this second.
            next_try: next_try.and_then(|after| text(now + after.as_secs() as i64 + 1).ok()),
        })
    }
}
