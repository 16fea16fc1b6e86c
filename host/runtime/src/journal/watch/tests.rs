//! Tests which warnings are new, which hold, and which end, over a journal.

use vmhost_core::Next;

use super::*;
use crate::journal::warnings::tests::parts::{
    CONTROLLER, at, change, config_map, key, managed, origin, polling, primary, quiet, turn,
};

/// Returns a journal, and a watch that began at the start of the story.
fn start() -> (Journal, Watch) {
    (Journal::new(4 << 20, 1), Watch::new(at(0)))
}

/// Writes three turns of a key from this time on, each woken by the write of the turn before.
fn wakes_itself(journal: &Journal, key: &ObjectName, from: u64) {
    for number in 1..4 {
        let turn = turn(from + number).by_own_write(number as u32);
        journal.turn(TurnRecord {
            key: key.clone(),
            ..turn.patches(primary(), number, number + 1)
        });
    }
}

/// Returns the names and keys of the new warnings.
fn news(watch: &mut Watch, journal: &Journal, ms: u64) -> Vec<(String, String)> {
    let news = watch.look(journal, at(ms), raw(journal)).into_iter();
    news.map(|news| (news.warning.name, news.key.to_string()))
        .collect()
}

fn self_waking(key: &str) -> (String, String) {
    ("self-waking".to_owned(), key.to_owned())
}

#[test]
fn a_warning_is_new_once_and_holds_until_a_turn_shows_better() {
    let (journal, mut watch) = start();
    assert!(watch.look(&journal, at(10), raw(&journal)).is_empty());
    wakes_itself(&journal, &key(), 100);
    let found = watch.look(&journal, at(2000), raw(&journal));
    let [news_of] = &found[..] else {
        panic!("one, not {found:?}");
    };
    assert_eq!(&*news_of.origin.controller, CONTROLLER);
    assert!(news_of.key == key() && news_of.object.is_none());
    assert_eq!(watch.warnings(), std::slice::from_ref(&news_of.warning));
    // Without turns nothing changes.
    for ms in [4000, 6000] {
        assert!(news(&mut watch, &journal, ms).is_empty());
        assert_eq!(watch.warnings().len(), 1);
    }
    journal.quiet(quiet(7000));
    assert!(news(&mut watch, &journal, 8000).is_empty());
    assert!(watch.warnings().is_empty());
    // The warning comes again, and is not new.
    wakes_itself(&journal, &key(), 9000);
    assert!(news(&mut watch, &journal, 10_000).is_empty());
    assert_eq!(watch.warnings().len(), 1);
}

#[test]
fn a_warning_ends_some_time_after_the_last_turn() {
    let (journal, mut watch) = start();
    wakes_itself(&journal, &key(), 100);
    assert_eq!(news(&mut watch, &journal, 2000).len(), 1);
    assert!(news(&mut watch, &journal, 601_000).is_empty());
    assert_eq!(watch.warnings().len(), 1);
    assert!(news(&mut watch, &journal, 602_000).is_empty());
    assert!(watch.warnings().is_empty());
}

#[test]
fn keys_and_controllers_are_apart() {
    let (journal, mut watch) = start();
    let keys = ["a", "b", "c"].map(|name| ObjectName::new(Some("default"), name));
    let again = |key: &ObjectName, controller: &str, number: u32| {
        let turn = turn(u64::from(number)).by_own_write(number);
        let mut origin = origin(1);
        if let Some(origin) = Arc::get_mut(&mut origin) {
            origin.controller = controller.into();
        }
        journal.turn(TurnRecord {
            origin,
            key: key.clone(),
            ..turn.patches(primary(), 1, 2)
        });
    };
    for (number, key) in (1..).zip(&keys) {
        again(key, CONTROLLER, number);
        again(&keys[0], "loops/others", number);
    }
    let news = watch.look(&journal, at(2000), raw(&journal));
    let warned = news.into_iter().map(|news| news.warning);
    let warned: Vec<_> = warned
        .map(|warning| (warning.controller, warning.key))
        .collect();
    assert_eq!(
        warned,
        [("loops/others".to_owned(), "default/a".to_owned())]
    );
}

#[test]
fn a_key_that_polls_is_found_whichever_worker_runs_it() {
    let (journal, mut watch) = start();
    journal.quiet(quiet(0));
    for number in 1..20 {
        journal.quiet(polling(quiet(number * 100), 100));
    }
    let never_quiet = ("never-quiet".to_owned(), "default/x".to_owned());
    assert_eq!(news(&mut watch, &journal, 2000), [never_quiet]);
    let counted = watch.warnings().remove(0).text;
    assert!(counted.starts_with("19 turns"), "{counted}");
}

