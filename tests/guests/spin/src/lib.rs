//! Never returns from `reconcile`.

use kit::{Guest, Outcome, Request};

struct Spin;

impl Guest for Spin {
    fn describe() -> String {
        kit::vm_policy("spin")
    }

    fn reconcile(_: Request) -> Outcome {
        loop {
            std::hint::black_box(());
        }
    }
}

kit::export!(Spin with_types_in kit);
