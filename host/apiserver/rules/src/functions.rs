//! What the functions and operators of the table do.
//!
//! Owns the search; the modules below own the functions. Each function takes the values as they
//! come and fails where they do not fit, because the types of an expression may be unknown until it
//! is evaluated. Must not know costs.

mod access;
mod convert;
mod list;
mod named;
mod net;
mod number;
mod operators;
mod text;
mod time;

pub(crate) use list::sorted;

use crate::value::Function;

/// Finds a function or operator by its name.
pub(crate) fn find(name: &str) -> Option<Function> {
    operators::find(name)
        .or_else(|| convert::find(name))
        .or_else(|| text::find(name))
        .or_else(|| list::find(name))
        .or_else(|| time::find(name))
        .or_else(|| number::find(name))
        .or_else(|| net::find(name))
        .or_else(|| named::find(name))
        .or_else(|| access::find(name))
}
