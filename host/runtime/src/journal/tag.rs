//! The tag that a key carries through the workqueue: what woke it, in twelve bytes. The texts of
//! the changes are in the wake log; the tag names the part of the log that belongs to the turn.
//! This module must not know the log.

use vmhost_queue::Tag;

/// What woke a key. Without any cause, the decision about its last turn woke it (a retry, a
/// requeue).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeTag {
    /// One bit for each [`Cause`].
    causes: u16,
    /// Number of adds.
    count: u16,
    /// The first and the last number in the wake log; 0 if nothing was logged. Numbers wrap around.
    first: u32,
    last: u32,
}

/// One kind of cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cause {
    /// A watch showed a change that this controller did not write.
    Changed,
    /// A watch showed a write of this controller.
    OwnWrite,
    /// The first list shows the object.
    Initial,
    /// A relist found the object changed.
    Relisted,
    /// The API server's versions went back.
    Rewound,
    /// The plugin's `map-changes` returned the key.
    Mapped,
    /// The period of a timer controller is over.
    Timer,
    /// The plugin was swapped.
    Swap,
    /// A right was granted.
    Granted,
    /// A canary gave the key to the candidate, or back to the live version.
    Canary,
    /// The API server asked a webhook.
    Review,
}

impl Cause {
    pub(crate) const ALL: [Self; 11] = [
        Self::Changed,
        Self::OwnWrite,
        Self::Initial,
        Self::Relisted,
        Self::Rewound,
        Self::Mapped,
        Self::Timer,
        Self::Swap,
        Self::Granted,
        Self::Canary,
        Self::Review,
    ];
}

impl From<Cause> for WakeTag {
    fn from(cause: Cause) -> Self {
        Self {
            causes: 1 << cause as u8,
            count: 1,
            first: 0,
            last: 0,
        }
    }
}

impl WakeTag {
    /// A cause with its number in the wake log.
    pub(crate) fn logged(cause: Cause, number: u32) -> Self {
        Self {
            first: number,
            last: number,
            ..cause.into()
        }
    }

    pub(crate) fn has(self, cause: Cause) -> bool {
        self.causes & (1 << cause as u8) != 0
    }

    /// Returns whether an own write, and nothing else, woke the key.
    pub(crate) fn is_only_own_write(self) -> bool {
        self.causes == 1 << Cause::OwnWrite as u8
    }

    /// Returns whether only the decision about the last turn woke the key.
    pub(crate) fn is_own_decision(self) -> bool {
        self.causes == 0
    }

    /// Number of adds; 65,535 stands for more.
    pub(crate) fn count(self) -> u16 {
        self.count
    }

    /// Returns whether an entry of the wake log, about the same key, belongs to this turn.
    pub(crate) fn covers(self, number: u32) -> bool {
        self.first != 0 && number.wrapping_sub(self.first) <= self.last.wrapping_sub(self.first)
    }
}

impl Tag for WakeTag {
    fn join(self, other: Self) -> Self {
        if self.count == 0 {
            return other;
        }
        let logged = |a: u32, b: u32| if a == 0 { b } else { a };
        Self {
            causes: self.causes | other.causes,
            count: self.count.saturating_add(other.count),
            first: earlier(
                logged(self.first, other.first),
                logged(other.first, self.first),
            ),
            last: later(logged(self.last, other.last), logged(other.last, self.last)),
        }
    }
}

fn earlier(a: u32, b: u32) -> u32 {
    if (a.wrapping_sub(b) as i32) <= 0 {
        a
    } else {
        b
    }
}

fn later(a: u32, b: u32) -> u32 {
    if (a.wrapping_sub(b) as i32) >= 0 {
        a
    } else {
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_tags_cover_all_their_entries_and_order_does_not_matter() {
        let tags = [
            WakeTag::logged(Cause::Changed, 7),
            WakeTag::from(Cause::Swap),
            WakeTag::logged(Cause::OwnWrite, u32::MAX),
            WakeTag::default(),
        ];
        for shift in 0..4 {
            let joined = (0..4).map(|at| tags[(at + shift) % 4]);
            let joined = joined.fold(WakeTag::default(), Tag::join);
            assert_eq!(joined.count(), 3);
            for cause in Cause::ALL {
                let expected = [Cause::Changed, Cause::Swap, Cause::OwnWrite].contains(&cause);
                assert_eq!(joined.has(cause), expected, "{cause:?}");
            }
            for (number, expected) in [
                (u32::MAX, true),
                (1, true),
                (7, true),
                (8, false),
                (99, false),
            ] {
                assert_eq!(joined.covers(number), expected, "{number}");
            }
        }
        assert!(!WakeTag::from(Cause::Swap).covers(0));
        assert!(WakeTag::default().is_own_decision());
        assert!(WakeTag::logged(Cause::OwnWrite, 3).is_only_own_write());
    }
}
