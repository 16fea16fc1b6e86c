//! Several paths read together: one pass over an object's text, however many indexes look at it.
//!
//! It owns the walk. What a path is, and what counts as a value, is [`FieldPath`]'s.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{FieldPath, Step};

/// Several paths, read together. A value comes with the number of its path.
#[derive(Debug, Default)]
pub struct Fields {
    root: Node,
}

/// What is asked for at one place of the object.
#[derive(Debug, Default)]
struct Node {
    /// Numbers of the paths that end here.
    ends: Vec<usize>,
    members: Vec<(Box<str>, Node)>,
    items: Option<Box<Node>>,
}

impl Fields {
    /// Prepares the paths, which are numbered in their order.
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p FieldPath>) -> Self {
        let mut root = Node::default();
        for (number, path) in paths.into_iter().enumerate() {
            let end = path.steps.iter().fold(&mut root, |node, step| match step {
                Step::Key(member) => node.member(member),
                Step::All => &mut **node.items.get_or_insert_default(),
            });
            end.ends.push(number);
        }
        Self { root }
    }

    /// All values in an object's text, in the order of the text. The rest of the text is skipped, not looked into.
    pub fn read<'t>(&self, text: &'t str) -> Result<Vec<(usize, Cow<'t, str>)>, serde_json::Error> {
        let mut found = Vec::new();
        self.root.read(text, &mut found)?;
        Ok(found)
    }
}

impl Node {
    fn member(&mut self, name: &str) -> &mut Self {
        let at = self.members.iter().position(|(of, _)| **of == *name);
        let at = at.unwrap_or_else(|| {
            self.members.push((name.into(), Self::default()));
            self.members.len() - 1
        });
        &mut self.members[at].1
    }

    fn read<'t>(
        &self,
        text: &'t str,
        found: &mut Vec<(usize, Cow<'t, str>)>,
    ) -> Result<(), serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        Walk { node: self, found }.walk(&mut deserializer)?;
        deserializer.end()
    }
}

/// Walks through a value, and takes along what stands at the ends.
struct Walk<'w, 't> {
    node: &'w Node,
    found: &'w mut Vec<(usize, Cow<'t, str>)>,
}

impl<'de> Walk<'_, 'de> {
    fn walk<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.node.ends.is_empty() {
            return deserializer.deserialize_any(self);
        }
        // As raw text: a number keeps its spelling.
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        match raw.as_bytes().first() {
            Some(b'{' | b'[') => {
                if !self.node.members.is_empty() || self.node.items.is_some() {
                    let mut inner = serde_json::Deserializer::from_str(raw);
                    inner
                        .deserialize_any(self)
                        .map_err(serde::de::Error::custom)?;
                }
            }
            Some(b'n') | None => {}
            Some(b'"') => {
                let Text(value) = serde_json::from_str(raw).map_err(serde::de::Error::custom)?;
                self.take(value);
            }
            Some(_) => self.take(Cow::Borrowed(raw)),
        }
        Ok(())
    }

    fn take(self, value: Cow<'de, str>) {
        let ends = self.node.ends.iter();
        self.found.extend(ends.map(|end| (*end, value.clone())));
    }
}

/// A string, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for Walk<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.walk(deserializer)
    }
}

impl<'de> Visitor<'de> for Walk<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
            let named = self.node.members.iter().find(|(of, _)| **of == *key);
            let nodes = named.map(|(_, node)| node).into_iter();
            let mut nodes = nodes.chain(self.node.items.as_deref());
            match (nodes.next(), nodes.next()) {
                (None, _) => {
                    map.next_value::<IgnoredAny>()?;
                }
                (Some(node), None) => map.next_value_seed(Walk {
                    node,
                    found: self.found,
                })?,
                (Some(one), Some(other)) => {
                    let raw = map.next_value::<&'de RawValue>()?.get();
                    for node in [one, other] {
                        node.read(raw, self.found)
                            .map_err(serde::de::Error::custom)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if let Some(node) = &self.node.items {
            while items
                .next_element_seed(Walk {
                    node,
                    found: self.found,
                })?
                .is_some()
            {}
        } else {
            while items.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"metadata":{"ownerReferences":[{"uid":"u1","kind":"A"},{"kind":"B"},{"uid":"u2"}],"labels":{"a":"x","b":"\u00e9"}},
        "spec":{"nodeName":"n1","list":["a","b"],"off":null,"big":12345678901234567890123,"matrix":[["x"],["y",1]]}}"#;

    fn read(paths: &[&str]) -> Vec<(usize, String)> {
        let paths: Vec<FieldPath> = paths
            .iter()
            .map(|path| FieldPath::parse(path).unwrap())
            .collect();
        let found = Fields::new(&paths).read(POD).unwrap();
        found
            .into_iter()
            .map(|(at, value)| (at, value.into_owned()))
            .collect()
    }

    #[test]
    fn together_they_find_what_each_finds_alone() {
        let paths = [
            "spec.list[*]",
            "spec",
            "spec.nodeName",
            "spec.nodeName",
            "spec[*]",
            "spec.matrix[*][*]",
            "spec.big",
            "spec.off",
            "spec.nothing",
            "metadata.labels[*]",
            "metadata.labels.b",
            "metadata.ownerReferences[*].uid",
        ];
        let mut together = read(&paths);
        together.sort();
        let mut alone = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let path = FieldPath::parse(path).unwrap();
            alone.extend(
                path.values(POD)
                    .into_iter()
                    .map(|value| (number, value.into_owned())),
            );
        }
        alone.sort();
        assert_eq!(together, alone);
        assert!(together.contains(&(11, "u2".into())));
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        let path = FieldPath::owner_uids();
        for text in ["", "{", "{} {}", r#"{"metadata":{"ownerReferences":[}"#] {
            assert!(Fields::new([&path]).read(text).is_err(), "{text}");
        }
    }
}
