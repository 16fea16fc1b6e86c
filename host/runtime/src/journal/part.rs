//! The records of one thread of workers. This module must not know other threads, or what a record
//! is used for.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::journal::record::Quiet;
use crate::journal::ring::Ring;

/// For each place for quiet turns, so many bytes of names may be kept; all places share them.
const NAME: usize = 48;

/// The records of one thread.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) turns: Ring,
    pub(super) failed: Ring,
    /// One place for each value of the shortened hash of a key. Of several keys with the same
    /// value, the last record stays.
    pub(super) quiet: Vec<Option<Quiet>>,
    /// The bytes of the names of the keys in `quiet`.
    pub(super) names: usize,
    /// The place at which room for long names is made next.
    hand: usize,
    /// Number of quiet turns.
    pub(super) quiet_turns: u64,
    /// Number of records that were dropped for newer ones.
    pub(super) dropped: u64,
}

impl Part {
    /// Records a quiet turn, in at most this many bytes together with all others.
    pub(super) fn quiet(&mut self, turn: Quiet, most: usize) {
        self.quiet_turns += 1;
        if self.quiet.is_empty() {
            let places = most / (size_of::<Option<Quiet>>() + NAME);
            self.quiet.resize(places.max(1), None);
        }
        let hash = FixedState::default().hash_one(&turn.key) as usize;
        let at = hash % self.quiet.len();
        let place = &mut self.quiet[at];
        if let Some(known) = place
            && known.is_of(&turn)
        {
            known.add(turn);
            return;
        }
        self.names += turn.key.as_str().len();
        let before = place.replace(turn);
        self.names -= before.map_or(0, |before| before.key.as_str().len());
        self.make_room(at);
    }

    /// Drops records whose names leave no room for those of others, but not the one at this place.
    fn make_room(&mut self, keep: usize) {
        let places = self.quiet.len();
        let mut left = places;
        while self.names > places * NAME && left > 0 {
            left -= 1;
            self.hand = (self.hand + 1) % places;
            if self.hand != keep
                && let Some(gone) = self.quiet[self.hand].take()
            {
                self.names -= gone.key.as_str().len();
            }
        }
    }
}
