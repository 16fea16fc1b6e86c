//! Warnings about work that a key cannot finish: `waiting-on` and `finalizer-stuck`.
//!
//! An outage causes neither of them: a turn that ends in a refused write does not wait for an
//! object, and a turn that the API server could not serve does not count as a clean-up. This module
//! must not know the other warnings.

use std::time::Duration;

use vmhost_core::trace::Asked;
use vmhost_core::{Gvk, Next, ObjectName};

use crate::journal::record::{Act, TurnRecord};
use crate::journal::warnings::records::{Records, is_same_kind, named, refusal, seconds};
use crate::observe::metrics::controller::TurnResult;

/// Number of turns in a row after which a key counts as waiting, or a clean-up as stuck.
const TURNS: usize = 3;

/// The least time that a waiting key waits. Objects that are applied together exist sooner.
const WAITS: Duration = Duration::from_secs(1);

/// The longest requeue of a turn that waits. A longer one is a resync, which does not mean that
/// something is missing.
const SOON: Duration = Duration::from_secs(10);

/// The least time that a stuck clean-up has taken.
const STUCK: Duration = Duration::from_secs(5);

/// The same as [`TURNS`] and [`STUCK`], for a clean-up that is retried often.
const MANY: (usize, Duration) = (5, Duration::from_secs(2));

/// `waiting-on`: the last turns asked to be retried, and the same object was missing in each.
pub(super) fn waiting_on(records: &Records<'_>) -> Option<String> {
    let newest = records.series(waits).last()?;
    missing(newest).into_iter().find_map(|object| {
        let misses = |turn: &TurnRecord| waits(turn) && missing(turn).contains(&object);
        let series = records.series(misses);
        // If there was a success whose record was dropped, the number of failures starts again
        // after it.
        let success = series
            .windows(2)
            .rposition(|pair| pair[0].attempt > pair[1].attempt);
        let series = &series[success.map_or(0, |at| at + 1)..];
        let (first, last) = (series.first()?, series.last()?);
        let lasted = last.began.saturating_duration_since(first.began);
        let (kind, name) = object;
        if series.len() < TURNS || lasted < WAITS || records.is_primary(kind, name) {
            return None;
        }
        Some(format!(
            "{}: the last {} turns, over {}, did not find it and asked for a retry",
            named(kind, name),
            series.len(),
            seconds(lasted)
        ))
    })
}

/// Returns whether the policy itself asked for a retry soon.
fn waits(turn: &TurnRecord) -> bool {
    let asks = match &turn.act {
        Act::Returned(Next::Retry(_) | Next::Requeue) => true,
        Act::Returned(Next::RequeueAfterMs(ms)) => Duration::from_millis((*ms).into()) <= SOON,
        _ => false,
    };
    asks && refusal(turn).is_none()
}

/// Returns the objects that a turn may wait for: it read them and did not find them. Objects that
/// its message names come first. A policy stops at a missing object that it needs, so that this was
/// its last read, or else it names the object; other missing objects may be optional. An object
/// that the turn itself writes is left out.
fn missing(turn: &TurnRecord) -> Vec<(&Gvk, &ObjectName)> {
    let said = match &turn.act {
        Act::Returned(Next::Retry(text)) => text.as_str(),
        _ => "",
    };
    let reads = &turn.trace.reads;
    let (mut found, mut last) = (Vec::new(), None);
    for (at, read) in reads.iter().enumerate() {
        let Asked::Get(kind, name, Ok(None)) = &read.asked else {
            continue;
        };
        let is_written = turn
            .answers
            .iter()
            .any(|answer| is_same_kind(&answer.object.kind, kind) && answer.object.name == *name);
        if is_written {
            continue;
        }
        if said.contains(name.name()) {
            found.push((kind, name));
        } else if at + 1 == reads.len() {
            last = Some((kind, name));
        }
    }
    found.extend(last);
    found
}

/// `finalizer-stuck`: the policy was asked to clean up several times, and never said that it was
/// done.
pub(super) fn finalizer_stuck(records: &Records<'_>) -> Option<String> {
    let series = records.series(|turn| turn.deleting && !has_finished(turn));
    let series = series.iter().copied();
    let series: Vec<&TurnRecord> = series.filter(|turn| !is_hindered(turn)).collect();
    let (first, last) = (series.first()?, series.last()?);
    let lasted = (last.began + last.took).saturating_duration_since(first.began);
    let turns = series.len();
    let is_stuck = turns >= TURNS && lasted >= STUCK || turns >= MANY.0 && lasted >= MANY.1;
    is_stuck.then(|| {
        format!(
            "{turns} turns over {} were asked to clean up and did not finish, so that {} stays; the last one said: {}",
            seconds(lasted),
            last.origin.finalizer.as_deref().unwrap_or("the finalizer"),
            said(last)
        )
    })
}

/// Returns whether the policy has cleaned up, and the host has removed the finalizer.
fn has_finished(turn: &TurnRecord) -> bool {
    turn.act == Act::Returned(Next::Finalized) && refusal(turn).is_none()
}

/// Returns whether the API server could not serve the turn, or the host had no room for the call.
fn is_hindered(turn: &TurnRecord) -> bool {
    let no_room = matches!(turn.act, Act::Broke(_)) && turn.result == TurnResult::Requeue;
    no_room || matches!(refusal(turn), Some(0 | 401 | 408 | 429 | 500..))
}

/// Returns the turn's last words: its log line, or what it wants next.
fn said(turn: &TurnRecord) -> String {
    if let Some(message) = &turn.message {
        return message.clone();
    }
    match &turn.act {
        Act::Returned(Next::Retry(text) | Next::Fail(text)) | Act::Broke(text) => text.clone(),
        Act::Returned(Next::RequeueAfterMs(ms)) => format!("requeue after {ms} ms"),
        Act::Returned(Next::Requeue) => "requeue".to_owned(),
        Act::Returned(Next::AwaitChange) => "await a change".to_owned(),
        Act::Returned(Next::Finalized) => "finalized, but the finalizer is still on".to_owned(),
        Act::AddedFinalizer | Act::Left | Act::Paused(_) | Act::Held(_) | Act::Denied { .. } => {
            "nothing".to_owned()
        }
    }
}
