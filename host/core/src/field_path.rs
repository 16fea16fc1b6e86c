//! Paths into an object's JSON: `spec.volumes[*].secret.secretName`, `metadata.labels["app.kubernetes.io/name"]`.
//!
//! It owns the grammar and the walk over the text. The walk makes no tree: it skips what the path does not name, and ends when nothing more can match.
//! It must not know what the values mean (an index key, a selector's operand, the name of an object).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

mod fields;
pub use fields::Fields;

/// Longest path in bytes: nothing in an object lies deeper.
const LONGEST: usize = 1024;

/// A parsed path. It prints and serialises as it was written.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FieldPath {
    text: Box<str>,
    /// Never empty, and the first is a `Key`.
    steps: Box<[Step]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Step {
    /// A member of an object.
    Key(Box<str>),
    /// Every item of a list, every value of an object.
    All,
}

/// A path that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a path such as `spec.volumes[*].name`: {reason}")]
pub struct FieldPathError {
    /// The path as it was written.
    pub path: String,
    /// What is wrong with it; names the text at fault.
    pub reason: String,
}

impl FieldPath {
    /// The uids of an object's owners.
    pub fn owner_uids() -> Self {
        let key = |name: &str| Step::Key(name.into());
        Self {
            text: "metadata.ownerReferences[*].uid".into(),
            steps: [
                key("metadata"),
                key("ownerReferences"),
                Step::All,
                key("uid"),
            ]
            .into(),
        }
    }

    /// Reads a path: names joined by dots, `[*]` for every item, `["any key"]` (a JSON string) for a key with dots or brackets in it.
    pub fn parse(text: &str) -> Result<Self, FieldPathError> {
        let fail = |reason| FieldPathError {
            path: crate::text::cut(text, LONGEST).into(),
            reason,
        };
        if text.len() > LONGEST {
            return Err(fail(format!("longer than {LONGEST} bytes")));
        }
        let (first, mut rest) = name(text).map_err(fail)?;
        let mut steps = vec![Step::Key(first.into())];
        while !rest.is_empty() {
            let step;
            (step, rest) = if let Some(after) = rest.strip_prefix('.') {
                let (name, after) = name(after).map_err(fail)?;
                (Step::Key(name.into()), after)
            } else if let Some(after) = rest.strip_prefix("[*]") {
                (Step::All, after)
            } else {
                let (key, after) = bracket(rest).map_err(fail)?;
                (Step::Key(key.into()), after)
            };
            steps.push(step);
        }
        Ok(Self {
            text: text.into(),
            steps: steps.into(),
        })
    }

    /// The longest prefix that plain dots can write: what pruning has to keep so that this path still finds what it names. Never empty.
    pub fn root_dotted(&self) -> String {
        let mut root = String::new();
        for step in &self.steps {
            match step {
                Step::Key(key) if !key.is_empty() && !key.contains('.') => {
                    if !root.is_empty() {
                        root.push('.');
                    }
                    root.push_str(key);
                }
                _ => break,
            }
        }
        root
    }

    /// The values that the path names in an object's JSON, in its order: strings unescaped; numbers as they are written; `true` and `false`.
    ///
    /// Null, objects, lists (without `[*]`) and what is missing give nothing, nor does text that is not JSON. What stands behind the last value that can match is not
    /// looked at.
    pub fn values<'a>(&self, json: &'a str) -> Vec<Cow<'a, str>> {
        let mut walk = Walk {
            found: Vec::new(),
            done: false,
        };
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let rest = Rest {
            steps: &self.steps,
            fanned: false,
            walk: &mut walk,
        };
        let end = rest
            .deserialize(&mut deserializer)
            .and_then(|()| deserializer.end());
        if end.is_err() && !walk.done {
            walk.found.clear();
        }
        walk.found
    }
}

