//! What a canary is tuned by: when it is aborted, and which objects it begins with. Plain data.
//! This module must not know how turns are counted.

/// When a canary is aborted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// After this many keys of the candidate ended in a trap, a deadline or a terminal failure.
    pub broken: usize,
    /// When the failing share of its keys exceeds that of the live version by more than this many
    /// percent of the keys ...
    pub above: u8,
    /// ... and the candidate has run this many keys.
    pub enough: usize,
    /// When a key of the candidate keeps waking itself.
    pub hot: bool,
    /// When its turns show a warning that the live version does not have.
    pub warnings: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            broken: 3,
            above: 5,
            enough: 50,
            hot: true,
            warnings: true,
        }
    }
}

/// What a canary is tuned by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// When it is aborted.
    pub rules: Rules,
    /// Which objects it begins with: two canaries with one seed and one weight have the same
    /// objects. `None` for a seed of its own.
    pub seed: Option<u64>,
}
