//! Guards: a __kind__ is stored only if its `spec.who` names somebody.

use serde::Deserialize;
use vmhost_plugin::{Description, Policy, Result, Review, Rule, Verdict, Webhook};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    who: Option<String>,
}

/// The policy.
pub struct Guard;

impl Policy for Guard {
    fn describe() -> Description {
        let rule = Rule::new(&["__group__"], &["__version__"], &["__plural__"]);
        Description::new("__name__")
            .version(env!("CARGO_PKG_VERSION"))
            .webhook(Webhook::validating("who").rule(rule))
    }

    fn admit(review: &Review) -> Result<Verdict> {
        let Some(Object { spec }) = review.object()? else {
            return Ok(Verdict::allow()); // a deletion
        };
        Ok(match spec.who.as_deref() {
            None | Some("") => Verdict::deny("spec.who must name somebody"),
            Some(_) => Verdict::allow(),
        })
    }
}

vmhost_plugin::export!(Guard);

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(object: &str) -> Option<String> {
        let request = format!(r#"{{"uid":"u","operation":"CREATE","object":{object}}}"#);
        let review = Review::of("who", &request).unwrap();
        let verdict = Guard::admit(&review).unwrap();
        verdict.message().map(str::to_owned)
    }

    #[test]
    fn somebody_has_to_be_named() {
        let refused = Some("spec.who must name somebody");
        for (object, expected) in [
            (r#"{"spec":{"who":"Ada"}}"#, None),
            (r#"{"spec":{"who":""}}"#, refused),
            (r#"{"spec":{}}"#, refused),
            ("null", None),
        ] {
            assert_eq!(refusal(object).as_deref(), expected, "{object}");
        }
    }
}
