//! An object's text as a CEL value: parsed directly from the JSON, with strings borrowed from the
//! text. This module must not know the condition that reads it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::Val;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Parses the members of an object that an expression reads (`None` for all) and skips the others.
/// Fails if the text is not a JSON object, or is nested more than 127 levels deep.
pub(super) fn object<'a>(
    text: &'a str,
    members: Option<&BTreeSet<String>>,
) -> Result<Box<dyn Val + 'a>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let object = deserializer.deserialize_map(Members(members))?;
    deserializer.end()?;
    Ok(object)
}

/// Visits the members of an object and keeps the wanted ones.
struct Members<'r>(Option<&'r BTreeSet<String>>);

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Box<dyn Val + 'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = HashMap::new();
        while let Some(Text(key)) = map.next_key()? {
            if self.0.is_none_or(|wanted| wanted.contains(&*key)) {
                members.insert(CelMapKey::String(key.into()), map.next_value_seed(Any)?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Box::new(CelMap::from(members)))
    }
}

/// Visits any value inside the object.
struct Any;

impl<'de> DeserializeSeed<'de> for Any {
    type Value = Box<dyn Val + 'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = Box<dyn Val + 'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Members(None).visit_map(map)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Any)? {
            items.push(item);
        }
        Ok(Box::new(CelList::from(items)))
    }
    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Box::new(CelBool::from(value)))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Box::new(CelInt::from(value)))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        // A whole number is an int, as everywhere in Kubernetes; a number that does not fit is a
        // uint.
        Ok(match i64::try_from(value) {
            Ok(value) => Box::new(CelInt::from(value)),
            Err(_) => Box::new(CelUInt::from(value)),
        })
    }
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Box::new(CelDouble::from(value)))
    }
    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Box::new(CelString::from(value)))
    }
    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Box::new(CelString::from(value.to_owned())))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Box::new(CelNull))
    }
}

/// A key, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
