//! Tests of `never-quiet`.

use super::*;
use crate::journal::Journal;

/// Returns turns that come back by themselves and end like this, one every so many milliseconds.
fn loops(count: u64, every: u64, next: &Next) -> Vec<TurnRecord> {
    let turns = (0..count).map(|number| {
        let turn = turn(number * every).by_itself().ends(next.clone());
        turn.does(apply(), primary(), Some(7), AnswerEnd::Repeated)
    });
    turns.collect()
}

/// Returns quiet turns that ask for each other, up to this time.
fn polls(count: u32, since: u64, until: u64) -> Quiet {
    Quiet {
        since: at(since),
        count,
        ..polling(quiet(until), 100)
    }
}

#[test]
fn turns_that_only_ask_for_each_other_are_told() {
    assert_eq!(
        text(
            &loops(12, 200, &Next::RequeueAfterMs(200)),
            &[],
            &[],
            "never-quiet"
        ),
        "12 turns within 10 s changed nothing, and each asked for the next one \
         (requeue after 200ms)"
    );
    let said = text(&loops(10, 900, &Next::Requeue), &[], &[], "never-quiet");
    assert!(
        said.starts_with("10 ") && said.ends_with("(requeue)"),
        "{said}"
    );
    assert_eq!(
        text(&[], &[polls(30, 0, 3000)], &[], "never-quiet"),
        "30 turns within 10 s changed nothing, and each asked for the next one \
         (requeue after 100ms)"
    );
    // Several threads ran them, and most are too old to count.
    let said = text(
        &[],
        &[polls(500, 0, 50_000), polls(500, 10, 50_010)],
        &[],
        "never-quiet",
    );
    assert!(
        said.starts_with("199 ") || said.starts_with("200 "),
        "{said}"
    );
    // A turn that a change woke interrupts the series only for a short time.
    let turns = [turn(1000).ends(Next::RequeueAfterMs(100))];
    let quiet = [polls(9, 0, 900), polls(20, 1100, 3000)];
    assert_eq!(names(&turns, &quiet, &[]), ["never-quiet"]);
}

#[test]
fn a_key_that_has_something_to_do_or_rests_is_not() {
    let soon = Next::RequeueAfterMs(100);
    let many = || loops(20, 100, &soon);
    let with = |change: fn(&mut TurnRecord)| {
        let mut turns = many();
        turns.iter_mut().for_each(change);
        turns
    };
    let wrote = |turn: &mut TurnRecord| turn.answers[0].end = AnswerEnd::Written(8);
    let refused = |turn: &mut TurnRecord| {
        turn.answers[0].end = AnswerEnd::Refused(409, "conflict".into());
    };
    let woken = |turn: &mut TurnRecord| turn.tag = Cause::Changed.into();
    let busy = |turn: &mut TurnRecord| turn.act = Act::Broke("no room".into());
    let then_rests = [&many()[..], &[turn(3000)][..]].concat();
    let mut by_change = polls(30, 0, 3000);
    by_change.tag = Cause::Changed.into();
    for (turns, quiet, what) in [
        (loops(9, 100, &soon), vec![], "nine turns"),
        (loops(30, 2000, &soon), vec![], "not so fast"),
        (
            loops(30, 1000, &Next::RequeueAfterMs(1000)),
            vec![],
            "once a second",
        ),
        (
            loops(30, 100, &Next::Retry("later".into())),
            vec![],
            "a failure",
        ),
        (
            loops(30, 100, &Next::AwaitChange),
            vec![],
            "asks for nothing",
        ),
        (with(wrote), vec![], "it writes"),
        (with(refused), vec![], "its writes collide"),
        (with(woken), vec![], "changes wake it"),
        (with(busy), vec![], "the host has no room"),
        (then_rests, vec![], "it rests"),
        (many(), vec![quiet(3000)], "a quiet end"),
        (vec![], vec![polls(9, 0, 900)], "nine quiet turns"),
        (vec![], vec![polls(9, 0, 9000)], "quiet turns, not so fast"),
        (vec![], vec![polls(90, 0, 9000), quiet(9001)], "it is done"),
        (vec![], vec![polls(800, 0, 900_000)], "one a second"),
        (vec![], vec![by_change], "changes wake quiet turns"),
    ] {
        assert!(names(&turns, &quiet, &[]).is_empty(), "{what}");
    }
}

#[test]
fn quiet_turns_are_counted_together_only_if_they_are_alike() {
    let journal = Journal::new(1 << 20, 1);
    let folded = || -> Vec<u32> {
        let (_, quiet) = journal.of(CONTROLLER, &key());
        quiet.iter().map(|quiet| quiet.count).collect()
    };
    journal.quiet(quiet(0));
    journal.quiet(quiet(100_000));
    assert_eq!(folded(), [2], "woken by changes, whatever the time");
    journal.quiet(polling(quiet(200_000), 100));
    journal.quiet(polling(quiet(200_100), 100));
    assert_eq!(folded(), [2], "polls");
    journal.quiet(polling(quiet(300_000), 100));
    assert_eq!(folded(), [1], "polls after a pause");
    let mut held = quiet(300_001);
    held.act = Act::Held(Duration::from_secs(30));
    journal.quiet(held);
    assert_eq!(folded(), [1], "no turn");
    journal.quiet(quiet(300_002));
    journal.quiet(Quiet {
        origin: origin(2),
        ..quiet(300_003)
    });
    assert_eq!(folded(), [1], "the next generation");
}
