//! How this host stands in an election. Plain data that one task writes and everybody reads.

use std::time::Instant;

/// Until when this host leads, and whether it is ending.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub(super) until: Option<Instant>,
    pub(super) ending: bool,
    pub(super) ended: Option<Ended>,
}

/// The last word: it leads no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The lease is given back.
    GiveBack,
    /// The lease runs out.
    RunOut,
}

impl Standing {
    /// Looks at the clock: a lease ends without anybody saying so.
    pub(super) fn leads(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }
}