#[test]
fn what_woke_the_key_is_looked_up() {
    let (journal, mut watch) = start();
    let specs = (r#"{"count":1}"#, r#"{"count":2}"#);
    for number in 1..4 {
        let entry = change(number, 100 + u64::from(number), &primary(), specs, None);
        assert_eq!(journal.wakes.add(entry), number);
    }
    wakes_itself(&journal, &key(), 100);
    let found = watch.look(&journal, at(2000), raw(&journal));
    let text = &found[0].warning.text;
    assert!(text.ends_with(": spec.count"), "{text}");
}

#[test]
fn a_record_that_is_written_a_moment_late_is_seen() {
    let (journal, mut watch) = start();
    assert!(news(&mut watch, &journal, 2000).is_empty());
    wakes_itself(&journal, &key(), 1990);
    assert_eq!(news(&mut watch, &journal, 4000), [self_waking("default/x")]);
}

#[test]
fn a_policy_that_is_wrong_about_everything_takes_a_bounded_room() {
    let (journal, mut watch) = start();
    let name = |number: usize| ObjectName::new(Some("default"), &format!("{number:04}"));
    let mut told = 0;
    for number in 0..MOST + 50 {
        let ms = number as u64 * 2000;
        wakes_itself(&journal, &name(number), ms + 1000);
        // All of this happens within the time in which a warning ends by itself.
        told += watch.look(&journal, at(ms + 1900), raw(&journal)).len();
        for known in watch.keys.values_mut() {
            known.seen = at(ms + 1900);
        }
    }
    assert_eq!((told, watch.len()), (MOST, MOST));
    // A warning that has ended makes room.
    let ms = (MOST as u64 + 50) * 2000;
    journal.quiet(Quiet {
        key: name(3),
        ..quiet(ms)
    });
    assert!(news(&mut watch, &journal, ms + 100).is_empty());
    wakes_itself(&journal, &name(MOST + 60), ms + 200);
    let key = format!("default/{}", MOST + 60);
    assert_eq!(news(&mut watch, &journal, ms + 2000), [self_waking(&key)]);
    assert_eq!(watch.warnings().len(), MOST);
}

#[test]
fn what_the_last_look_found_is_told() {
    let journal = Journal::new(4 << 20, 1);
    let warnings = Warnings::new(Vec::new());
    assert!(warnings.all().is_empty());
    for number in 1..4u32 {
        let mut turn = turn(0).by_own_write(number);
        turn.began = Instant::now();
        journal.turn(turn.patches(primary(), number.into(), u64::from(number) + 1));
    }
    let found = Warning {
        name: "self-waking".into(),
        controller: CONTROLLER.into(),
        key: key().to_string(),
        text: "hidden".into(),
    };
    let news = warnings.look(&journal, Instant::now(), |_, _| vec![found.clone()]);
    assert_eq!(news.len(), 1);
    assert_eq!(warnings.all(), [found]);
}

/// Records a loop's turn with this number, at this time. Returns when the next one begins.
type Loop = fn(&Journal, u32, u64) -> u64;

/// Returns how long after the first turn of a loop its warning is new, in milliseconds.
fn told_after(name: &str, turn: Loop) -> Option<u64> {
    let (journal, mut watch) = start();
    let (mut number, mut next) = (0, 0);
    let mut looks = (1..100).map(|look| look * STEP.as_millis() as u64);
    looks.find(|&ms| {
        while next < ms {
            next = turn(&journal, number, next);
            number += 1;
        }
        let told = news(&mut watch, &journal, ms);
        told.iter().any(|(found, _)| found == name)
    })
}

/// Returns the turn as one that failed for the time with this number, and when it is retried: the
/// back-off is the default.
fn retried(turn: TurnRecord, number: u32, ms: u64) -> (TurnRecord, u64) {
    let turn = TurnRecord {
        attempt: number,
        ..turn.by_itself().ends(Next::Retry("not yet".into()))
    };
    (turn, ms + (5 << number))
}

#[test]
fn each_loop_is_told_within_ten_seconds() {
    let wakes_itself: Loop = |journal, number, ms| {
        let version = u64::from(number);
        let turn = turn(ms).by_own_write(number + 1);
        journal.turn(turn.patches(primary(), version, version + 1));
        ms + 100
    };
    let writes_nothing: Loop = |journal, _, ms| {
        journal.turn(turn(ms).patches(primary(), 7, 7));
        ms + 1000
    };
    let fights: Loop = |journal, number, ms| {
        let (ours, theirs) = (r#"{"replicas":1}"#, r#"{"replicas":5}"#);
        let rival = managed(&[("rival", "2026-01-01T00:00:09Z")]);
        let (own, others) = (2 * number + 1, 2 * number + 2);
        let version = 100 + u64::from(own);
        journal.turn(turn(ms).patches(primary(), version - 1, version));
        let wakes = &journal.wakes;
        wakes.add(change(own, ms, &primary(), (theirs, ours), None));
        wakes.add(change(
            others,
            ms + 1000,
            &primary(),
            (ours, theirs),
            Some(&rival),
        ));
        ms + 1000
    };
    let polls: Loop = |journal, _, ms| {
        journal.quiet(polling(quiet(ms), 500));
        ms + 500
    };
    let waits: Loop = |journal, number, ms| {
        let reads = turn(ms).reads(config_map("missing"), false);
        let (turn, next) = retried(reads, number, ms);
        journal.turn(turn);
        next
    };
    let cleans_up: Loop = |journal, number, ms| {
        let (turn, next) = retried(turn(ms), number, ms);
        journal.turn(TurnRecord {
            deleting: true,
            ..turn
        });
        next
    };
    for (name, turn) in [
        ("self-waking", wakes_itself),
        ("write-unchanged", writes_nothing),
        ("fights-with", fights),
        ("never-quiet", polls),
        ("waiting-on", waits),
        ("finalizer-stuck", cleans_up),
    ] {
        let after = told_after(name, turn);
        assert!(after.is_some_and(|ms| ms <= 10_000), "{name}: {after:?}");
    }
}

/// Returns the warnings about a key, without hiding anything.
fn raw(journal: &Journal) -> impl Fn(&str, &ObjectName) -> Vec<Warning> + '_ {
    |controller, key| {
        let (turns, quiet) = journal.of(controller, key);
        let woken = journal.woken(controller, key, &turns);
        warnings(&turns, &quiet, &woken)
    }
}
