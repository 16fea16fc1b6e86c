//! A checked expression.
//!
//! Owns its form: every name is resolved, every part has a type. Must not know how it came about,
//! what it costs or how it is evaluated.

use std::sync::Arc;

use regex::Regex;

use crate::types::Type;
use crate::value::Function;

/// A part of a checked expression.
#[derive(Debug)]
pub(crate) struct Code {
    pub kind: Type,
    pub op: Op,
}

/// What a part does.
#[derive(Debug)]
pub(crate) enum Op {
    Literal(Literal),
    /// The variable in this slot: `self`, `oldSelf`, then the variables of the loops around.
    Variable(usize),
    /// The definition with this number, `variables.x`: evaluated when it is first used.
    Lazy(usize),
    /// `of.field`, or `of.?field`.
    Select {
        of: Box<Code>,
        field: String,
        optional: bool,
    },
    /// `has(of.field)`
    Has {
        of: Box<Code>,
        field: String,
    },
    And(Box<[Code; 2]>),
    Or(Box<[Code; 2]>),
    /// `a ? b : c`
    Choice(Box<[Code; 3]>),
    /// `text.matches(pattern)` with a constant pattern.
    Matches {
        text: Box<Code>,
        pattern: Regex,
    },
    Call {
        name: String,
        function: Function,
        args: Vec<Code>,
    },
    /// A list; an optional item is left out if it has no value.
    List(Vec<(Code, bool)>),
    /// A map; an optional value is left out if there is none.
    Map(Vec<(Code, Code, bool)>),
    /// `Name{field: value}`; an optional field is left out if it has no value.
    Make {
        name: Arc<str>,
        fields: Vec<(String, Code, bool)>,
    },
    Loop(Box<Loop>),
    /// `of.optMap(x, body)`, or `of.optFlatMap(x, body)` if `flat`.
    IfPresent {
        of: Box<Code>,
        body: Box<Code>,
        flat: bool,
    },
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    /// A type, by its name.
    Kind(&'static str),
}

/// A macro that goes through a list or map.
#[derive(Debug)]
pub(crate) struct Loop {
    pub gives: Gives,
    pub range: Code,
    /// Whether it has two variables: index or key, and value.
    pub two: bool,
    /// Only items for which this is true count.
    pub guard: Option<Code>,
    pub body: Code,
}

/// What a loop returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gives {
    /// Whether the body is true for all.
    All,
    /// Whether the body is true for any.
    Any,
    /// Whether the body is true for exactly one.
    One,
    /// The list of the bodies.
    List,
    /// The items for which the body is true.
    Matching,
    /// The map of the keys to the bodies.
    Map,
    /// The map of all entries of the bodies, which are maps.
    Entries,
    /// The items in the order of the bodies.
    Sorted,
}
