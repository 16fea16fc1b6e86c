//! Tells what it observes of time and randomness: the wall clock, how far the monotonic clock
//! advanced, the order of a hash map. It logs each in a line, and writes all to the annotation
//! `vmhost.test/senses` of a VM that is creating, which it completes.

use std::collections::HashSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use kit::vmhost::plugin::log::{Level, log};
use kit::{Guest, Next, Outcome, Request};

const ANNOTATION: &str = "vmhost.test/senses";

struct Senses;

impl Guest for Senses {
    fn describe() -> Result<String, String> {
        kit::vm_policy("senses")
    }

    fn reconcile(request: Request) -> Outcome {
        let started = Instant::now();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let order: Vec<u32> = (0..20).collect::<HashSet<_>>().into_iter().collect();
        let sensed = [
            format!("wall {}", wall.map_or(0, |wall| wall.as_secs())),
            format!("order {order:?}"),
            format!("elapsed {:?}", started.elapsed()),
        ];
        for line in &sensed {
            log(Level::Info, line);
        }
        if kit::status(&request) != "creating" {
            return kit::done();
        }
        let sensed = sensed.join(", ");
        Outcome {
            effects: vec![kit::finish(
                &request,
                "creating",
                "complete",
                (ANNOTATION, &sensed),
            )],
            next: Next::AwaitChange,
        }
    }

    kit::no_map!();
}

kit::export!(Senses with_types_in kit);
