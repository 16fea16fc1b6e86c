//! Allocates as much memory as possible in `describe`.

use kit::{Guest, Outcome, Request};

struct EatMemoryInDescribe;

impl Guest for EatMemoryInDescribe {
    fn describe() -> Result<String, String> {
        let mut taken: Vec<Vec<u8>> = Vec::new();
        loop {
            taken.push(vec![1; 1 << 20]);
            std::hint::black_box(&taken);
        }
    }

    fn reconcile(_: Request) -> Outcome {
        kit::done()
    }

    kit::no_map!();
}

kit::export!(EatMemoryInDescribe with_types_in kit);
