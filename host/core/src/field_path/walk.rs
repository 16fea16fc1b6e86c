//! The steps of a path, and the walk along them through an object's JSON.
//!
//! The walk builds no tree: it skips what no path names, and ends when nothing more can match. It
//! must not know how a path is written.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A member of an object.
    Key(Box<str>),
    /// Every item of a list, every value of an object.
    All,
}

/// One pass over a text, along several paths.
pub(super) struct Walk<'p, 't> {
    /// The paths that match so far, with their numbers and remaining steps: first those of the
    /// outermost value, last those of the value that is being read.
    open: Vec<(usize, &'p [Step])>,
    /// The values found so far, with the numbers of their paths.
    pub(super) found: Vec<(usize, Cow<'t, str>)>,
    /// The walk ended on purpose: the serde error that stopped it is not a failure.
    pub(super) done: bool,
}

impl<'p, 't> Walk<'p, 't> {
    /// Starts a walk along the paths, numbered in order.
    pub(super) fn along(paths: impl IntoIterator<Item = &'p [Step]>) -> Self {
        Self {
            open: paths.into_iter().enumerate().collect(),
            found: Vec::new(),
            done: false,
        }
    }

    /// Reads a whole text. If `only` is set, there is one path, and reading stops after its last
    /// possible match.
    pub(super) fn read(&mut self, text: &'t str, only: bool) -> Result<(), serde_json::Error> {
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
