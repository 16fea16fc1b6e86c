//! Allocates as much memory as possible.

use kit::{Guest, Outcome, Request};

struct EatMemory;

impl Guest for EatMemory {
    fn describe() -> Result<String, String> {
        kit::vm_policy("eat-memory")
    }

    fn reconcile(_: Request) -> Outcome {
        let mut taken: Vec<Vec<u8>> = Vec::new();
        loop {
            // Writes to the memory, so that it is more than address space.
            taken.push(vec![1; 1 << 20]);
            std::hint::black_box(&taken);
        }
    }

    kit::no_map!();
}

kit::export!(EatMemory with_types_in kit);
