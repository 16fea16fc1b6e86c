//! Tests what the journal keeps: no more than its bytes, failures apart from other turns, quiet
//! turns as a count, large turns without their texts, and everything in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use vmhost_core::trace::{Asked, Read};
use vmhost_core::{
    Digest, Effect, Gvk, ListQuery, Next, Object, ObjectKey, Other, Page, Patch, PatchType,
    Snapshot, Trace,
};
use vmhost_queue::{Decision, Lane};

use super::record::{Act, Answer, AnswerEnd, Origin};
use super::tag::{Cause, WakeTag};
use super::*;
use crate::observe::metrics::controller::TurnResult;

const CONTROLLER: &str = "loops/objects";

fn kind() -> Gvk {
    Gvk::new("test.vmhost.dev", "v1", "Loop")
}

fn key(name: &str) -> ObjectName {
    ObjectName::new(Some("ns"), name)
}

fn origin() -> Arc<Origin> {
    Arc::new(Origin {
        controller: CONTROLLER.into(),
        kind: kind(),
        field_manager: "vmhost/loops/objects".into(),
        generation: 1,
        finalizer: None,
        digest: "sha256:0".into(),
        cluster: BTreeMap::new(),
        settings: Default::default(),
    })
}

/// Returns an object of this size.
fn object(name: &str, size: usize) -> Snapshot {
    Object::with_text(key(name), "u-1", 7, &"x".repeat(size))
}

/// Returns a successful turn of a key, with one patch of `size` bytes.
fn record(origin: &Arc<Origin>, name: &str, began: Instant, size: usize) -> TurnRecord {
    let object_key = ObjectKey {
        kind: kind(),
        name: key(name),
    };
    TurnRecord {
        origin: origin.clone(),
        key: key(name),
        began,
        took: Duration::from_micros(40),
        call: Duration::from_micros(9),
        wait: Duration::ZERO,
        lane: Lane::High,
        tag: WakeTag::from(Cause::Changed),
        attempt: 0,
        last: None,
        deleting: false,
        version: Some(7),
        object: Some(object(name, 300)),
        previous: None,
        trace: Trace::default(),
        act: Act::Returned(Next::AwaitChange),
        effects: vec![Effect::Patch(Patch {
            key: object_key.clone(),
            subresource: None,
            kind: PatchType::Merge,
            body: "x".repeat(size),
            if_version: None,
        })],
        answers: vec![Answer {
            effect: 0,
            object: object_key,
            before: Some(7),
            end: AnswerEnd::Written(8),
        }],
        result: TurnResult::Success,
        decision: Decision::Forget,
        message: None,
        cut: None,
    }
}

/// Returns the turn as one that failed.
fn failed(turn: TurnRecord) -> TurnRecord {
    TurnRecord {
        result: TurnResult::Error,
        decision: Decision::RATE_LIMITED,
        message: Some("refused".into()),
        ..turn
    }
}

/// Returns a turn of a key that changed nothing.
fn quiet(origin: &Arc<Origin>, name: &str, began: Instant) -> Quiet {
    Quiet {
        origin: origin.clone(),
        key: key(name),
        began,
        since: began,
        count: 1,
        took: Duration::from_micros(10),
        call: Duration::from_micros(9),
        wait: Duration::ZERO,
        tag: WakeTag::from(Cause::OwnWrite),
        version: Some(8),
        act: Act::Returned(Next::AwaitChange),
        decision: Decision::Forget,
    }
}

/// Returns a read of a page of these objects.
fn listed(objects: Vec<Snapshot>) -> Read {
    let query = ListQuery {
        kind: kind(),
        namespace: None,
        label_selector: None,
        index: None,
        owner: None,
        limit: 500,
        after: None,
    };
    let page = Page {
        objects,
        next: None,
    };
    Read {
        live: false,
        asked: Asked::List(query, Ok(page)),
    }
}

/// The bytes that a ring's records count for, counted anew.
fn bytes(ring: &Ring<TurnRecord>) -> usize {
    let bytes = ring.records.iter().map(|record| record.bytes()).sum();
    assert_eq!(ring.bytes, bytes, "the ring counts as its records do");
    bytes
}

