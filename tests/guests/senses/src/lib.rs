//! Logs what it observes of time and randomness: the wall clock, how far the monotonic clock
//! advanced, the order of a hash map.

use std::collections::HashSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use kit::vmhost::plugin::log::{Level, log};
use kit::{Guest, Outcome, Request};

struct Senses;

impl Guest for Senses {
    fn describe() -> Result<String, String> {
        kit::vm_policy("senses")
    }

    fn reconcile(_: Request) -> Outcome {
        let started = Instant::now();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let order: Vec<u32> = (0..20).collect::<HashSet<_>>().into_iter().collect();
        log(
            Level::Info,
            &format!("wall {}", wall.map_or(0, |wall| wall.as_secs())),
        );
        log(Level::Info, &format!("order {order:?}"));
        log(Level::Info, &format!("elapsed {:?}", started.elapsed()));
        kit::done()
    }

    kit::no_map!();
}

kit::export!(Senses with_types_in kit);
