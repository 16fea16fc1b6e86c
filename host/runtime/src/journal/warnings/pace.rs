//! `never-quiet`: a key comes back by itself at once, again and again, and changes nothing. This
//! module must not know the other warnings.

use std::time::{Duration, Instant};

use vmhost_core::Next;
use vmhost_queue::Decision;

use crate::journal::record::{Act, Quiet, TurnRecord, is_soon};
use crate::journal::warnings::records::{Records, refusal};

/// Number of turns within [`WINDOW`] of a key that is never quiet.
const TURNS: usize = 10;

/// Turns count within this time before the newest turn.
const WINDOW: Duration = Duration::from_secs(10);

/// `never-quiet`: each of the newest turns, quiet or not, ran only because the turn before asked
/// for it, changed nothing, and asked for the next one.
pub(super) fn never_quiet(records: &Records<'_>) -> Option<String> {
    let newest = records.newest()?;
    // Only turns after the last different turn count.
    let other_turn = records.turns.iter().rev().find(|turn| !comes_back(turn));
    let other_quiet = records.quiet.iter().filter(|quiet| !quiet.is_prompt());
    let from = [
        newest.checked_sub(WINDOW),
        other_turn.map(|turn| turn.began),
        other_quiet.map(|quiet| quiet.began).max(),
    ];
    let from = from.into_iter().flatten().max();
    let turns = records.turns.iter().map(|turn| turn.began);
    let turns = turns.filter(|began| from.is_none_or(|from| *began > from));
    let prompt = records.quiet.iter().filter(|quiet| quiet.is_prompt());
    let count = turns.count() + prompt.map(|quiet| after(from, quiet)).sum::<usize>();
    if count < TURNS {
        return None;
    }
    Some(format!(
        "{count} turns within {} s changed nothing, and each asked for the next one ({})",
        WINDOW.as_secs(),
        asked(records)?
    ))
}

/// Returns whether a turn came back by itself, changed nothing, and asked for the next one.
fn comes_back(turn: &TurnRecord) -> bool {
    let asks = matches!(
        turn.act,
        Act::Returned(Next::Requeue | Next::RequeueAfterMs(_))
    );
    asks && is_soon(&turn.decision)
        && turn.tag.is_own_decision()
        && !turn.changed()
        && refusal(turn).is_none()
}

/// Returns how many of these quiet turns began after `from`, if they were evenly spread.
fn after(from: Option<Instant>, quiet: &Quiet) -> usize {
    let Some(from) = from.filter(|from| *from > quiet.since) else {
        return quiet.count as usize;
    };
    let all = quiet.began.saturating_duration_since(quiet.since);
    let part = quiet.began.saturating_duration_since(from);
    if all.is_zero() {
        return 0;
    }
    (f64::from(quiet.count) * part.as_secs_f64() / all.as_secs_f64()) as usize
}

/// Formats what the newest turn asked for.
fn asked(records: &Records<'_>) -> Option<String> {
    let turns = records.turns.iter().map(|turn| (turn.began, turn.decision));
    let quiet = records.quiet.iter();
    let quiet = quiet.map(|quiet| (quiet.began, quiet.decision));
    let (_, newest) = turns.chain(quiet).max_by_key(|(began, _)| *began)?;
    Some(match newest {
        Decision::After(delay) => format!("requeue after {delay:?}"),
        _ => "requeue".to_owned(),
    })
}
