//! Panics in `reconcile`: its message reaches the host only through stderr. Its bytes contain its
//! name, so that a test can give it another name.

use kit::{Guest, Outcome, Request};

struct Trap;

/// The mark and the name, padded with spaces.
static NAME: [u8; 32] = *b"VMHOST-NAME-trap                ";

impl Guest for Trap {
    fn describe() -> Result<String, String> {
        // Prevents constant folding, because tests patch the bytes.
        let name = &std::hint::black_box(&NAME)[12..];
        kit::vm_policy(String::from_utf8_lossy(name).trim_end())
    }

    fn reconcile(request: Request) -> Outcome {
        panic!("this policy always panics, at {}", request.key.name)
    }

    kit::no_map!();
}

kit::export!(Trap with_types_in kit);
