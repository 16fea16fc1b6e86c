//! Writes the clock readings and random numbers of a call as the parts of `request.json`. This
//! module must not know why random numbers may have to be left out.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use vmhost_core::Trace;

use crate::journal::case::{Random, Readings};

/// Returns `now` and `random`. `began` is the time at which the turn began; it stands for the wall
/// clock's if the call did not read that. `has_chance` says whether random numbers may be written.
pub(super) fn of(trace: &Trace, began: SystemTime, has_chance: bool) -> (String, Random) {
    let call = &trace.drawn;
    let start = trace.start.as_deref();
    let drawn = start.map(|start| &start.drawn);
    let of_start = |readings: Option<&Vec<u64>>| readings.cloned().unwrap_or_default();
    let mut random = Random {
        wall: Readings {
            start: of_start(drawn.map(|drawn| &drawn.wall)),
            call: call.wall.clone(),
        },
        monotonic: Readings {
            start: of_start(drawn.map(|drawn| &drawn.monotonic)),
            call: call.monotonic.clone(),
        },
        ..Random::default()
    };
    if let (true, Some(start)) = (has_chance, start) {
        random.seed = Some(format!("{:032x}", start.seed));
        random.start = bytes(&start.drawn.random);
        random.call = bytes(&call.random);
    }
    (time(call.wall.first().copied(), began), random)
}

fn bytes(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| hex::encode(bytes))
}

/// Formats the first reading of the wall clock, or else the time of the turn: RFC 3339 with
/// nanoseconds.
fn time(reading: Option<u64>, began: SystemTime) -> String {
    let of_turn = || began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = reading.map_or_else(|| of_turn().as_nanos() as i128, i128::from);
    Timestamp::from_nanosecond(nanos).map_or_else(|_| String::new(), |at| format!("{at:.9}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use vmhost_core::trace::{Drawn, Start};

    use super::*;

    fn trace() -> Trace {
        let drawn = |wall: &[u64], random: &[u8]| Drawn {
            wall: wall.into(),
            monotonic: vec![7],
            random: random.into(),
            cut: false,
        };
        let mut trace = Trace::default();
        trace.start = Some(Arc::new(Start {
            seed: 0xff,
            drawn: drawn(&[1], &[1, 0xab]),
        }));
        trace.drawn = drawn(&[1_769_860_800_000_000_001, 1_769_860_800_000_000_005], &[]);
        trace
    }

    #[test]
    fn all_draws_are_told() {
        let (now, random) = of(&trace(), UNIX_EPOCH, true);
        assert_eq!(now, "2026-01-31T12:00:00.000000001Z");
        assert_eq!(
            random.seed.as_deref(),
            Some("000000000000000000000000000000ff")
        );
        assert_eq!((random.start.as_deref(), random.call), (Some("01ab"), None));
        assert_eq!((random.wall.start, random.wall.call.len()), (vec![1], 2));
        assert_eq!(random.monotonic.start, random.monotonic.call);
    }

    #[test]
    fn random_numbers_may_stay_secret() {
        let (_, random) = of(&trace(), UNIX_EPOCH, false);
        assert_eq!((random.seed, random.start, random.call), (None, None, None));
        assert_eq!(random.wall.call.len(), 2);
    }

    #[test]
    fn a_call_that_did_not_look_has_the_time_of_its_turn() {
        let began = UNIX_EPOCH + Duration::from_micros(1_769_860_800_000_001);
        let (now, random) = of(&Trace::default(), began, true);
        assert_eq!(now, "2026-01-31T12:00:00.000001000Z");
        assert_eq!(random, Random::default());
    }
}
