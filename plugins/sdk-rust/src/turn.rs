//! From a call of the host to the policy's function for it, and back to an outcome.

use crate::Policy;
use crate::bindings::vmhost::plugin::types::{Other, Outcome, Request};
use crate::convert::{Batch, answer};
use crate::error::Result;
use crate::review::Review;

/// The group of keys that are no objects of a cluster.
const GROUP: &str = "vmhost";

/// Calls a policy as the host does: a review goes to [`Policy::admit`], a batch of objects to
/// [`Policy::convert`], all else to [`Policy::reconcile`].
pub fn turn<P: Policy>(request: &Request) -> Outcome {
    let kind = &request.key.kind;
    let outcome = match (kind.group.as_str(), kind.kind.as_str()) {
        (GROUP, "Admission") => admission::<P>(request),
        (GROUP, "Conversion") => conversion::<P>(request),
        _ => P::reconcile(request),
    };
    outcome.unwrap_or_else(|error| Outcome::retry(error.to_string()))
}

/// A failure is no verdict: the webhook's failure policy decides about the request.
fn admission<P: Policy>(request: &Request) -> Result<Outcome> {
    let text = request.object.as_deref().unwrap_or_default();
    let verdict = P::admit(&Review::of(&request.controller, text)?)?;
    Ok(answered("admission", verdict.to_json()))
}

/// A failure is an answer, whose text the API server hands to the client.
fn conversion<P: Policy>(request: &Request) -> Result<Outcome> {
    let text = request.object.as_deref().unwrap_or_default();
    let batch = Batch::of(&request.controller, text)?;
    Ok(answered("conversion", answer(P::convert(batch))))
}

fn answered(name: &str, body: String) -> Outcome {
    Outcome::await_change().with(Other {
        name: name.into(),
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::vmhost::plugin::types::{Effect, Next};
    use crate::{Description, Error, Kind, ObjectKey, Verdict};

    /// A policy with webhooks and no controller.
    struct Guard;

    impl Policy for Guard {
        fn describe() -> Description {
            Description::new("guard")
        }

        fn admit(review: &Review) -> Result<Verdict> {
            match review.name.as_str() {
                "broken" => Err(Error::new("broken on purpose")),
                name => Ok(Verdict::deny(format!("{} refuses {name}", review.webhook))),
            }
        }

        fn convert(batch: Batch) -> Result<Vec<serde_json::Value>> {
            batch.each(|object, _| match object["bad"].is_null() {
                true => Ok(()),
                false => Err(Error::new("bad")),
            })
        }
    }

    fn called<P: Policy>(kind: &'static str, object: &str) -> Outcome {
        let key = ObjectKey::of(&Kind::new("vmhost", "v1", kind), None, "u-1");
        turn::<P>(&Request::of("hook", key, Some(object)))
    }

    fn body(outcome: &Outcome) -> (&str, &str) {
        match outcome.effects.as_slice() {
            [Effect::Other(other)] if outcome.next == Next::AwaitChange => {
                (other.name.as_str(), other.body.as_str())
            }
            _ => panic!("{outcome:?}"),
        }
    }

    #[test]
    fn a_review_is_answered_by_admit() {
        let outcome = called::<Guard>("Admission", r#"{"uid":"u-1","name":"a"}"#);
        let verdict = r#"{"allowed":false,"status":{"message":"hook refuses a","reason":"Forbidden","code":403}}"#;
        assert_eq!(body(&outcome), ("admission", verdict));
        let failed = called::<Guard>("Admission", r#"{"uid":"u-1","name":"broken"}"#);
        assert_eq!(failed, Outcome::retry("broken on purpose"));
    }

    #[test]
    fn a_batch_is_answered_by_convert() {
        let batch = r#"{"desiredAPIVersion":"g/v2","objects":[{"apiVersion":"g/v1"}]}"#;
        let outcome = called::<Guard>("Conversion", batch);
        let converted = r#"{"convertedObjects":[{"apiVersion":"g/v2"}]}"#;
        assert_eq!(body(&outcome), ("conversion", converted));
        let bad = batch.replace("\"g/v1\"", "\"g/v1\",\"bad\":1");
        let outcome = called::<Guard>("Conversion", &bad);
        let (name, text) = body(&outcome);
        assert!(
            name == "conversion" && text.starts_with(r#"{"failed":""#),
            "{text}"
        );
    }

    #[test]
    fn what_a_policy_lacks_is_a_failure_and_never_an_answer() {
        struct Nothing;
        impl Policy for Nothing {
            fn describe() -> Description {
                Description::new("nothing")
            }
        }
        for kind in ["Admission", "ConfigMap"] {
            let outcome = called::<Nothing>(kind, r#"{"uid":"u-1"}"#);
            assert!(matches!(outcome.next, Next::Retry(_)) && outcome.effects.is_empty());
        }
    }
}
