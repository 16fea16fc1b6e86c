//! The state that file events leave for the task that reads the file. The watcher's thread writes
//! it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How often the file is polled, for file systems that send no events.
pub(super) const POLL: Duration = Duration::from_secs(5);

/// The events so far, merged. No event is lost, however many arrive.
#[derive(Debug, Default)]
pub(super) struct Signs {
    pub(super) writing: AtomicBool,
    pub(super) whole: AtomicBool,
    pub(super) look: Notify,
}

/// The meaning of an event for the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Something changed. The file must be read.
    Look,
    /// A process is writing the file in place.
    Writing,
    /// The writer has closed the file, or the file was replaced.
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
