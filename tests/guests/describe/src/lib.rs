//! Returns the description that a test writes into its bytes; a text that begins with `refuse: ` is
//! returned as an error.

use kit::{Guest, Outcome, Request};

struct Describe;

impl Guest for Describe {
    fn describe() -> Result<String, String> {
        let text = kit::description();
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
