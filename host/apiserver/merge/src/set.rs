//! Sets of field paths, and the algebra that ownership needs.
//!
//! Follows sigs.k8s.io/structured-merge-diff `fieldpath`. Must not know schemas, managers or
//! objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

/// One step of a path. The variants are in the order in which steps are written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// A field of a struct, or a key of a map.
    Field(String),
    /// An item of a map list by its keys: a JSON object, sorted.
    Key(String),
    /// An item of a set: a JSON scalar.
    Value(String),
    /// An item of any other list. This crate never creates one, but clients may.
    Index(u64),
}

impl Step {
    pub(crate) fn field(name: &str) -> Step {
        Step::Field(name.to_owned())
    }

    pub(crate) fn key<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Step {
        let sorted: BTreeMap<&str, &Value> = pairs.into_iter().collect();
        // A map of JSON values can always be serialised.
        Step::Key(serde_json::to_string(&sorted).unwrap_or_default())
    }

    pub(crate) fn value(value: &Value) -> Step {
        Step::Value(value.to_string())
    }

    /// Encodes the step as in `fieldsV1`: `f:name`, `k:{"name":"a"}`, `v:"a"`, `i:0`.
    pub(crate) fn encode(&self) -> String {
        match self {
            Step::Field(name) => format!("f:{name}"),
            Step::Key(keys) => format!("k:{keys}"),
            Step::Value(value) => format!("v:{value}"),
            Step::Index(index) => format!("i:{index}"),
        }
    }

    pub(crate) fn decode(text: &str) -> Option<Step> {
        let (kind, rest) = text.split_once(':')?;
        Some(match kind {
            "f" => Step::field(rest),
            "k" => {
                let keys: BTreeMap<String, Value> = serde_json::from_str(rest).ok()?;
                Step::key(keys.iter().map(|(name, value)| (name.as_str(), value)))
            }
            "v" => Step::value(&serde_json::from_str(rest).ok()?),
            "i" => Step::Index(rest.parse().ok()?),
            _ => return None,
        })
    }
}

/// Writes the step as in conflicts and errors: `.spec.ports[name="a"].port`.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Field(name) => write!(f, ".{name}"),
            Step::Key(keys) => {
                let keys: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let pairs: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                write!(f, "[{}]", pairs.join(","))
            }
            Step::Value(value) => write!(f, "[={value}]"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Formats a path.
pub(crate) fn text(path: &[Step]) -> String {
    path.iter().map(Step::to_string).collect()
}

/// A set of paths. A path may be a member without its descendants, and a descendant without its
/// ancestors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) members: BTreeSet<Step>,
    /// Never contains an empty set.
    pub(crate) children: BTreeMap<Step, Set>,
}

impl Set {
    /// Returns a set of fields that are given as dotted paths.
    pub(crate) fn of_fields<'a>(paths: impl IntoIterator<Item = &'a str>) -> Set {
        let mut set = Set::default();
        for path in paths {
            let steps: Vec<Step> = path.split('.').map(Step::field).collect();
            set.insert(&steps);
        }
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// Adds a path. Ignores the empty path, because no manager owns the whole object.
    pub(crate) fn insert(&mut self, path: &[Step]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    pub(crate) fn has(&self, path: &[Step]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self
                .children
                .get(first)
                .is_some_and(|child| child.has(rest)),
        }
    }

    fn put(&mut self, step: &Step, child: Set) {
        if !child.is_empty() {
            self.children.insert(step.clone(), child);
        }
    }

    pub(crate) fn union(&self, other: &Set) -> Set {
        let mut out = self.clone();
        out.members.extend(other.members.iter().cloned());
        for (step, child) in &other.children {
            let both = out
                .children
                .get(step)
                .map_or_else(|| child.clone(), |own| own.union(child));
            out.put(step, both);
        }
        out
    }

    pub(crate) fn intersection(&self, other: &Set) -> Set {
        let mut out = Set {
            members: &self.members & &other.members,
            children: BTreeMap::new(),
        };
        for (step, child) in &self.children {
            if let Some(theirs) = other.children.get(step) {
                out.put(step, child.intersection(theirs));
            }
        }
        out
    }

    /// Removes the members of `other`, but not their descendants.
    pub(crate) fn difference(&self, other: &Set) -> Set {
        let mut out = Set {
            members: &self.members - &other.members,
            children: BTreeMap::new(),
        };
        for (step, child) in &self.children {
            match other.children.get(step) {
                Some(theirs) => out.put(step, child.difference(theirs)),
                None => out.put(step, child.clone()),
            }
        }
        out
    }

    /// Removes the members of `other` and everything below them.
    pub(crate) fn recursive_difference(&self, other: &Set) -> Set {
        let mut out = Set {
            members: &self.members - &other.members,
            children: BTreeMap::new(),
        };
        for (step, child) in self
            .children
            .iter()
            .filter(|(step, _)| !other.members.contains(step))
        {
            match other.children.get(step) {
                Some(theirs) => out.put(step, child.recursive_difference(theirs)),
                None => out.put(step, child.clone()),
            }
        }
        out
    }

    /// Returns every member as a path.
    pub(crate) fn paths(&self) -> Vec<Vec<Step>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<Step>, out: &mut Vec<Vec<Step>>) {
        for step in &self.members {
            let mut path = prefix.clone();
            path.push(step.clone());
            out.push(path);
        }
        for (step, child) in &self.children {
            prefix.push(step.clone());
            child.collect(prefix, out);
            prefix.pop();
        }
    }

    /// Encodes the set as `fieldsV1`.
    pub(crate) fn encode(&self) -> Value {
        let mut out = serde_json::Map::new();
        for step in &self.members {
            out.insert(step.encode(), Value::Object(serde_json::Map::new()));
        }
        for (step, child) in &self.children {
            let mut value = child.encode();
            if let (Value::Object(map), true) = (&mut value, self.members.contains(step)) {
                map.insert(".".to_owned(), Value::Object(serde_json::Map::new()));
            }
            out.insert(step.encode(), value);
        }
        Value::Object(out)
    }

    /// Decodes `fieldsV1`; `None` if it is invalid.
    pub(crate) fn decode(fields: &Value) -> Option<Set> {
        let mut out = Set::default();
        for (name, value) in fields.as_object()?.iter().filter(|(name, _)| *name != ".") {
            let step = Step::decode(name)?;
            let below = value.as_object()?;
            if below.is_empty() || below.contains_key(".") {
                out.members.insert(step.clone());
            }
            out.put(&step, Set::decode(value)?);
        }
        Some(out)
    }
}