/// The bytes that the whole journal holds.
fn held(journal: &Journal) -> usize {
    let parts = journal.parts.iter().map(|part| {
        let part = part.lock();
        let quiet = part.quiet.capacity() * size_of::<Option<Quiet>>();
        let names = part.quiet.iter().flatten();
        let names = names.map(|quiet| quiet.key.as_str().len()).sum::<usize>();
        assert_eq!(part.names, names, "the part counts as its records do");
        bytes(&part.turns) + bytes(&part.failed) + quiet + names
    });
    parts.sum::<usize>() + bytes(&journal.reviews.lock().ring) + journal.wakes.bytes()
}

/// Writes random turns as one thread does: some fail, some read large pages, some change nothing.
fn write(journal: &Journal, origin: &Arc<Origin>, seed: u64, turns: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let pool: Vec<Snapshot> = (0..64).map(|at| object("read", at * 1024)).collect();
    for turn in 0..turns {
        let name = format!("object-{}", random.u32(0..500));
        if random.u32(0..4) == 0 {
            journal.quiet(quiet(origin, &name, Instant::now()));
            continue;
        }
        let mut turn_record = record(origin, &name, Instant::now(), random.usize(0..4096));
        for _ in 0..random.u32(0..3) {
            let page = (0..random.u32(0..12)).map(|_| pool[random.usize(0..pool.len())].clone());
            turn_record.trace.note(listed(page.collect()));
        }
        if random.u32(0..50) == 0 {
            turn_record.effects = record(origin, &name, Instant::now(), 1 << 19).effects;
        }
        if random.bool() {
            turn_record = failed(turn_record);
        }
        journal.turn(turn_record);
        if turn % 2000 == 0 {
            assert!(held(journal) <= RECORD_BYTES, "after {turn} turns");
        }
    }
}

#[test]
fn a_hundred_thousand_turns_stay_within_the_bytes() {
    const THREADS: usize = 4;
    let (journal, origin) = (Journal::new(RECORD_BYTES, THREADS), origin());
    std::thread::scope(|scope| {
        for seed in 0..THREADS {
            let (journal, origin) = (&journal, &origin);
            scope.spawn(move || write(journal, origin, seed as u64, 100_000 / THREADS));
        }
    });
    let held = held(&journal);
    assert!(held <= RECORD_BYTES, "{held}");
    let (turns, quiets) = journal.pick(|_| true, |_| true);
    assert!(turns.iter().any(TurnRecord::is_failure));
    assert!(turns.iter().any(|turn| !turn.is_failure()));
    assert!(!quiets.is_empty());
    let (quiet_turns, dropped) = journal.counts();
    assert!(quiet_turns > 0 && quiet_turns + dropped + turns.len() as u64 == 100_000);
}

#[test]
fn failures_are_not_pushed_out_by_other_turns() {
    let (journal, origin) = (Journal::new(RECORD_BYTES, 1), origin());
    let start = Instant::now();
    for at in 0..20 {
        journal.turn(failed(record(&origin, &format!("bad-{at}"), start, 1000)));
    }
    for at in 0..20_000 {
        journal.turn(record(&origin, &format!("good-{at}"), start, 1000));
    }
    for at in 0..20 {
        let (turns, _) = journal.of(CONTROLLER, &key(&format!("bad-{at}")));
        assert_eq!(turns.len(), 1, "bad-{at}");
        assert_eq!(turns[0].message.as_deref(), Some("refused"));
    }
    let (first, _) = journal.of(CONTROLLER, &key("good-0"));
    let (last, _) = journal.of(CONTROLLER, &key("good-19999"));
    assert_eq!((first.len(), last.len()), (0, 1), "the oldest make way");
    let (all, _) = journal.since(start);
    assert_eq!(journal.counts(), (0, 20_020 - all.len() as u64));
}

