//! Reads bodies, and finds the fields that they give twice.
//!
//! Owns JSON and YAML as data. Must not know objects.

mod strict;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub(crate) use self::strict::{Twice, faults, refusal};

/// The most fields given twice that are told, and of a built-in kind the most faults, as in a real
/// server. Of more, a real server tells the first ones.
const MOST: usize = 100;

/// A body, and the fields that it gives twice: of each, the last counts.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub value: Value,
    pub duplicates: Vec<Twice>,
}

/// The most values that the aliases of YAML may add. Without a limit, 3 MiB could name a list of a
/// million items a million times.
const ALIASED: usize = 400_000;
/// A long text counts as one more value for each of so many bytes.
const TEXT: usize = 16;

/// The most fields given twice in YAML that are told: each takes another pass.
const PASSES: usize = 16;

/// Reads JSON.
pub(crate) fn json(text: &[u8]) -> Result<Body, serde_json::Error> {
    let mut found = Found::default();
    let value = read_json(text, &mut found)?;
    let duplicates = found.duplicates.into_iter().map(Twice::Field).collect();
    Ok(Body { value, duplicates })
}

fn read_json(text: &[u8], found: &mut Found<'_>) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Reader::at_root(found).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Reads YAML.
pub(crate) fn yaml(text: &[u8]) -> Result<Body, serde_yaml_ng::Error> {
    let mut found = Found::of_yaml(text);
    let value = read_yaml(text, &mut found)?;
    let again = found.again.min(PASSES);
    let duplicates = (1..=again).filter_map(|at| line(text, at)).collect();
    Ok(Body { value, duplicates })
}

fn read_yaml(text: &[u8], found: &mut Found<'_>) -> Result<Value, serde_yaml_ng::Error> {
    Reader::at_root(found).deserialize(serde_yaml_ng::Deserializer::from_slice(text))
}

/// Returns the line of the field that is the `at`th to be given twice. The parser tells a line only
/// with an error.
fn line(text: &[u8], at: usize) -> Option<Twice> {
    let mut found = Found {
        stop: Some(at),
        ..Found::of_yaml(text)
    };
    let error = read_yaml(text, &mut found).err()?;
    Some(Twice::Key(error.location()?.line(), found.stopped?))
}

/// What was found so far, and what is looked for.
struct Found<'w> {
    duplicates: Vec<String>,
    /// How many fields were given again.
    again: usize,
    /// How many values may follow.
    left: usize,
    /// The number of the field given again at which reading ends, and later its key.
    stop: Option<usize>,
    stopped: Option<String>,
    /// Fields to look for, each with its place among all fields once it is found.
    wanted: Vec<(&'w str, Option<usize>)>,
    /// The number of fields so far.
    fields: usize,
}

impl Default for Found<'_> {
    fn default() -> Self {
        Found {
            duplicates: Vec::new(),
            again: 0,
            left: usize::MAX,
            stop: None,
            stopped: None,
            wanted: Vec::new(),
            fields: 0,
        }
    }
}

impl Found<'_> {
    fn of_yaml(text: &[u8]) -> Self {
        // What needs no alias: each value of a list takes two bytes, and a text its own length.
        let own = text.len() / 2 + text.len() / TEXT;
        let left = match text.contains(&b'*') {
            true => own.saturating_add(ALIASED),
            false => usize::MAX,
        };
        Found {
            left,
            ..Found::default()
        }
    }

    /// Counts values; fails if the aliases of a body add too many.
    fn spend<E: Error>(&mut self, values: usize) -> Result<(), E> {
        let left = self.left.checked_sub(values);
        self.left = left.ok_or_else(|| E::custom("yaml: document contains excessive aliasing"))?;
        Ok(())
    }

    /// Notes a field, which its object has already or not. Returns whether reading ends here.
    fn field(&mut self, at: &At<'_>, name: &str, is_again: bool) -> bool {
        self.fields += 1;
        for (path, place) in &mut self.wanted {
            if place.is_none() && at.is(path) {
                *place = Some(self.fields);
            }
        }
        if !is_again {
            return false;
        }
        self.again += 1;
        if self.duplicates.len() < MOST {
            let path = at.to_string();
            if !self.duplicates.contains(&path) {
                self.duplicates.push(path);
            }
        }
        let ends = self.stop == Some(self.again);
        if ends {
            self.stopped = Some(name.to_owned());
        }
        ends
    }
}

/// A place in a body. It is a text only for a field that is given twice: to write it for each value
/// takes as long as its keys are.
#[derive(Clone, Copy)]
enum At<'p> {
    Root,
    Field(&'p At<'p>, &'p str),
    Item(&'p At<'p>, usize),
}

impl At<'_> {
    /// Returns whether this is the place's path, without writing it.
    fn is(&self, path: &str) -> bool {
        match self {
            At::Root => path.is_empty(),
            At::Field(At::Root, name) => path == *name,
            At::Field(of, name) => {
                let before = path.strip_suffix(name);
                let before = before.and_then(|before| before.strip_suffix('.'));
                before.is_some_and(|before| of.is(before))
            }
            At::Item(of, index) => {
                let before = path
                    .strip_suffix(']')
                    .and_then(|path| path.rsplit_once('['));
                before.is_some_and(|(before, at)| at.parse() == Ok(*index) && of.is(before))
            }
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Root => Ok(()),
            At::Field(At::Root, name) => f.write_str(name),
            At::Field(of, name) => write!(f, "{of}.{name}"),
            At::Item(of, index) => write!(f, "{of}[{index}]"),
        }
    }
}

/// Reads one value at a place.
struct Reader<'p, 'w> {
    at: At<'p>,
    found: &'p mut Found<'w>,
}

impl<'p, 'w> Reader<'p, 'w> {
    fn at_root(found: &'p mut Found<'w>) -> Self {
        let at = At::Root;
        Reader { at, found }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.found.spend::<D::Error>(1)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.found.spend::<E>(value.len() / TEXT)?;
        Ok(Value::from(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        self.found.spend::<E>(value.len() / TEXT)?;
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let item = Reader {
                at: At::Item(&self.at, items.len()),
                found: &mut *self.found,
            };
            match seq.next_element_seed(item)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key_seed(Name(&mut *self.found))? {
            let at = At::Field(&self.at, &name);
            if self.found.field(&at, &name, fields.contains_key(&name)) {
                map.next_value_seed(Stop)?;
            }
            let field = Reader {
                at,
                found: &mut *self.found,
            };
            let value = map.next_value_seed(field)?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

/// Fails at the value, so that the error has its place.
struct Stop;

impl<'de> DeserializeSeed<'de> for Stop {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Without a function for any value.
impl<'de> Visitor<'de> for Stop {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no value")
    }
}

/// Reads a key; YAML has some that are no texts.
struct Name<'p, 'w>(&'p mut Found<'w>);

impl<'de> DeserializeSeed<'de> for Name<'_, '_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let reader = Reader {
            at: At::Root,
            found: self.0,
        };
        match reader.deserialize(deserializer)? {
            Value::String(name) => Ok(name),
            name @ (Value::Bool(_) | Value::Number(_)) => Ok(name.to_string()),
            _ => Err(D::Error::custom("a key must be a text")),
        }
    }
}

#[cfg(test)]
mod tests;
