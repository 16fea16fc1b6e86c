//! The text of an object in a case: as the call got it, unless a value in it is hidden. This module
//! must not know which values are sensitive.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The text of an object in a case.
#[derive(Clone, Debug)]
pub(super) struct ObjectText(String);

impl ObjectText {
    /// Chooses the text of an object. `before` is the object's value, and `after` the same value
    /// with sensitive values hidden.
    pub(super) fn new(text: &str, before: &Value, after: &Value) -> Self {
        // Parsing drops one of two members with the same name, so that the text may hold a value
        // that was not checked.
        let is_clean = before == after && serde_json::from_str::<Once>(text).is_ok();
        Self(match is_clean {
            true => text.trim().to_owned(),
            false => after.to_string(),
        })
    }

    /// The text, which is JSON.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The text as a part of a document.
    pub(super) fn raw(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.0.clone()).ok()
    }
}

/// Returns whether a text is JSON with a member that comes twice, of which parsing drops one.
pub(super) fn has_a_member_twice(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok() && serde_json::from_str::<Once>(text).is_err()
}

/// JSON in which no object has a member twice.
struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OnceVisitor)
    }
}

struct OnceVisitor;

impl<'de> Visitor<'de> for OnceVisitor {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without a member that comes twice")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Once, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a member comes twice"));
            }
            map.next_value::<Once>()?;
        }
        Ok(Once)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Once, A::Error> {
        while seq.next_element::<Once>()?.is_some() {}
        Ok(Once)
    }

    fn visit_unit<E>(self) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_str<E>(self, _: &str) -> Result<Once, E> {
        Ok(Once)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(text: &str, after: Value) -> String {
        let before = serde_json::from_str(text).unwrap();
        ObjectText::new(text, &before, &after).text().to_owned()
    }

    #[test]
    fn a_text_without_a_secret_stays_as_it_is() {
        let text = r#" {"b": [1e3, null, true, -1, "\u00e9"],"a":{}}"#;
        let value = serde_json::from_str(text).unwrap();
        assert_eq!(told(text, value), text.trim());
    }

    #[test]
    fn a_text_with_a_secret_is_made_anew() {
        let text = r#"{"b":1,"a":"secret"}"#;
        let hidden = json!({ "b": 1, "a": "*" });
        assert_eq!(told(text, hidden), r#"{"a":"*","b":1}"#);
    }

    #[test]
    fn what_a_value_does_not_show_is_not_told() {
        for text in [r#"{"a":"secret","a":1}"#, r#"{"x":[{"a":"secret","a":1}]}"#] {
            let value: Value = serde_json::from_str(text).unwrap();
            let told = told(text, value);
            assert!(!told.contains("secret"), "{told}");
        }
    }
}
