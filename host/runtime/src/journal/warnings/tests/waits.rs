//! Tests of `waiting-on` and `finalizer-stuck`.

use super::*;

/// Returns turns that end like this, one every so many milliseconds, each with one failure more.
fn turns(
    count: u32,
    every: u64,
    next: &Next,
    with: impl Fn(TurnRecord) -> TurnRecord,
) -> Vec<TurnRecord> {
    let turns = (0..count).map(|number| {
        let turn = turn(u64::from(number) * every).by_itself();
        let turn = with(turn.ends(next.clone()));
        TurnRecord {
            attempt: number,
            ..turn
        }
    });
    turns.collect()
}

fn retry(text: &str) -> Next {
    Next::Retry(text.into())
}

fn lacks(turn: TurnRecord) -> TurnRecord {
    let turn = turn.reads(config_map("there"), true);
    turn.reads(config_map("missing"), false)
}

#[test]
fn the_missing_object_is_named() {
    assert_eq!(
        text(
            &turns(4, 500, &retry("not yet"), lacks),
            &[],
            &[],
            "waiting-on"
        ),
        "ConfigMap default/missing: the last 4 turns, over 1.5 s, did not find it and asked for a \
         retry"
    );
    for next in [Next::Requeue, Next::RequeueAfterMs(5000)] {
        let turns = turns(3, 5000, &next, lacks);
        assert_eq!(names(&turns, &[], &[]), ["waiting-on"], "{next:?}");
    }
    // One object was read first, and the policy names the other one.
    let two = |turn: TurnRecord| {
        let turn = turn.reads(config_map("missing"), false);
        let turn = turn.reads(config_map("optional"), false);
        turn.reads(config_map("there"), true)
    };
    let said = text(
        &turns(3, 500, &retry("no missing"), two),
        &[],
        &[],
        "waiting-on",
    );
    assert!(said.starts_with("ConfigMap default/missing: "), "{said}");
}

#[test]
fn turns_that_wait_for_no_object_are_not() {
    let later = retry("not yet");
    let found = |turn: TurnRecord| turn.reads(config_map("there"), true);
    let optional = |turn: TurnRecord| found(turn.reads(config_map("optional"), false));
    let own = |turn: TurnRecord| turn.reads(primary(), false);
    let makes = |turn: TurnRecord| {
        let end = AnswerEnd::Written(8);
        lacks(turn).does(apply(), config_map("missing"), None, end)
    };
    let refused = |turn: TurnRecord| lacks(turn).refused(503);
    let broke = |turn: TurnRecord| TurnRecord {
        act: Act::Broke("trap".into()),
        ..lacks(turn)
    };
    let mut mended = turns(4, 500, &later, lacks);
    mended.push(found(turn(3000)));
    let mut anew = turns(4, 500, &later, lacks);
    anew.extend([
        lacks(turn(900_000)).ends(later.clone()),
        lacks(turn(900_005)).ends(later.clone()),
    ]);
    for (turns, quiet, what) in [
        (turns(2, 5000, &later, lacks), vec![], "two turns"),
        (turns(8, 5, &later, lacks), vec![], "a moment"),
        (turns(4, 500, &later, lacks), vec![quiet(3000)], "quiet"),
        (turns(4, 500, &later, found), vec![], "nothing missing"),
        (turns(4, 500, &later, optional), vec![], "an optional one"),
        (turns(4, 500, &later, own), vec![], "its own object"),
        (turns(4, 500, &later, makes), vec![], "makes it"),
        (turns(4, 500, &later, refused), vec![], "an outage"),
        (turns(4, 500, &later, broke), vec![], "a trap"),
        (
            turns(4, 500, &Next::Fail("no".into()), lacks),
            vec![],
            "gives up",
        ),
        (turns(4, 500, &Next::AwaitChange, lacks), vec![], "content"),
        (
            turns(4, 30_000, &Next::RequeueAfterMs(30_000), lacks),
            vec![],
            "a resync",
        ),
        (mended, vec![], "found at last"),
        (anew, vec![], "a success in between"),
    ] {
        assert!(names(&turns, &quiet, &[]).is_empty(), "{what}");
    }
}

fn deleting(turn: TurnRecord) -> TurnRecord {
    TurnRecord {
        deleting: true,
        ..turn
    }
}

#[test]
fn a_clean_up_without_an_end_says_what_it_said() {
    let used = retry("it is still used");
    assert_eq!(
        text(
            &turns(3, 2500, &used, deleting),
            &[],
            &[],
            "finalizer-stuck"
        ),
        "3 turns over 5.0 s were asked to clean up and did not finish, so that the finalizer stays; the last one said: \
         it is still used"
    );
    let logged = |turn: TurnRecord| TurnRecord {
        message: Some("reconcile failed, retrying: used".into()),
        ..deleting(turn)
    };
    let not_removed = |turn: TurnRecord| TurnRecord {
        act: Act::Returned(Next::Finalized),
        ..deleting(turn).refused(422)
    };
    let broke = |turn: TurnRecord| TurnRecord {
        act: Act::Broke("trap".into()),
        ..deleting(turn)
    };
    for (turns, said) in [
        (turns(5, 500, &used, deleting), "it is still used"),
        (
            turns(4, 3000, &used, logged),
            "reconcile failed, retrying: used",
        ),
        (
            turns(4, 3000, &Next::RequeueAfterMs(3000), deleting),
            "requeue after 3000 ms",
        ),
        (
            turns(4, 3000, &Next::AwaitChange, deleting),
            "await a change",
        ),
        (
            turns(4, 3000, &used, not_removed),
            "finalized, but the finalizer is still on",
        ),
        (turns(4, 3000, &used, broke), "trap"),
    ] {
        let text = text(&turns, &[], &[], "finalizer-stuck");
        assert!(text.ends_with(&format!("said: {said}")), "{text}");
    }
}

#[test]
fn a_clean_up_that_takes_its_time_is_not_stuck() {
    let used = retry("it is still used");
    let mut done = turns(8, 2000, &used, deleting);
    done.push(deleting(turn(20_000)).ends(Next::Finalized));
    let mut left = turns(8, 2000, &used, deleting);
    left.push(TurnRecord {
        act: Act::Left,
        ..turn(20_000)
    });
    let gone = vec![quiet(20_000)];
    let outage = |turn: TurnRecord| deleting(turn).refused(0);
    let no_room = |turn: TurnRecord| TurnRecord {
        act: Act::Broke("no room".into()),
        result: TurnResult::Requeue,
        ..deleting(turn)
    };
    for (turns, quiet, what) in [
        (turns(2, 9000, &used, deleting), vec![], "two turns"),
        (turns(4, 1000, &used, deleting), vec![], "three seconds"),
        (turns(9, 100, &used, deleting), vec![], "a moment"),
        (turns(9, 2000, &used, |turn| turn), vec![], "no deletion"),
        (done, vec![], "done"),
        (left, vec![], "others' finalizers"),
        (turns(8, 2000, &used, deleting), gone, "gone"),
        (turns(8, 2000, &used, outage), vec![], "an outage"),
        (turns(8, 2000, &used, no_room), vec![], "no room"),
    ] {
        assert!(names(&turns, &quiet, &[]).is_empty(), "{what}");
    }
}
