//! Allocates as much memory as possible. Its bytes contain its name, so that a test can give it
//! another name.

use kit::{Guest, Outcome, Request};

struct EatMemory;

/// The mark and the name, padded with spaces.
static NAME: [u8; 32] = *b"VMHOST-NAME-eat-memory          ";

impl Guest for EatMemory {
    fn describe() -> Result<String, String> {
        // Prevents constant folding, because tests patch the bytes.
        let name = &std::hint::black_box(&NAME)[12..];
        kit::vm_policy(String::from_utf8_lossy(name).trim_end())
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