#[test]
fn quiet_turns_are_folded_into_a_count() {
    let (journal, one) = (Journal::new(RECORD_BYTES, 1), origin());
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    for ms in 0..1000 {
        journal.quiet(quiet(&one, "x", at(ms)));
    }
    let (turns, quiets) = journal.of(CONTROLLER, &key("x"));
    assert!(turns.is_empty());
    let [folded] = &quiets[..] else {
        panic!("one entry, not {quiets:?}");
    };
    assert_eq!(
        (folded.count, folded.since, folded.began),
        (1000, start, at(999))
    );
    // The first quiet turn on the next generation.
    let mut next = origin();
    Arc::get_mut(&mut next).unwrap().generation = 2;
    journal.quiet(quiet(&next, "x", at(1000)));
    let (_, quiets) = journal.of(CONTROLLER, &key("x"));
    assert_eq!((quiets.len(), quiets[0].count), (1, 1));
    assert_eq!(journal.counts(), (1001, 0));
    assert!(journal.of("other/objects", &key("x")).1.is_empty());
}

#[test]
fn a_quiet_key_that_made_way_for_another_leaves_a_gap() {
    // Room for one record of a quiet turn.
    let journal = Journal::new(8, 1);
    let origin = origin();
    journal.quiet(quiet(&origin, "x", Instant::now()));
    journal.quiet(quiet(&origin, "x", Instant::now()));
    journal.quiet(quiet(
        &origin,
        "x",
        Instant::now() + Duration::from_secs(900),
    ));
    assert!(!journal.has_gaps(), "the turns of one key");
    journal.quiet(quiet(&origin, "y", Instant::now()));
    assert!(journal.has_gaps() && journal.of(CONTROLLER, &key("x")).1.is_empty());
    assert_eq!(journal.counts(), (4, 0));
}

/// Names of objects can be chosen, but not so that they share a place.
#[test]
fn names_that_share_a_place_in_one_journal_do_not_in_another() {
    let (origin, start) = (origin(), Instant::now());
    let new = || Journal::new(1 << 18, 1);
    let is_kept = |journal: &Journal, name: &str| !journal.of(CONTROLLER, &key(name)).1.is_empty();
    let known = new();
    let mut chosen = vec!["x".to_owned()];
    for name in (0..).map(|number: u32| format!("vm-{number}")) {
        known.quiet(quiet(&origin, "x", start));
        known.quiet(quiet(&origin, &name, start));
        if !is_kept(&known, "x") {
            chosen.push(name);
        }
        if chosen.len() == 9 {
            break;
        }
    }
    let kept = |journal: Journal| {
        for name in &chosen {
            journal.quiet(quiet(&origin, name, start));
        }
        chosen.iter().filter(|name| is_kept(&journal, name)).count()
    };
    // With the same places in each journal, one name of nine would be left.
    let all: usize = (0..16).map(|_| kept(new())).sum();
    assert!(all > 16 * 5, "{all}");
}

#[test]
fn long_names_of_quiet_keys_stay_within_the_bytes() {
    let (journal, origin) = (Journal::new(1 << 18, 1), origin());
    let start = Instant::now();
    for at in 0..20_000 {
        let name = format!("{at:0>250}");
        journal.quiet(quiet(&origin, &name, start));
    }
    let held = held(&journal);
    assert!(held <= journal.shares.quiet, "{held}");
    let (_, quiets) = journal.of(CONTROLLER, &key(&format!("{:0>250}", 19_999)));
    assert_eq!(quiets.len(), 1, "the newest is there");
    let (_, quiets) = journal.pick(|_| true, |_| true);
    assert!(quiets.len() > 10, "{}", quiets.len());
}

