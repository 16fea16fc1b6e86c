//! The state of an informer, for logs and pages. It must not know how it is shown.

use std::fmt;
use std::time::Duration;

use super::spec::WatchSpec;

/// What an informer is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No request was answered yet.
    #[default]
    Starting,
    /// The cluster does not serve the kind; the informer waits until it does.
    WaitingForKind,
    /// The informer lists.
    Listing,
    /// The store follows the cluster.
    Watching,
    /// RBAC denies the request.
    Forbidden {
        /// `watch` or `list`.
        verb: &'static str,
        /// The server's message.
        message: String,
    },
    /// The last request failed; the informer retries.
    Failing {
        /// The reason, on one line.
        reason: String,
    },
}

/// A snapshot of an informer. Formats as one line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InformerState {
    /// What the informer watches, and which fields and indexes it keeps for all its users
    /// (`spec.wanted` formats as a short text).
    pub spec: WatchSpec,
    /// The current phase.
    pub phase: Phase,
    /// Whether the first list has ended.
    pub synced: bool,
    /// Number of objects in the store.
    pub objects: usize,
    /// Approximate memory of the store in bytes.
    pub bytes: usize,
    /// The version up to which the store is complete.
    pub position: u64,
    /// Number of lists after the first.
    pub relists: u64,
    /// Number of objects that could not be kept.
    pub skipped: u64,
    /// Number of failed requests.
    pub failures: u64,
    /// Number of subscriptions that use the store. 0 if the informer is about to stop, or its users
    /// wait elsewhere for its first list.
    pub subscribers: usize,
    /// How long ago the last sign of life was: an event, a bookmark, a part of a list, or the head
    /// of an answer. `None` before the first.
    pub silence: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct Progress {
    pub phase: Phase,
    pub relists: u64,
    pub skipped: u64,
    pub failures: u64,
}

impl fmt::Display for InformerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = &self.spec.kind;
        let scope = WatchScope(&self.spec);
        match &self.phase {
            Phase::Starting => write!(f, "starting to watch {kind} {scope}"),
            Phase::WaitingForKind => write!(
                f,
                "kind {kind} is not served by the cluster yet: waiting for its CRD"
            ),
            Phase::Listing => write!(f, "listing {kind} {scope}"),
            Phase::Watching => write!(f, "watching {kind} {scope}: {} objects", self.objects),
            Phase::Forbidden { verb, message } => {
                write!(
                    f,
                    "forbidden to {verb} {kind} {scope} (missing RBAC); retrying: {message}"
                )
            }
            Phase::Failing { reason } => {
                write!(f, "watch {kind} {scope}: {reason}; retrying with backoff")
            }
        }
    }
}

/// Formats which objects of the kind are watched.
struct WatchScope<'a>(&'a WatchSpec);

impl fmt::Display for WatchScope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.namespace {
            Some(namespace) => write!(f, "in namespace {namespace}")?,
            None => f.write_str("in all namespaces")?,
        }
        for selector in [&self.0.label_selector, &self.0.field_selector]
            .into_iter()
            .flatten()
        {
            write!(f, " ({selector})")?;
        }
        Ok(())
    }
}
