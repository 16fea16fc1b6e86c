//! Paths to fields of an object, and what stands there: read from the text in one pass and without a tree.
//!
//! It owns how a path is written and what counts as a value. It must not know what the values are for.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

/// A path such as `spec.nodeName`, `spec.volumes[*].secret.secretName` or `metadata.labels['app.kubernetes.io/name']`.
///
/// `[*]` goes into each item of an array. A string, a number and a boolean are values, as their text; null, objects, arrays and what is missing are none.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Box<str>);

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{path:?} is not a field path ({problem}): write it as spec.nodeName, spec.volumes[*].name or metadata.labels['a.b/c']"
)]
pub struct FieldPathError {
    path: String,
    problem: &'static str,
}

enum Step<'a> {
    Member(&'a str),
    Items,
}

impl FieldPath {
    /// The uids of an object's owners.
    pub fn owner_uids() -> Self {
        Self("metadata.ownerReferences[*].uid".into())
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The dotted part before the first bracket: a store that keeps what is there keeps what the path names.
    pub fn stem(&self) -> &str {
        self.0.split('[').next().unwrap_or_default()
    }

    /// The values in an object's text, in their order, repeated ones too. None where the path meets something else than it names.
    pub fn values<'t>(&self, text: &'t str) -> Result<Vec<Cow<'t, str>>, serde_json::Error> {
        let found = Fields::new([self]).read(text)?;
        Ok(found.into_iter().map(|(_, value)| value).collect())
    }
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match steps(text) {
            Ok(_) => Ok(Self(text.into())),
            Err(problem) => Err(FieldPathError {
                path: text.to_owned(),
                problem,
            }),
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn steps(text: &str) -> Result<Vec<Step<'_>>, &'static str> {
    let mut steps = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(['.', '[', ']', '\'']).unwrap_or(rest.len());
        let (member, behind) = rest.split_at(end);
        if member.is_empty() {
            return Err("a member has no name");
        }
        if member.contains(|c: char| c.is_whitespace() || c.is_control() || "${}".contains(c)) {
            return Err("white space, braces and $ have no place in it");
        }
        steps.push(Step::Member(member));
        rest = behind;
        while let Some(inside) = rest.strip_prefix('[') {
            if let Some(behind) = inside.strip_prefix("*]") {
                steps.push(Step::Items);
                rest = behind;
            } else if let Some((member, behind)) = inside
                .strip_prefix('\'')
                .and_then(|inside| inside.split_once("']"))
            {
                steps.push(Step::Member(member));
                rest = behind;
            } else {
                return Err("in brackets stands either * or a quoted member");
            }
        }
        rest = match rest.strip_prefix('.') {
            Some(behind) => behind,
            None if rest.is_empty() => return Ok(steps),
            None => return Err("behind a member comes a dot or a bracket"),
        };
    }
}

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
            // A path that was made is valid.
            let steps = steps(&path.0).unwrap_or_default();
            let end = steps.into_iter().fold(&mut root, |node, step| match step {
                Step::Member(member) => node.member(member),
                Step::Items => &mut **node.items.get_or_insert_default(),
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
            match self.node.members.iter().find(|(of, _)| **of == *key) {
                Some((_, node)) => map.next_value_seed(Walk {
                    node,
                    found: self.found,
                })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
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

    const POD: &str = r#"{"metadata":{"labels":{"app.kubernetes.io/name":"web","plain":"\u00e9"},
        "ownerReferences":[{"uid":"u1","kind":"A"},{"kind":"B"},{"uid":"u2"}]},
        "spec":{"nodeName":"n1","replicas":3,"ratio":1.50,"on":true,"off":null,"big":12345678901234567890123,"list":["a","b"],"matrix":[["x"],["y",1]],
        "volumes":[{"name":"v","secret":{"secretName":"s1"}},{"secret":{"secretName":"s1"}},{"secret":null},7,{"secret":{"secretName":["no"]}}]}}"#;

    #[test]
    fn values_are_strings_numbers_and_booleans() {
        for (path, expect) in [
            ("spec.nodeName", &["n1"][..]),
            ("spec.replicas", &["3"]),
            ("spec.ratio", &["1.50"]),
            ("spec.big", &["12345678901234567890123"]),
            ("spec.on", &["true"]),
            ("spec.off", &[]),
            ("spec.nothing.here", &[]),
            ("spec.nodeName.deeper", &[]),
            ("spec.nodeName[*]", &[]),
            ("spec.list", &[]),
            ("spec.list[*]", &["a", "b"]),
            ("spec.matrix[*][*]", &["x", "y", "1"]),
            ("spec.volumes[*].name", &["v"]),
            ("spec.volumes.name", &[]),
            ("spec.volumes[*].secret.secretName", &["s1", "s1"]),
            ("spec", &[]),
            ("metadata.labels['app.kubernetes.io/name']", &["web"]),
            ("metadata.labels.plain", &["é"]),
        ] {
            let path: FieldPath = path.parse().unwrap();
            assert_eq!(path.values(POD).unwrap(), expect, "{path}");
        }
        assert_eq!(FieldPath::owner_uids().values(POD).unwrap(), ["u1", "u2"]);
    }

    #[test]
    fn several_paths_are_read_together_even_when_one_is_in_the_way_of_another() {
        let paths = ["spec.list[*]", "spec", "spec.nodeName", "spec.nodeName"]
            .map(|path| path.parse::<FieldPath>().unwrap());
        let found = Fields::new(&paths).read(POD).unwrap();
        assert_eq!(
            found,
            [
                (2, "n1".into()),
                (3, "n1".into()),
                (0, "a".into()),
                (0, "b".into())
            ]
        );
        assert!(matches!(found[0].1, Cow::Borrowed(_)));
        assert!(Fields::default().read(POD).unwrap().is_empty());
        for bad in ["", "{", "{} {}", r#"{"spec":{"nodeName":"\ud800"}}"#] {
            assert!(Fields::new(&paths).read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_is_checked_and_has_a_stem() {
        for (path, stem) in [
            ("spec.nodeName", "spec.nodeName"),
            ("spec.volumes[*].secret", "spec.volumes"),
            ("metadata.labels['a.b/c']", "metadata.labels"),
        ] {
            assert_eq!(path.parse::<FieldPath>().unwrap().stem(), stem);
        }
        for bad in [
            "", ".spec", "spec.", "spec..a", "[*]", "spec[0]", "spec[*", "spec[*]a", "spec['a",
            "a b", "$.a", "{.a}", "a'b",
        ] {
            assert!(bad.parse::<FieldPath>().is_err(), "{bad}");
        }
    }
}
