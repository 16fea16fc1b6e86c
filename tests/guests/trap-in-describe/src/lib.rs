//! Panics in `describe`.

use kit::{Guest, Outcome, Request};

struct TrapInDescribe;

impl Guest for TrapInDescribe {
    fn describe() -> Result<String, String> {
        panic!("this policy cannot describe itself")
    }

    fn reconcile(_: Request) -> Outcome {
        kit::done()
    }

    kit::no_map!();
}

kit::export!(TrapInDescribe with_types_in kit);