#[test]
fn a_large_turn_keeps_what_is_small() {
    let (journal, origin) = (Journal::new(RECORD_BYTES, 1), origin());
    let now = Instant::now();
    journal.turn(record(&origin, "small", now, record::LARGEST / 2));
    journal.turn(record(&origin, "large", now, record::LARGEST));
    let mut reads = record(&origin, "reads", now, 10);
    let page = (0..40).map(|_| object("read", 8 << 10)).collect();
    reads.trace.note(listed(page));
    journal.turn(reads);
    let mut seen = record(&origin, "seen", now, 10);
    seen.object = Some(object("seen", record::LARGEST));
    journal.turn(seen);
    for (name, cut) in [
        ("small", false),
        ("large", true),
        ("reads", true),
        ("seen", true),
    ] {
        let (turns, _) = journal.of(CONTROLLER, &key(name));
        let turn = &turns[0];
        assert_eq!(turn.cut.is_some(), cut, "{name}");
        assert_eq!(
            turn.object.is_none() && turn.effects.is_empty(),
            cut,
            "{name}"
        );
        assert!(turn.trace.reads.is_empty(), "{name}");
        assert!(turn.bytes() <= record::LARGEST, "{name}");
        assert_eq!(
            (turn.version, turn.answers.len()),
            (Some(7), 1),
            "{name}: what is small stays"
        );
    }
}

#[test]
fn a_large_turn_keeps_digests_of_its_texts() {
    let (journal, origin) = (Journal::new(RECORD_BYTES, 1), origin());
    let large = |name: &str, reads: &[usize], written: usize| {
        let mut turn = record(&origin, name, Instant::now(), written);
        let page = |size: &usize| listed(vec![object("read", *size)]);
        reads
            .iter()
            .map(page)
            .for_each(|read| turn.trace.note(read));
        turn.previous = Some(object("before", record::LARGEST));
        journal.turn(turn);
        let (turns, _) = journal.of(CONTROLLER, &key(name));
        turns[0].cut.clone().unwrap()
    };
    let one = large("a", &[10, 20], 30);
    assert_eq!((one.reads.0, one.effects.0), (2, 1));
    assert_eq!(one.object, Some(Digest::of(&object("a", 300).text)));
    assert!(one.previous.is_some());
    // The name of the key is part of the effect, and not of what was read.
    let other = large("b", &[10, 20], 30);
    assert_eq!((one.reads, one.previous), (other.reads, other.previous));
    assert_ne!(one.effects, other.effects);
    let read_more = large("c", &[10, 20, record::LARGEST], 30);
    assert_eq!(read_more.reads.0, 3);
    assert_ne!(read_more.reads.1, one.reads.1);
}

#[test]
fn a_plugin_that_says_much_pushes_out_nothing() {
    let (journal, origin) = (Journal::new(RECORD_BYTES, 1), origin());
    let now = Instant::now();
    let long = || "x".repeat(RECORD_BYTES);
    journal.turn(failed(record(&origin, "bad", now, 10)));
    let mut retries = failed(record(&origin, "retries", now, 10));
    retries.act = Act::Returned(Next::Retry(long()));
    retries.message = Some(long());
    retries.answers[0].end = AnswerEnd::Refused(422, long());
    let mut names = failed(record(&origin, "names", now, 10));
    names.effects = vec![Effect::Other(Other {
        name: long(),
        body: String::new(),
    })];
    names.answers[0].object.kind.kind = long();
    for turn in [retries, names] {
        let name = turn.key.clone();
        journal.turn(turn);
        let (turns, _) = journal.of(CONTROLLER, &name);
        assert!(
            turns[0].cut.is_some() && turns[0].bytes() < 8 << 10,
            "{name}"
        );
    }
    let (turns, _) = journal.of(CONTROLLER, &key("bad"));
    assert!(turns.len() == 1 && turns[0].cut.is_none());
    assert!(held(&journal) <= RECORD_BYTES);
}

#[test]
fn without_bytes_nothing_is_kept() {
    let (journal, origin) = (Journal::new(0, 2), origin());
    assert!(!journal.is_on() && Journal::new(RECORD_BYTES, 2).is_on());
    let start = Instant::now();
    journal.turn(record(&origin, "x", start, 10));
    journal.turn(failed(record(&origin, "x", start, 10)));
    journal.quiet(quiet(&origin, "x", start));
    let (turns, quiets) = journal.since(start);
    assert!(turns.is_empty() && quiets.is_empty());
    assert_eq!(held(&journal), 0);
}

