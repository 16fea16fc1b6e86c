//! Returns bytes that are not UTF-8.

use kit::{Guest, Next, Outcome, Request};

struct BadUtf8;

impl Guest for BadUtf8 {
    fn describe() -> Result<String, String> {
        kit::vm_policy("bad-utf8")
    }

    fn reconcile(_: Request) -> Outcome {
        // SAFETY: unsound on purpose, to test the host. The guest itself never reads the bytes as
        // text.
        let text = unsafe { String::from_utf8_unchecked(vec![b'a', 0xff, 0xfe, 0xc0]) };
        Outcome {
            effects: Vec::new(),
            next: Next::Retry(text),
        }
    }

    kit::no_map!();
}

kit::export!(BadUtf8 with_types_in kit);
