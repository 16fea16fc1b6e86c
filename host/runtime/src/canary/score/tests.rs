//! Tests of the rules that decide whether a candidate is worse than the live version.

use super::*;

const FINE: Noted = Noted {
    failed: false,
    broke: None,
    hot: false,
};
const FAILED: Noted = Noted {
    failed: true,
    broke: None,
    hot: false,
};

fn broke(how: &'static str) -> Noted {
    Noted {
        broke: Some(how),
        ..FAILED
    }
}

fn key(id: u64) -> ObjectName {
    ObjectName::new(Some("a"), &format!("x{id}"))
}

/// Counts this many keys on the candidate, of which the first `failing` fail.
fn run(score: &mut Score, ran: u64, failing: u64) -> Option<Breach> {
    let note = |id| if id < failing { FAILED } else { FINE };
    let mut found = None;
    // The failing keys come last, so that the shares are those of all keys.
    for id in (0..ran).rev() {
        found = score.candidate(id, &key(id), note(id));
    }
    found
}

#[test]
fn three_keys_that_break_are_enough_and_one_key_is_not() {
    let mut score = Score::default();
    for _ in 0..1000 {
        assert_eq!(score.candidate(1, &key(1), broke("trap")), None);
    }
    assert_eq!(score.candidate(2, &key(2), broke("deadline")), None);
    assert_eq!(score.candidate(2, &key(2), FINE), None, "it stays counted");
    let breach = score.candidate(3, &key(3), broke("terminal failure"));
    assert_eq!(
        breach.unwrap().to_string(),
        "3 keys of the candidate broke: a/x1 (trap), a/x2 (deadline), a/x3 (terminal failure)"
    );
    assert_eq!(score.broken(), 3);
}

#[test]
fn live_keys_that_break_abort_nothing() {
    let mut score = Score::default();
    for id in 0..10 {
        score.live(id, broke("trap"));
    }
    assert_eq!(score.candidate(1, &key(1), FINE), None);
}

#[test]
fn shares_are_compared_from_fifty_keys_on() {
    let counts = |ran, failing| Counts { ran, failing };
    for (candidate, live, expected) in [
        // Fewer keys than are compared, although all fail.
        (counts(49, 49), counts(1000, 0), false),
        (counts(50, 50), counts(1000, 0), true),
        // More than five points, and on the live version no key fails.
        (counts(100, 5), counts(1000, 0), false),
        (counts(100, 6), counts(1000, 0), true),
        (counts(100, 6), counts(0, 0), true),
        // More than twice the live share, but less than five points above it.
        (counts(1000, 41), counts(1000, 20), false),
        // More than five points above the live share, but less than twice it.
        (counts(1000, 300), counts(1000, 200), false),
        (counts(1000, 400), counts(1000, 200), false),
        (counts(1000, 401), counts(1000, 200), true),
        (counts(1000, 0), counts(1000, 500), false),
    ] {
        assert_eq!(
            fails_more(&Rules::default(), candidate, live),
            expected,
            "{candidate:?} {live:?}"
        );
    }
}

#[test]
fn a_key_that_recovers_does_not_fail_any_more() {
    let mut score = Score::default();
    assert_eq!(run(&mut score, 100, 5), None);
    for id in 0..5 {
        assert_eq!(score.candidate(id, &key(id), FINE), None);
    }
    let [candidate, live] = score.counts();
    assert_eq!((candidate.ran, candidate.failing), (100, 0));
    assert_eq!(live, Counts::default());
}

#[test]
fn one_retried_key_is_one_key() {
    let mut score = Score::default();
    assert_eq!(run(&mut score, 100, 0), None);
    for _ in 0..1000 {
        assert_eq!(score.candidate(7, &key(7), FAILED), None);
    }
}

#[test]
fn many_failing_keys_abort_unless_they_fail_on_the_live_version_too() {
    let mut score = Score::default();
    let breach = run(&mut score, 60, 12).unwrap().to_string();
    assert!(
        breach.contains("of 60 keys of the candidate fail"),
        "{breach}"
    );
    let mut score = Score::default();
    for id in 1000..1100 {
        score.live(id, if id < 1015 { FAILED } else { FINE });
    }
    assert_eq!(run(&mut score, 60, 12), None);
}

#[test]
fn a_hot_key_aborts_unless_the_live_version_has_one() {
    let hot = Noted { hot: true, ..FINE };
    let mut score = Score::default();
    let breach = score.candidate(1, &key(1), hot);
    assert_eq!(breach, Some(Breach::Hot("a/x1".into())));
    let mut score = Score::default();
    score.live(2, hot);
    assert_eq!(score.candidate(1, &key(1), hot), None);
}

#[test]
fn the_sets_are_bounded_and_the_shares_stay_right() {
    let mut score = Score::default();
    let most = MOST as u64;
    for id in 0..most + 1000 {
        score.live(id, if id % 2 == 0 { FAILED } else { FINE });
    }
    let [_, live] = score.counts();
    assert_eq!((live.ran, live.failing), (MOST, MOST / 2));
    // At the limit, a key that is already counted can still change from failing to fine.
    score.live(0, FINE);
    assert_eq!(score.counts()[1].failing, MOST / 2 - 1);
}

#[test]
fn rules_say_what_is_too_much() {
    let rules = Rules {
        broken: 1,
        above: 50,
        enough: 2,
        hot: false,
        warnings: true,
    };
    let mut score = Score::under(rules);
    assert!(score.candidate(1, &key(1), broke("trap")).is_some());
    let mut score = Score::under(rules);
    let hot = Noted { hot: true, ..FINE };
    assert_eq!(score.candidate(1, &key(1), hot), None);
    let counts = |ran, failing| Counts { ran, failing };
    for (candidate, expected) in [
        (counts(1, 1), false),
        (counts(2, 1), false),
        (counts(3, 2), true),
    ] {
        assert_eq!(
            fails_more(&rules, candidate, counts(9, 0)),
            expected,
            "{candidate:?}"
        );
    }
}
