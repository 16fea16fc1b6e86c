//! Never returns from `reconcile`. Its name is in its bytes, so that a test can have several
//! plugins.

use kit::{Guest, Outcome, Request};

struct Spin;

/// The mark and the name, padded with spaces.
static NAME: [u8; 32] = *b"VMHOST-NAME-spin                ";

impl Guest for Spin {
    fn describe() -> Result<String, String> {
        // Prevents constant folding, because tests patch the bytes.
        let name = &std::hint::black_box(&NAME)[12..];
        kit::vm_policy(String::from_utf8_lossy(name).trim_end())
    }

    fn reconcile(_: Request) -> Outcome {
        loop {
            std::hint::black_box(());
        }
    }

    kit::no_map!();
}

kit::export!(Spin with_types_in kit);
