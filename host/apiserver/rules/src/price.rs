//! Prices: what operations cost in the units of CEL, both estimated and real.
//!
//! One unit is about 50 ns of kube-apiserver. Must not know expressions as a whole.

use crate::code::Gives;

/// How many bytes are copied in the time of one unit.
pub(crate) const COPY: u64 = 1024;

/// What it costs to make a value with fields.
pub(crate) const MAKING: u64 = 40;

/// What it costs to go through a text of this size.
pub(crate) fn traversal(size: u64) -> u64 {
    times(size, 0.1)
}

/// What a pattern of this size costs for each unit of the text.
pub(crate) fn pattern(size: u64) -> u64 {
    times(size, 0.25)
}

/// What it costs to match a pattern of one size with a text of another.
pub(crate) fn matching(text: u64, by: u64) -> u64 {
    traversal(text.saturating_add(1)).saturating_mul(pattern(by))
}

/// Returns a size times a factor, rounded up.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "as in cel-go; a cast to an integer stops at its largest value"
)]
pub(crate) fn times(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// Returns what a macro adds in each step, and once around the loop.
pub(crate) fn of_loop(gives: Gives) -> (u64, u64) {
    match gives {
        Gives::All => (3, 1),
        Gives::Any => (4, 1),
        Gives::One => (2, 2),
        Gives::List | Gives::Sorted => (12, 11),
        Gives::Matching => (13, 11),
        Gives::Map | Gives::Entries => (3, 31),
    }
}
