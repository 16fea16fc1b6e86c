//! Panics in `reconcile`: its message reaches the host only through stderr.

use kit::{Guest, Outcome, Request};

struct Trap;

impl Guest for Trap {
    fn describe() -> Result<String, String> {
        kit::vm_policy("trap")
    }

    fn reconcile(request: Request) -> Outcome {
        panic!("this policy always panics, at {}", request.key.name)
    }

    kit::no_map!();
}

kit::export!(Trap with_types_in kit);
