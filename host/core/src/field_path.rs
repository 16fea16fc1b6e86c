//! Paths into an object's JSON: `spec.volumes[*].secret.secretName`,
//! `metadata.labels["app.kubernetes.io/name"]`.
//!
//! This module owns the grammar and the walk over the text. The walk builds no tree: it skips what
//! the path does not name, and ends when nothing more can match. It must not know what the values
//! mean (an index key, a selector's operand, an object's name).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

mod fields;
pub use fields::Fields;

/// Maximum length of a path in bytes: nothing in an object lies deeper.
const LONGEST: usize = 1024;

/// A parsed path. It is printed and serialised as it was written.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FieldPath {
    text: Box<str>,
    /// Never empty; the first step is a `Key`.
    steps: Box<[Step]>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A member of an object.
    Key(Box<str>),
    /// Every item of a list, every value of an object.
    All,
}

/// A path that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a path such as `spec.volumes[*].name`: {reason}")]
pub struct FieldPathError {
    /// The path as it was written.
    pub path: String,
    /// Why the path is invalid; names the text at fault.
    pub reason: String,
}

impl FieldPath {
    /// The path to the uids of an object's owners.
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

    /// Parses a path: names joined by dots, `[*]` for every item, `["any key"]` (a JSON string) for
    /// a key that contains dots or brackets.
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

    /// The steps from the object to the values. Never empty; the first one is a `Key`.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The longest prefix that consists of plain dotted names: pruning must keep it so that this
    /// path still finds its values. Never empty.
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

    /// The values that the path names in an object's JSON, in the order of the text: strings
    /// unescaped; numbers as they are written; `true` and `false`.
    ///
    /// Null, objects, lists (without `[*]`) and missing fields give no values; neither does text
    /// that is not JSON. Text behind the last value that can match is not parsed.
    pub fn values<'a>(&self, json: &'a str) -> Vec<Cow<'a, str>> {
        let mut walk = Walk::along([&*self.steps]);
        if walk.read(json, true).is_err() && !walk.done {
            return Vec::new();
        }
        walk.found.into_iter().map(|(_, value)| value).collect()
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
        return Err(format!(
            "{bad:?} in {name:?} is not allowed in a plain name"
        ));
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
        .map_err(|_| format!("{text:?} contains no JSON string"))?;
    let rest = string[keys.byte_offset()..]
        .strip_prefix(']')
        .ok_or_else(|| format!("{text:?} has no `]` after the key"))?;
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

/// One pass over a text, along several paths.
struct Walk<'p, 't> {
    /// The paths that match so far, with their numbers and remaining steps: first those of the
    /// outermost value, last those of the value that is being read.
    open: Vec<(usize, &'p [Step])>,
    /// The values found so far, with the numbers of their paths.
    found: Vec<(usize, Cow<'t, str>)>,
    /// The walk ended on purpose: the serde error that stopped it is not a failure.
    done: bool,
}

impl<'p, 't> Walk<'p, 't> {
    /// Starts a walk along the paths, numbered in order.
    fn along(paths: impl IntoIterator<Item = &'p [Step]>) -> Self {
        Self {
            open: paths.into_iter().enumerate().collect(),
            found: Vec::new(),
            done: false,
        }
    }

    /// Reads a whole text. If `only` is set, there is one path, and reading stops after its last
    /// possible match.
    fn read(&mut self, text: &'t str, only: bool) -> Result<(), serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let below = Below {
            walk: self,
            from: 0,
            only,
        };
        below.deserialize(&mut deserializer)?;
        deserializer.end()
    }

    /// For the paths that are open at `places`: opens their remaining steps below the member
    /// `name`, or below an item if `name` is `None`.
    fn step(&mut self, places: Range<usize>, name: Option<&str>) {
        for place in places {
            let (number, steps) = self.open[place];
            let Some((step, left)) = steps.split_first() else {
                continue;
            };
            let matches = match step {
                Step::Key(key) => name == Some(&**key),
                Step::All => true,
            };
            if matches {
                self.open.push((number, left));
            }
        }
    }
}

/// The next value.
struct Below<'w, 'p, 't> {
    walk: &'w mut Walk<'p, 't>,
    /// Index of the value's first path in `open`; its paths are the last ones.
    from: usize,
    /// Whether only this value can match.
    only: bool,
}

impl<'de> DeserializeSeed<'de> for Below<'_, '_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let paths = &self.walk.open[self.from..];
        if paths.iter().all(|(_, steps)| !steps.is_empty()) {
            return deserializer.deserialize_any(self);
        }
        // Read as raw text, so that a number keeps its spelling.
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        if let Some(value) = scalar(raw) {
            let ends = paths.iter().filter(|(_, steps)| steps.is_empty());
            let found = ends.map(|(number, _)| (*number, value.clone()));
            self.walk.found.extend(found);
        } else if raw.starts_with(['{', '[']) && paths.iter().any(|(_, steps)| !steps.is_empty()) {
            let mut inner = serde_json::Deserializer::from_str(raw);
            inner.deserialize_any(self).map_err(D::Error::custom)?;
        }
        Ok(())
    }
}

/// The text of a string, number or boolean.
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

impl<'de> Visitor<'de> for Below<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let end = self.walk.open.len();
        let paths = self.from..end;
        let to_all = |(_, steps): &(usize, &[Step])| matches!(steps.first(), Some(Step::All));
        let only = self.only && !self.walk.open[paths.clone()].iter().any(to_all);
        loop {
            let key = Key {
                walk: self.walk,
                paths: paths.clone(),
            };
            if map.next_key_seed(key)?.is_none() {
                return Ok(());
            }
            if self.walk.open.len() == end {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            map.next_value_seed(Below {
                walk: self.walk,
                from: end,
                only,
            })?;
            self.walk.open.truncate(end);
            if only {
                self.walk.done = true;
                return Err(A::Error::custom("nothing more can match"));
            }
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let end = self.walk.open.len();
        self.walk.step(self.from..end, None);
        if self.walk.open.len() == end {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        loop {
            let item = Below {
                walk: self.walk,
                from: end,
                only: false,
            };
            if items.next_element_seed(item)?.is_none() {
                self.walk.open.truncate(end);
                return Ok(());
            }
        }
    }

    // A path continues below a scalar: nothing matches.
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

/// Reads a key of an object without keeping it, and opens the paths that contain it.
struct Key<'w, 'p, 't> {
    walk: &'w mut Walk<'p, 't>,
    paths: Range<usize>,
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<(), E> {
        self.walk.step(self.paths, Some(key));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
