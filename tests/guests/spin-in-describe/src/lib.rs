//! Never returns from `describe`.

use kit::{Guest, Outcome, Request};

struct SpinInDescribe;

impl Guest for SpinInDescribe {
    fn describe() -> Result<String, String> {
        loop {
            std::hint::black_box(());
        }
    }

    fn reconcile(_: Request) -> Outcome {
        kit::done()
    }

    kit::no_map!();
}

kit::export!(SpinInDescribe with_types_in kit);
