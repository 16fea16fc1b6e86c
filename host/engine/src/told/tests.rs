//! Tests that a guest gets the recorded values in order, and what it gets after the last one.

use rand::Rng;
use vmhost_core::trace::Start;

use super::*;

fn drawn(wall: &[u64], monotonic: &[u64], random: &[u8]) -> Drawn {
    Drawn {
        wall: wall.into(),
        monotonic: monotonic.into(),
        random: random.into(),
        cut: false,
    }
}

fn told() -> Told {
    Told {
        now: 5_000,
        seed: Some(7),
        start: drawn(&[10, 20], &[1], &[1, 2, 3, 4, 5]),
        call: drawn(&[30], &[], &[6, 7, 8, 9, 10, 11, 12, 13, 14]),
    }
}

/// Returns a trace with these draws.
fn traced(start: Drawn, call: Drawn) -> Trace {
    let mut trace = Trace::default();
    trace.drawn = call;
    trace.start = Some(Arc::new(Start {
        seed: 7,
        drawn: start,
    }));
    trace
}

#[test]
fn a_clock_goes_on_from_its_last_reading() {
    let (taps, tape) = (Taps::default(), Tape::new(Arc::new(told())));
    let wall = Wall(taps.clone(), tape.clone());
    let monotonic = Monotonic(taps.clone(), tape.clone());
    assert_eq!(wall.now(), Duration::from_nanos(10));
    assert_eq!((monotonic.now(), monotonic.now()), (1, 1 + STEP));
    tape.begin();
    // The second reading of the start is dropped: the call has readings of its own.
    assert_eq!(wall.now(), Duration::from_nanos(30));
    assert_eq!(wall.now(), Duration::from_nanos(30 + STEP));
    assert_eq!(monotonic.now(), 1 + 2 * STEP);
    let noted = taps.take().unwrap_or_default();
    assert_eq!(noted.wall, [10, 30, 30 + STEP]);
    assert_eq!(noted.monotonic.len(), 3);
}

#[test]
fn a_call_without_a_reading_has_the_time_of_its_turn() {
    let of = Told {
        call: Drawn::default(),
        ..told()
    };
    let tape = Tape::new(Arc::new(of));
    let wall = Wall(Taps::default(), tape.clone());
    assert_eq!(wall.now(), Duration::from_nanos(10));
    tape.begin();
    assert_eq!(wall.now(), Duration::from_nanos(5_000));
    assert_eq!(wall.now(), Duration::from_nanos(5_000 + STEP));
}

#[test]
fn random_numbers_are_made_of_the_bytes_that_the_taps_note() {
    let (taps, tape) = (Taps::default(), Tape::new(Arc::new(told())));
    let mut secure = Chance(taps.clone(), tape.clone());
    let mut insecure = Chance(taps.clone(), tape.clone());
    assert_eq!(secure.next_u32(), 0x0403_0201);
    tape.begin();
    assert_eq!(insecure.next_u64(), 0x0d0c_0b0a_0908_0706);
    // One byte is left.
    let mut bytes = [1; 3];
    secure.fill_bytes(&mut bytes);
    assert_eq!(bytes, [14, 0, 0]);
    let wanted: Vec<u8> = (1..=4).chain(6..=14).chain([0, 0]).collect();
    assert_eq!(taps.take().unwrap_or_default().random, wanted);
}

#[test]
fn what_was_noted_is_told_again() {
    let mut wasi = WasiCtxBuilder::new();
    let (taps, seed, tape) = tell(&mut wasi, Arc::new(told()));
    assert_eq!((seed, taps.take()), (7, None));
    tape.begin();
    let mut first = Chance(taps.clone(), tape);
    let numbers = (first.next_u32(), first.next_u32());
    let again = Told {
        call: taps.take().unwrap_or_default(),
        ..told()
    };
    let tape = Tape::new(Arc::new(again));
    tape.begin();
    let mut second = Chance(Taps::default(), tape);
    assert_eq!((second.next_u32(), second.next_u32()), numbers);
}

#[test]
fn more_and_less_than_recorded_are_told_apart() {
    let record = told();
    let same = traced(record.start.clone(), record.call.clone());
    assert_eq!(record.compare(&same), Draws::default());
    let (more, less) = (true, true);
    let none = Drawn::default();
    for (start, call, expected) in [
        (&record.start, &none, (!more, less)),
        (&record.start, &record.start, (more, less)),
        (&drawn(&[1; 3], &[1], &[0; 5]), &record.call, (more, !less)),
        (&drawn(&[1; 2], &[1], &[0; 4]), &record.call, (!more, less)),
    ] {
        let draws = record.compare(&traced(start.clone(), call.clone()));
        assert_eq!((draws.more, draws.less), expected, "{start:?} {call:?}");
    }
    assert_eq!(record.compare(&Trace::default()), Draws::default());
}

#[test]
fn without_random_numbers_their_count_is_no_difference() {
    let record = Told {
        seed: None,
        ..told()
    };
    let other = drawn(&[1], &[], &[0; 99]);
    let draws = record.compare(&traced(record.start.clone(), other));
    assert_eq!(draws, Draws::default());
}
