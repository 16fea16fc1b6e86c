//! The values of expressions.
//!
//! Owns how the data of an object becomes values, one part at a time, by its declared type; how
//! values are looked into, compared and ordered. Follows k8s.io/apiserver
//! `pkg/cel/common/valuesunstructured.go`. Must not know expressions.

pub(crate) mod json;
mod read;
mod same;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::access::{Asking, DECISION, Decision};
use crate::decl::{Decl, Listing, Shape, escape};
use crate::named::FORMAT;
use crate::uri::Uri;
pub(crate) use same::same_keys;
use same::{same_entries, same_fields, same_items, same_made};

/// A value; of an object's data it borrows.
#[derive(Clone, Debug)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    Kind(&'static str),
    /// A list of an object's data, with the declared type of its items.
    Items(&'a [Value], &'a Decl, &'a Listing),
    /// A made list. It may have come from one with identified items.
    List(Rc<Vec<Val<'a>>>, Option<&'a Listing>),
    /// A map or object of an object's data, with its own declared type.
    Data(&'a Map<String, Value>, &'a Decl),
    /// A made map.
    Map(Rc<Vec<(Val<'a>, Val<'a>)>>),
    Made(Rc<Made<'a>>),
    Optional(Option<Rc<Val<'a>>>),
    Opaque(Rc<Opaque>),
    /// A question about access that is not asked yet.
    Asking(Rc<Asking<'a>>),
}

/// A value that an expression makes with a name and fields: `Object.spec{replicas: 1}`.
#[derive(Clone, Debug)]
pub(crate) struct Made<'a> {
    pub name: Arc<str>,
    pub fields: BTreeMap<&'a str, Val<'a>>,
}

/// A value of a library.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Opaque {
    /// Billionths.
    Quantity(i128),
    Semver(semver::Version),
    Ip(IpAddr),
    Cidr(IpNet),
    Url(Uri),
    /// A named format.
    Format(&'static str),
    Decision(Decision),
}

/// A function: the value before the dot, if there is one, is its first argument.
pub(crate) type Function = for<'a, 'b> fn(&'b [Val<'a>]) -> Result<Val<'a>, Failure>;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A function does not take the values; the types of the expression could not tell.
    NoOverload,
    /// The evaluation costs more than it may.
    OverBudget,
    Text(String),
}

impl Failure {
    pub fn text(text: impl Into<String>) -> Failure {
        Failure::Text(text.into())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::NoOverload => f.write_str("no such overload"),
            Failure::OverBudget => f.write_str("operation cancelled: actual cost limit exceeded"),
            Failure::Text(text) => f.write_str(text),
        }
    }
}