/// A name up to the next dot or bracket, and what follows it.
fn name(text: &str) -> Result<(&str, &str), String> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return Err(match text {
            "" => "a name is missing at its end".into(),
            _ => format!("a name is missing before {text:?}"),
        });
    }
    if let Some(bad) = name
        .chars()
        .find(|c| c.is_whitespace() || c.is_control() || matches!(c, ']' | '*' | '"' | '\'' | '\\'))
    {
        return Err(format!("{bad:?} in {name:?} is no part of a plain name"));
    }
    Ok((name, rest))
}

/// `["key"]` at the beginning of the text, and what follows it.
fn bracket(text: &str) -> Result<(String, &str), String> {
    let fail = || format!("{text:?} begins with neither `.name`, `[*]` nor `[\"key\"]`");
    let string = text.strip_prefix('[').ok_or_else(fail)?;
    if !string.starts_with('"') {
        return Err(fail());
    }
    let mut keys = serde_json::Deserializer::from_str(string).into_iter::<String>();
    let key = keys
        .next()
        .ok_or_else(fail)?
        .map_err(|_| format!("{text:?} holds no JSON string"))?;
    let rest = string[keys.byte_offset()..]
        .strip_prefix(']')
        .ok_or_else(|| format!("{text:?} has no `]` behind the key"))?;
    Ok((key, rest))
}

impl FromStr for FieldPath {
    type Err = FieldPathError;
    fn from_str(text: &str) -> Result<Self, FieldPathError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for FieldPath {
    type Error = FieldPathError;
    fn try_from(text: String) -> Result<Self, FieldPathError> {
        Self::parse(&text)
    }
}

impl From<FieldPath> for String {
    fn from(path: FieldPath) -> Self {
        path.text.into()
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldPath({})", self.text)
    }
}

/// What has been found so far.
struct Walk<'de> {
    found: Vec<Cow<'de, str>>,
    /// The walk ended by itself: the error that stopped serde is not one.
    done: bool,
}

/// The steps that are left below the value that comes next.
struct Rest<'p, 'w, 'de> {
    steps: &'p [Step],
    /// A `[*]` stands above: other branches may match too.
    fanned: bool,
    walk: &'w mut Walk<'de>,
}

impl<'de> DeserializeSeed<'de> for Rest<'_, '_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.steps.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let raw = <&RawValue>::deserialize(deserializer)?;
        self.walk.found.extend(scalar(raw.get()));
        Ok(())
    }
}

/// Text of a string, number or boolean.
fn scalar(raw: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    match raw.as_bytes().first()? {
        b'"' => serde_json::from_str::<Text<'_>>(raw)
            .ok()
            .map(|text| text.0),
        b'{' | b'[' | b'n' => None,
        _ => Some(raw.into()),
    }
}

impl<'de> Visitor<'de> for Rest<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((step, below)) = self.steps.split_first() else {
            return Ok(());
        };
        while let Some(Matches(hit)) = map.next_key_seed(KeyIs(step))? {
            if !hit {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let only = matches!(step, Step::Key(_)) && !self.fanned;
            map.next_value_seed(Rest {
                steps: below,
                fanned: !only,
                walk: self.walk,
            })?;
            if only {
                self.walk.done = true;
                return Err(A::Error::custom("nothing more can match"));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Some((Step::All, below)) = self.steps.split_first() else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        while items
            .next_element_seed(Rest {
                steps: below,
                fanned: true,
                walk: self.walk,
            })?
            .is_some()
        {}
        Ok(())
    }

    // The path goes on below a value that has no below.
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Reads a key of an object and says whether the step names it, without keeping it.
struct KeyIs<'p>(&'p Step);

struct Matches(bool);

impl<'de> DeserializeSeed<'de> for KeyIs<'_> {
    type Value = Matches;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Matches, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIs<'_> {
    type Value = Matches;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<Matches, E> {
        Ok(Matches(match self.0 {
            Step::Key(wanted) => **wanted == *key,
            Step::All => true,
        }))
    }
}

#[cfg(test)]
mod tests;
