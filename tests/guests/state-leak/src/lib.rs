//! Counts its calls in memory and writes the count to the VM: more than 1 shows a reused instance.

use kit::{Guest, Next, Outcome, Request};
use std::sync::atomic::{AtomicU32, Ordering};

static CALLS: AtomicU32 = AtomicU32::new(0);

struct StateLeak;

impl Guest for StateLeak {
    fn describe() -> Result<String, String> {
        kit::vm_policy("state-leak")
    }

    fn reconcile(request: Request) -> Outcome {
        let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
        if kit::status(&request) != "creating" {
            return kit::done();
        }
        let finish = kit::finish(
            &request,
            "creating",
            "complete",
            ("vmhost.test/calls", &calls.to_string()),
        );
        Outcome {
            effects: vec![finish],
            next: Next::AwaitChange,
        }
    }

    kit::no_map!();
}

kit::export!(StateLeak with_types_in kit);
