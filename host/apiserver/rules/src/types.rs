//! The types of expressions.
//!
//! Owns which type fits where, and how types are printed. Must not know functions.

use std::fmt;
use std::sync::Arc;

use crate::decl::{Decl, Shape};

/// The type of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// Known only when the expression is evaluated.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    /// The type of types.
    Kind,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Optional(Box<Type>),
    Object(Arc<Decl>),
    /// A type whose values an expression makes (`Object.spec{...}`), by its name.
    Made(Arc<str>),
    /// A type of a library, by its name.
    Opaque(&'static str),
    /// A variable of a signature: `A` is 0.
    Variable(usize),
}

/// The name of the type of the objects that an apply configuration makes. Those of their fields
/// begin with it: `Object.spec`.
pub(crate) const OBJECT: &str = "Object";
/// The name of the type of a JSON patch's operations.
pub(crate) const PATCH: &str = "JSONPatch";

/// The number of variables that a signature can have.
pub(crate) const VARIABLES: usize = 2;

/// The types that the variables of a signature stand for.
pub(crate) type Bound = [Option<Type>; VARIABLES];

impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => a == b,
            (Type::Map(a, b), Type::Map(c, d)) => a == c && b == d,
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b),
            (Type::Made(a), Type::Made(b)) => a == b,
            (Type::Opaque(a), Type::Opaque(b)) => a == b,
            (Type::Variable(a), Type::Variable(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Type {
    /// Returns the type of declared values.
    pub fn of(decl: &Arc<Decl>) -> Type {
        match &decl.shape {
            Shape::Open | Shape::IntOrString => Type::Dyn,
            Shape::Bool => Type::Bool,
            Shape::Int => Type::Int,
            Shape::Double => Type::Double,
            Shape::String => Type::String,
            Shape::Bytes => Type::Bytes,
            Shape::Duration => Type::Duration,
            Shape::Date | Shape::DateTime => Type::Timestamp,
            Shape::List { item, .. } => Type::List(Box::new(Type::of(item))),
            Shape::Map(value) => Type::Map(Box::new(Type::String), Box::new(Type::of(value))),
            Shape::Object(_) => Type::Object(decl.clone()),
        }
    }

    /// Returns whether values of the type have one size.
    pub fn is_scalar(&self) -> bool {
        match self {
            Type::Bool
            | Type::Int
            | Type::Uint
            | Type::Double
            | Type::Duration
            | Type::Timestamp => true,
            Type::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Returns whether a value of this type can be null besides its own values.
    fn takes_null(&self) -> bool {
        matches!(
            self,
            Type::Null
                | Type::Duration
                | Type::Timestamp
                | Type::Object(_)
                | Type::Made(_)
                | Type::Opaque(_)
        )
    }

    /// Returns whether `actual` fits this type of a signature, and learns what its variables are.
    pub fn fits(&self, actual: &Type, bound: &mut Bound) -> bool {
        match (self, actual) {
            (Type::Dyn, _) | (_, Type::Dyn) => true,
            (Type::Variable(at), actual) => {
                let Some(slot) = bound.get_mut(*at) else {
                    return false;
                };
                match slot.take() {
                    None => {
                        *slot = Some(actual.clone());
                        true
                    }
                    Some(known) => {
                        let joined = known.join(actual);
                        let fits = joined.is_some();
                        *slot = Some(joined.unwrap_or(known));
                        fits
                    }
                }
            }
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                a.fits(b, bound)
            }
            (Type::Map(a, b), Type::Map(c, d)) => a.fits(c, bound) && b.fits(d, bound),
            (wanted, Type::Null) => wanted.takes_null(),
            (wanted, actual) => wanted == actual,
        }
    }

    /// Returns the type that two types have in common.
    pub fn join(&self, other: &Type) -> Option<Type> {
        match (self, other) {
            (Type::Dyn, other) | (other, Type::Dyn) => Some(other.clone()),
            (Type::List(a), Type::List(b)) => Some(Type::List(Box::new(a.join(b)?))),
            (Type::Optional(a), Type::Optional(b)) => Some(Type::Optional(Box::new(a.join(b)?))),
            (Type::Map(a, b), Type::Map(c, d)) => {
                Some(Type::Map(Box::new(a.join(c)?), Box::new(b.join(d)?)))
            }
            (Type::Null, other) | (other, Type::Null) if other.takes_null() => Some(other.clone()),
            (a, b) => (a == b).then(|| a.clone()),
        }
    }

    /// Returns the type with what its variables stand for.
    pub fn solved(&self, bound: &Bound) -> Type {
        match self {
            Type::Variable(at) => bound.get(*at).cloned().flatten().unwrap_or(Type::Dyn),
            Type::List(inner) => Type::List(Box::new(inner.solved(bound))),
            Type::Optional(inner) => Type::Optional(Box::new(inner.solved(bound))),
            Type::Map(key, value) => {
                Type::Map(Box::new(key.solved(bound)), Box::new(value.solved(bound)))
            }
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => f.write_str("dyn"),
            Type::Null => f.write_str("null"),
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Uint => f.write_str("uint"),
            Type::Double => f.write_str("double"),
            Type::String => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Duration => f.write_str("google.protobuf.Duration"),
            Type::Timestamp => f.write_str("google.protobuf.Timestamp"),
            Type::Kind => f.write_str("type"),
            Type::List(inner) => write!(f, "list({inner})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Optional(inner) => write!(f, "optional_type({inner})"),
            Type::Object(_) => f.write_str("object"),
            Type::Made(name) => f.write_str(name),
            Type::Opaque(name) => f.write_str(name),
            Type::Variable(0) => f.write_str("A"),
            Type::Variable(_) => f.write_str("B"),
        }
    }
}
