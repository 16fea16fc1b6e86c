//! The state of this host in an election: plain data that one task writes and any task reads.

use std::time::Instant;

/// Until when this host leads, and whether it is ending.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub(super) until: Option<Instant>,
    pub(super) ending: bool,
    pub(super) ended: Option<Ended>,
}

/// How the host left the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It gives the lease back.
    GiveBack,
    /// It lets the lease expire.
    RunOut,
}

impl Standing {
    /// Returns whether this host leads now. It compares with the clock, since a lease ends without
    /// a message.
    pub(super) fn leads(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }
}
