//! The warnings about a key: habits of a policy that waste turns or writes, or that keep an object
//! from ever being finished.
//!
//! | Warning | Says |
//! |---|---|
//! | `self-waking` | the key's own writes wake it, and it writes again |
//! | `write-unchanged` | it sends writes that change nothing |
//! | `fights-with` | another writer changes a field back, again and again |
//! | `never-quiet` | it comes back at once, again and again, and does nothing |
//! | `waiting-on` | it is retried until an object exists |
//! | `finalizer-stuck` | its clean-up does not end |
//!
//! Each warning is a pure function over the records of one key. A false alarm is worse than a late
//! warning, so each needs several turns in a row, and the newest turn must show the habit too.
//! These functions must not know the journal, a clock, or what the warnings are used for.

use vmhost_core::{cut, one_line};

use crate::journal::record::{Quiet, TurnRecord};
use crate::journal::story::Warning;
use crate::journal::wakes::Wakened;

mod fights;
mod pace;
mod records;
mod waits;
mod writes;

use records::Records;

/// Maximum length of a warning's text in bytes, because a plugin's message may be long.
const TEXT: usize = 512;

/// Finds the warnings about a key. `turns` are its turns in the order in which they began, `quiet`
/// its quiet turns, and `woken` the changes that woke it, oldest first.
pub(crate) fn warnings(turns: &[TurnRecord], quiet: &[Quiet], woken: &[Wakened]) -> Vec<Warning> {
    let Some(records) = Records::new(turns, quiet, woken) else {
        return Vec::new();
    };
    let found = [
        ("self-waking", writes::self_waking(&records)),
        ("write-unchanged", writes::write_unchanged(&records)),
        ("fights-with", fights::fights_with(&records)),
        ("never-quiet", pace::never_quiet(&records)),
        ("waiting-on", waits::waiting_on(&records)),
        ("finalizer-stuck", waits::finalizer_stuck(&records)),
    ];
    let warning = |name: &str, text: &str| Warning {
        name: name.to_owned(),
        controller: records.origin.controller.to_string(),
        key: records.key.to_string(),
        text: one_line(cut(text, TEXT)).into_owned(),
    };
    let found = found
        .iter()
        .filter_map(|(name, text)| Some(warning(name, text.as_deref()?)));
    found.collect()
}

#[cfg(test)]
pub(crate) mod tests;
