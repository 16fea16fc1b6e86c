//! Calls itself until the stack is exhausted.

use kit::{Guest, Next, Outcome, Request};

fn deeper(depth: u64) -> u64 {
    // Used after the call, so that the compiler cannot make a loop of the recursion.
    let kept = std::hint::black_box([depth; 16]);
    if depth == u64::MAX {
        0
    } else {
        deeper(depth + 1) + kept[3]
    }
}

struct Recurse;

impl Guest for Recurse {
    fn describe() -> Result<String, String> {
        kit::vm_policy("recurse")
    }

    fn reconcile(request: Request) -> Outcome {
        let depth = deeper(request.key.name.len() as u64);
        Outcome {
            effects: Vec::new(),
            next: Next::Retry(depth.to_string()),
        }
    }

    kit::no_map!();
}

kit::export!(Recurse with_types_in kit);
