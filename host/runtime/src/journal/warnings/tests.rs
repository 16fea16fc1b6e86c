//! Tests of the warnings, a case a line. The cases in this file must not cause any warning.

use std::time::Duration;

use vmhost_core::{Effect, Next, ObjectKey};
use vmhost_queue::Decision;

use super::*;
use crate::journal::record::{Act, AnswerEnd};
use crate::journal::tag::Cause;
use crate::observe::metrics::controller::TurnResult;

mod fights;
mod pace;
pub(crate) mod parts;
mod waits;
mod writes;

use parts::*;

/// Returns the names of the warnings.
fn names(turns: &[TurnRecord], quiet: &[Quiet], woken: &[Wakened]) -> Vec<String> {
    let warnings = warnings(turns, quiet, woken);
    warnings.into_iter().map(|warning| warning.name).collect()
}

/// Returns the text of the only warning.
#[track_caller]
fn text(turns: &[TurnRecord], quiet: &[Quiet], woken: &[Wakened], name: &str) -> String {
    let warnings = warnings(turns, quiet, woken);
    let [warning] = &warnings[..] else {
        panic!("one warning, not {warnings:?}");
    };
    assert_eq!(
        (&*warning.name, &*warning.controller, &*warning.key),
        (name, CONTROLLER, "default/x")
    );
    warning.text.clone()
}

#[test]
fn what_controllers_do_every_day_warns_of_nothing() {
    let step = |number: u32, ms: u64, managers: Option<&str>| {
        let specs = (r#"{"status":"creating"}"#, r#"{"status":"complete"}"#);
        change(number, ms, &primary(), specs, managers)
    };
    let other = managed(&[("kubectl", "2026-01-01T00:00:00Z")]);
    // A VM is created and becomes complete.
    let turns = [turn(0).patches(primary(), 7, 8)];
    let woken = [step(1, 1, None)];
    assert!(names(&turns, &[quiet(2)], &woken).is_empty());
    // The host adds the finalizer first.
    let mut added = turn(0).patches(primary(), 7, 8);
    added.act = Act::AddedFinalizer;
    added.decision = Decision::Now;
    let turns = [added, turn(1).by_own_write(1).patches(primary(), 8, 9)];
    let woken = [step(1, 1, None), step(2, 2, None)];
    assert!(names(&turns, &[quiet(3)], &woken).is_empty());
    // An outage: the children do not exist yet, and cannot be created.
    let turns: Vec<TurnRecord> = (0..12)
        .map(|number| {
            let mut turn = turn(5_u64 << number)
                .reads(config_map("child"), false)
                .refused(503);
            turn.attempt = number;
            turn.deleting = number > 5;
            turn.by_itself()
        })
        .collect();
    assert!(names(&turns, &[], &[]).is_empty());
    // A rollout: other writers' changes wake turns, which write what they have counted.
    let turns: Vec<TurnRecord> = (0..20)
        .map(|number| turn(number * 300).patches(primary(), number, number + 1))
        .collect();
    let woken: Vec<Wakened> = (1..20)
        .map(|number| step(number, u64::from(number) * 300, Some(&other)))
        .collect();
    assert!(names(&turns, &[], &woken).is_empty());
    // A resync.
    let turns: Vec<TurnRecord> = (0..20)
        .map(|number| {
            let turn = turn(number * 30_000).reads(config_map("optional"), false);
            let turn = turn.ends(Next::RequeueAfterMs(30_000)).by_itself();
            turn.does(apply(), config_map("child"), None, AnswerEnd::Repeated)
        })
        .collect();
    assert!(names(&turns, &[], &[]).is_empty());
    let folded = Quiet {
        since: at(0),
        count: 20,
        ..polling(quiet(600_000), 30_000)
    };
    assert!(names(&[], &[folded], &[]).is_empty());
    assert!(names(&[], &[], &[]).is_empty());
}

#[test]
fn what_an_older_generation_did_counts_no_more() {
    let turns = |generation: u64| -> Vec<TurnRecord> {
        (0..4)
            .map(|number| {
                let turn = turn(u64::from(number)).by_own_write(number);
                let turn = turn.patches(primary(), 7, 8);
                TurnRecord {
                    origin: origin(generation),
                    ..turn
                }
            })
            .collect()
    };
    let mut all = turns(1);
    assert_eq!(names(&all, &[], &[]), ["self-waking"]);
    all.push(TurnRecord {
        origin: origin(2),
        ..turn(10).patches(primary(), 8, 9)
    });
    assert!(names(&all, &[], &[]).is_empty());
}

#[test]
fn a_text_is_one_line_and_not_long() {
    let turns: Vec<TurnRecord> = (0..4)
        .map(|number| {
            let said = format!("line\n{}", "x".repeat(9000));
            let mut turn = turn(number * 3000).ends(Next::Retry(said));
            turn.deleting = true;
            turn
        })
        .collect();
    let text = text(&turns, &[], &[], "finalizer-stuck");
    assert!(text.len() <= TEXT && !text.contains('\n'), "{text}");
}