#[test]
fn turns_come_out_in_the_order_in_which_they_began() {
    let (journal, origin) = (Journal::new(RECORD_BYTES, 1), origin());
    let start = Instant::now();
    let at = |ms: u64| start + Duration::from_millis(ms);
    // The shares, and the threads, are read one after the other.
    for ms in [50, 10, 40] {
        journal.turn(record(&origin, "x", at(ms), 10));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for ms in [30, 60, 20] {
                journal.turn(failed(record(&origin, "x", at(ms), 10)));
            }
        });
    });
    for (ms, name) in [(70, "y"), (15, "z")] {
        journal.quiet(quiet(&origin, name, at(ms)));
    }
    let began = |turns: &[TurnRecord]| -> Vec<u128> {
        let since = |turn: &TurnRecord| (turn.began - start).as_millis();
        turns.iter().map(since).collect()
    };
    let (turns, _) = journal.of(CONTROLLER, &key("x"));
    assert_eq!(began(&turns), [10, 20, 30, 40, 50, 60]);
    let (turns, quiets) = journal.since(at(40));
    assert_eq!(began(&turns), [40, 50, 60], "those that ended later");
    assert_eq!((quiets.len(), quiets[0].began), (1, at(70)));
    let (_, quiets) = journal.since(start);
    assert!(quiets.is_sorted_by_key(|quiet| quiet.began) && quiets.len() == 2);
}

#[test]
fn reviews_push_out_no_turns_but_some_failed_ones() {
    let (journal, origin) = (Journal::new(1 << 20, 1), origin());
    let failed = |name: &str| TurnRecord {
        result: TurnResult::Error,
        ..record(&origin, name, Instant::now(), 1000)
    };
    journal.turn(record(&origin, "done", Instant::now(), 10));
    for at in 0..1000 {
        journal.turn(failed(&at.to_string()));
    }
    for at in 0..5000 {
        let act = Act::Denied {
            asked: "CREATE of Pod.v1".to_owned(),
            reason: "x".repeat(200),
        };
        let name = format!("denied-{at}");
        let turn = record(&origin, &name, Instant::now(), 1000);
        journal.review(TurnRecord { act, ..turn });
    }
    let (most, part) = (journal.shares.failed, journal.parts.mine().lock());
    assert_eq!(part.turns.records.len(), 1, "it stays");
    let (reviews, failed) = (journal.reviews.lock(), part.failed.bytes);
    let bytes = reviews.ring.bytes;
    assert!(bytes <= most / 2 && bytes > most / 2 - 4096, "{bytes}");
    assert!(
        bytes + failed <= most && failed > most / 2 - 4096,
        "{failed}"
    );
    let is_cut = |review: &TurnRecord| review.cut.is_some() && review.effects.is_empty();
    assert!(reviews.ring.records.iter().all(|review| is_cut(review)));
}

#[test]
fn reviews_of_another_thread_are_part_of_the_bytes() {
    let (journal, origin) = (Journal::new(1 << 20, 1), origin());
    let most = journal.shares.failed;
    let fill = || {
        for at in 0..1000 {
            let name = at.to_string();
            journal.turn(failed(record(&origin, &name, Instant::now(), 1000)));
        }
    };
    let both = || {
        let failed = journal.parts.mine().lock().failed.bytes;
        (failed, journal.reviews.lock().ring.bytes)
    };
    fill();
    assert!(both().0 > most - 4096, "without reviews it has all");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..5000 {
                let name = format!("denied-{at}");
                journal.review(record(&origin, &name, Instant::now(), 10));
            }
        });
    });
    let (before, _) = both();
    fill();
    for turns in [before, both().0] {
        let (_, reviews) = both();
        assert!(turns + reviews <= most, "{turns} and {reviews} of {most}");
        assert!(reviews > most / 2 - 4096, "{reviews}");
    }
    assert!(held(&journal) <= 1 << 20);
    let (records, _) = journal.pick(|_| true, |_| true);
    assert_eq!(journal.counts().1, 7000 - records.len() as u64);
}
