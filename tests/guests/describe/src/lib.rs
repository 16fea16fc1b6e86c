//! Returns the description that a test writes into its bytes; a text that begins with `refuse: ` is
//! returned as an error.

use kit::{Guest, Outcome, Request};

/// The description, found by its first words and padded with spaces.
static DESCRIPTION: [u8; 4096] = {
    let mark = *b"VMHOST-DESCRIPTION";
    let mut text = [b' '; 4096];
    let mut at = 0;
    while at < mark.len() {
        text[at] = mark[at];
        at += 1;
    }
    text
};

struct Describe;

impl Guest for Describe {
    fn describe() -> Result<String, String> {
        // Prevents constant folding, because tests patch the bytes.
        let text = std::hint::black_box(&DESCRIPTION);
        let end = text
            .iter()
            .rposition(|byte| *byte != b' ')
            .map_or(0, |last| last + 1);
        let text = String::from_utf8_lossy(&text[..end]).into_owned();
        match text.strip_prefix("refuse: ") {
            Some(reason) => Err(reason.into()),
            None => Ok(text),
        }
    }

    fn reconcile(_: Request) -> Outcome {
        kit::done()
    }

    kit::no_map!();
}

kit::export!(Describe with_types_in kit);
