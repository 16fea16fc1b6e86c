//! Returns 100 MiB of effects from 1 MiB of memory: every effect points at the same text.

use kit::{Effect, Guest, Next, Other, Outcome, Request};

struct Amplify;

impl Guest for Amplify {
    fn describe() -> Result<String, String> {
        kit::vm_policy("amplify")
    }

    fn reconcile(_: Request) -> Outcome {
        let text = "x".repeat(1 << 20).leak();
        let effects = (0..100)
            .map(|_| {
                // SAFETY: unsound on purpose. Freeing these strings would free the same memory a
                // hundred times, so the guest never frees them.
                let body =
                    unsafe { String::from_raw_parts(text.as_mut_ptr(), text.len(), text.len()) };
                Effect::Other(Other {
                    name: "anything".into(),
                    body,
                })
            })
            .collect();
        Outcome {
            effects,
            next: Next::AwaitChange,
        }
    }

    kit::no_map!();
}

kit::export!(Amplify with_types_in kit);