impl<'a> Val<'a> {
    pub fn string(text: impl Into<String>) -> Val<'a> {
        Val::String(Cow::Owned(text.into()))
    }

    pub fn list(items: Vec<Val<'a>>) -> Val<'a> {
        Val::List(Rc::new(items), None)
    }

    pub fn some(value: Val<'a>) -> Val<'a> {
        Val::Optional(Some(Rc::new(value)))
    }

    pub fn opaque(value: Opaque) -> Val<'a> {
        Val::Opaque(Rc::new(value))
    }

    /// Returns the name of the value's type.
    pub fn kind(&self) -> &'static str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::String(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::Kind(_) => "type",
            Val::Items(..) | Val::List(..) => "list",
            Val::Data(..) | Val::Map(_) => "map",
            Val::Made(_) => "object",
            Val::Optional(_) => "optional_type",
            Val::Opaque(value) => match **value {
                Opaque::Quantity(_) => "kubernetes.Quantity",
                Opaque::Semver(_) => "kubernetes.Semver",
                Opaque::Ip(_) => "net.IP",
                Opaque::Cidr(_) => "net.CIDR",
                Opaque::Url(_) => "kubernetes.URL",
                Opaque::Format(_) => FORMAT,
                Opaque::Decision(_) => DECISION,
            },
            Val::Asking(asking) => asking.kind,
        }
    }

    /// Returns the number of characters, bytes, items or entries.
    pub fn len(&self) -> Option<usize> {
        match self {
            Val::String(text) => Some(text.chars().count()),
            Val::Bytes(bytes) => Some(bytes.len()),
            Val::Items(items, ..) => Some(items.len()),
            Val::List(items, _) => Some(items.len()),
            Val::Data(map, _) => Some(map.len()),
            Val::Map(entries) => Some(entries.len()),
            _ => None,
        }
    }

    /// Returns the item of a list; `None` if this is no list or too short.
    pub fn item(&self, at: usize) -> Option<Result<Val<'a>, Failure>> {
        match self {
            Val::Items(items, decl, _) => Some(Val::read(items.get(at)?, decl)),
            Val::List(items, _) => Some(Ok(items.get(at)?.clone())),
            _ => None,
        }
    }

    /// Returns all items; an error if this is no list.
    pub fn items(&self) -> Result<Vec<Val<'a>>, Failure> {
        match self {
            Val::Items(items, decl, _) => items.iter().map(|item| Val::read(item, decl)).collect(),
            Val::List(items, _) => Ok(items.to_vec()),
            _ => Err(Failure::NoOverload),
        }
    }

    /// Returns what identifies the items of a list.
    pub fn listing(&self) -> Option<&'a Listing> {
        match self {
            Val::Items(_, _, listing) => Some(*listing),
            Val::List(_, listing) => *listing,
            _ => None,
        }
    }

    /// Returns the keys of a map; an error if this is no map.
    pub fn keys(&self) -> Result<Vec<Val<'a>>, Failure> {
        match self {
            Val::Data(map, decl) => Ok(map
                .keys()
                .filter_map(|key| match &decl.shape {
                    Shape::Object(fields) => {
                        let escaped = escape(key)?;
                        let known = fields.contains_key(&escaped);
                        known.then_some(Val::String(Cow::Owned(escaped)))
                    }
                    _ => Some(Val::String(Cow::Borrowed(key.as_str()))),
                })
                .collect()),
            Val::Map(entries) => Ok(entries.iter().map(|(key, _)| key.clone()).collect()),
            _ => Err(Failure::NoOverload),
        }
    }

    /// Returns the value of a field or of a text key; `None` if it is absent.
    pub fn field(&self, name: &str) -> Result<Option<Val<'a>>, Failure> {
        match self {
            Val::Data(map, decl) => {
                let found = match &decl.shape {
                    Shape::Object(_) => decl.field(name).and_then(|field| {
                        // A null in a field counts as no value.
                        let value = map.get(&field.name).filter(|value| !value.is_null())?;
                        Some((value, &*field.decl))
                    }),
                    Shape::Map(inner) => map.get(name).map(|value| (value, &**inner)),
                    Shape::Open => map.get(name).map(|value| (value, *decl)),
                    _ => None,
                };
                found
                    .map(|(value, decl)| Val::read(value, decl))
                    .transpose()
            }
            Val::Map(_) => self.get(&Val::String(Cow::Borrowed(name))),
            Val::Made(made) => Ok(made.fields.get(name).cloned()),
            _ => Err(Failure::NoOverload),
        }
    }

    /// Returns the value of a key or the item at an index; `None` if it is absent.
    pub fn get(&self, key: &Val<'_>) -> Result<Option<Val<'a>>, Failure> {
        match (self, key) {
            (Val::Data(..), Val::String(name)) => self.field(name),
            (Val::Map(entries), key) => {
                for (known, value) in entries.iter() {
                    if known.equal(key)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
            (Val::Items(..) | Val::List(..), key) => {
                let at = match key {
                    Val::Int(at) => usize::try_from(*at).ok(),
                    Val::Uint(at) => usize::try_from(*at).ok(),
                    _ => return Err(Failure::NoOverload),
                };
                at.and_then(|at| self.item(at)).transpose()
            }
            _ => Err(Failure::NoOverload),
        }
    }

    /// Returns whether two values are equal. Values of different types are not, but numbers are
    /// compared by their value.
    pub fn equal(&self, other: &Val<'_>) -> Result<bool, Failure> {
        Ok(match (self, other) {
            (Val::Null, Val::Null) => true,
            (Val::Bool(a), Val::Bool(b)) => a == b,
            (Val::String(a), Val::String(b)) => a == b,
            (Val::Bytes(a), Val::Bytes(b)) => a == b,
            (Val::Duration(a), Val::Duration(b)) => a == b,
            (Val::Timestamp(a), Val::Timestamp(b)) => a == b,
            (Val::Kind(a), Val::Kind(b)) => a == b,
            (Val::Opaque(a), Val::Opaque(b)) => match (&**a, &**b) {
                (Opaque::Decision(_), Opaque::Decision(_)) => return Err(Failure::NoOverload),
                (a, b) => a == b,
            },
            (Val::Asking(_), Val::Asking(_)) => return Err(Failure::NoOverload),
            (Val::Optional(a), Val::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => return a.equal(b),
                (a, b) => a.is_none() && b.is_none(),
            },
            (Val::Items(..) | Val::List(..), Val::Items(..) | Val::List(..)) => {
                return same_items(self, other);
            }
            (Val::Data(a, decl), Val::Data(b, _)) if matches!(decl.shape, Shape::Object(_)) => {
                return same_fields(a, b, decl);
            }
            (Val::Data(..) | Val::Map(_), Val::Data(..) | Val::Map(_)) => {
                return same_entries(self, other);
            }
            (Val::Made(a), Val::Made(b)) => return same_made(a, b),
            (a, b) => a.order(b) == Some(Ordering::Equal),
        })
    }

    /// Returns the order of two values; `None` if there is none.
    pub fn order(&self, other: &Val<'_>) -> Option<Ordering> {
        match (self, other) {
            (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
            (Val::String(a), Val::String(b)) => Some(a.cmp(b)),
            (Val::Bytes(a), Val::Bytes(b)) => Some(a.cmp(b)),
            (Val::Duration(a), Val::Duration(b)) => Some(a.cmp(b)),
            (Val::Timestamp(a), Val::Timestamp(b)) => Some(a.cmp(b)),
            (a, b) => match (a.whole(), b.whole()) {
                (Some(a), Some(b)) => Some(a.cmp(&b)),
                _ => a.float()?.partial_cmp(&b.float()?),
            },
        }
    }

    fn whole(&self) -> Option<i128> {
        match self {
            Val::Int(number) => Some(i128::from(*number)),
            Val::Uint(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "numbers of different types are compared as floats"
    )]
    fn float(&self) -> Option<f64> {
        match self {
            Val::Double(number) => Some(*number),
            other => other.whole().map(|number| number as f64),
        }
    }
}
