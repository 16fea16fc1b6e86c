//! What the events about a file say, from the thread that hears them to the task that reads it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How often the file is looked at without an event: for file systems that send none.
pub(super) const POLL: Duration = Duration::from_secs(5);

/// What the events have said. Nothing is lost, however many come.
#[derive(Debug, Default)]
pub(super) struct Signs {
    pub(super) writing: AtomicBool,
    pub(super) whole: AtomicBool,
    pub(super) look: Notify,
}

/// What an event says about the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Something happened: look.
    Look,
    /// Somebody is writing in place.
    Writing,
    /// The writer has closed it, or it was exchanged.
    Closed,
}

impl Signs {
    pub(super) fn note(&self, sign: Sign) {
        match sign {
            Sign::Writing => {
                self.whole.store(false, Ordering::Release);
                self.writing.store(true, Ordering::Release);
            }
            Sign::Closed => {
                self.writing.store(false, Ordering::Release);
                self.whole.store(true, Ordering::Release);
            }
            Sign::Look => {}
        }
        self.look.notify_one();
    }
}
