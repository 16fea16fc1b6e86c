//! Reads bodies, and finds the fields that they give twice.
//!
//! Owns JSON and YAML as data. Must not know objects.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The most fields given twice that are told, as in a real server.
const MOST: usize = 100;

/// A body, and the paths of the fields that it gives twice: of each, the last counts.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub value: Value,
    pub duplicates: Vec<String>,
}

/// The most values that the aliases of YAML may add. Without a limit, 3 MiB could name a list of a
/// million items a million times.
const ALIASED: usize = 400_000;
/// A long text counts as one more value for each of so many bytes.
const TEXT: usize = 16;

/// Reads JSON.
pub(crate) fn json(text: &[u8]) -> Result<Body, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let body = read(&mut deserializer, usize::MAX)?;
    deserializer.end()?;
    Ok(body)
}

/// Reads YAML.
pub(crate) fn yaml(text: &[u8]) -> Result<Body, serde_yaml_ng::Error> {
    // What needs no alias: each value of a list takes two bytes, and a text its own length.
    let own = text.len() / 2 + text.len() / TEXT;
    let left = match text.contains(&b'*') {
        true => own.saturating_add(ALIASED),
        false => usize::MAX,
    };
    read(serde_yaml_ng::Deserializer::from_slice(text), left)
}

fn read<'de, D: Deserializer<'de>>(deserializer: D, left: usize) -> Result<Body, D::Error> {
    let mut found = Found {
        duplicates: Vec::new(),
        left,
    };
    let reader = Reader {
        at: At::Root,
        found: &mut found,
    };
    let value = reader.deserialize(deserializer)?;
    let duplicates = found.duplicates;
    Ok(Body { value, duplicates })
}

/// What was found so far.
struct Found {
    duplicates: Vec<String>,
    /// How many values may follow.
    left: usize,
}

impl Found {
    /// Counts values; fails if the aliases of a body add too many.
    fn spend<E: Error>(&mut self, values: usize) -> Result<(), E> {
        let left = self.left.checked_sub(values);
        self.left = left.ok_or_else(|| E::custom("yaml: document contains excessive aliasing"))?;
        Ok(())
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
struct Reader<'p> {
    at: At<'p>,
    found: &'p mut Found,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.found.spend::<D::Error>(1)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
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
            let field = Reader {
                at: At::Field(&self.at, &name),
                found: &mut *self.found,
            };
            let value = map.next_value_seed(field)?;
            if fields.contains_key(&name) && self.found.duplicates.len() < MOST {
                let path = At::Field(&self.at, &name).to_string();
                if !self.found.duplicates.contains(&path) {
                    self.found.duplicates.push(path);
                }
            }
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

/// Reads a key; YAML has some that are no texts.
struct Name<'p>(&'p mut Found);

impl<'de> DeserializeSeed<'de> for Name<'_> {
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
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_of_two_fields_counts_and_both_are_told() {
        let text = br#"{"a":{"b":1,"b":2,"c":[{"d":1,"d":null}]},"x":1.5,"a2":-1,"x":true}"#;
        let body = json(text).unwrap();
        assert_eq!(
            body.value,
            json!({ "a": { "b": 2, "c": [{ "d": null }] }, "x": true, "a2": -1 })
        );
        assert_eq!(body.duplicates, ["a.b", "a.c[0].d", "x"]);
        let body = yaml(b"a: 1\nb:\n- c: x\n1: one\n").unwrap();
        assert_eq!(
            body.value,
            json!({ "a": 1, "b": [{ "c": "x" }], "1": "one" })
        );
        assert!(body.duplicates.is_empty());
        assert!(json(b"{} x").is_err() && json(b"{\"a\":").is_err());
    }

    #[test]
    fn long_keys_and_many_fields_take_no_longer_than_they_are() {
        let items = vec!["0"; 1 << 18].join(",");
        let text = format!("{{\"{}\":[{items}]}}", "k".repeat(1 << 20));
        assert!(json(text.as_bytes()).unwrap().duplicates.is_empty());
        let fields: Vec<String> = (0..100_000)
            .map(|n| format!("\"{n}\":1,\"{n}\":2"))
            .collect();
        let text = format!("{{{}}}", fields.join(","));
        let body = json(text.as_bytes()).unwrap();
        assert_eq!(body.duplicates.len(), MOST);
        assert_eq!(body.value["99999"], 2);
    }

    #[test]
    fn aliases_add_only_so_much() {
        let few = yaml(b"a: &a [1, 2]\nb: *a\nc: *a\n").unwrap();
        assert_eq!(few.value, json!({ "a": [1, 2], "b": [1, 2], "c": [1, 2] }));
        let many = |item: &str, count: usize| {
            let aliases = vec!["*a"; count].join(", ");
            yaml(format!("a: &a {item}\nb: [{aliases}]\n").as_bytes())
        };
        assert!(many("[1, 2]", 1000).is_ok());
        let items = format!("[{}]", vec!["1"; 10_000].join(","));
        let error = many(&items, 10_000).unwrap_err().to_string();
        assert!(error.contains("excessive aliasing"), "{error}");
        assert!(many(&"x".repeat(1 << 20), 10_000).is_err());
        // What is written out is read, however much it is.
        let all = vec!["'*'"; 500_000].join(",");
        assert!(yaml(format!("[{all}]").as_bytes()).is_ok());
    }

    #[test]
    fn deep_bodies_are_refused() {
        let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
        assert!(json(&deep).is_err());
    }
}
