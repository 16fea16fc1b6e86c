//! The macros that go through lists and maps.
//!
//! Owns their forms and types. Must not know how loops are evaluated.

use super::wrong::{Wrong, is_bool, wrong};
use crate::code::{Code, Gives};
use crate::types::Type;

/// A macro: what it gives, and whether it has two variables and a guard.
pub(super) struct Form {
    pub gives: Gives,
    pub two: bool,
    pub guard: bool,
}

/// Returns the macro with this name and so many arguments.
pub(super) fn form(name: &str, args: usize) -> Option<Form> {
    let (gives, two, guard) = match (name, args) {
        ("all", 2) => (Gives::All, false, false),
        ("all", 3) => (Gives::All, true, false),
        ("exists", 2) => (Gives::Any, false, false),
        ("exists", 3) => (Gives::Any, true, false),
        ("exists_one" | "existsOne", 2) => (Gives::One, false, false),
        ("exists_one" | "existsOne", 3) => (Gives::One, true, false),
        ("map", 2) => (Gives::List, false, false),
        ("map", 3) => (Gives::List, false, true),
        ("filter", 2) => (Gives::Matching, false, false),
        ("transformList", 3) => (Gives::List, true, false),
        ("transformList", 4) => (Gives::List, true, true),
        ("transformMap", 3) => (Gives::Map, true, false),
        ("transformMap", 4) => (Gives::Map, true, true),
        ("transformMapEntry", 3) => (Gives::Entries, true, false),
        ("transformMapEntry", 4) => (Gives::Entries, true, true),
        ("sortBy", 2) => (Gives::Sorted, false, false),
        _ => return None,
    };
    Some(Form { gives, two, guard })
}

/// Returns the types of a loop's variables.
pub(super) fn variables(id: u64, form: &Form, range: &Type) -> Result<Vec<Type>, Wrong> {
    let (key, value) = match range {
        Type::List(item) => (Type::Int, Type::clone(item)),
        Type::Map(key, value) => (Type::clone(key), Type::clone(value)),
        Type::Dyn => (Type::Dyn, Type::Dyn),
        other => {
            let text = format!(
                "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
            );
            return wrong(id, text);
        }
    };
    Ok(match (form.two, range) {
        (true, _) => vec![key, value],
        (false, Type::Map(..)) => vec![key],
        (false, _) => vec![value],
    })
}

/// Returns the type of a loop. `id` and `body_id` are where errors are.
pub(super) fn result(
    (id, body_id): (u64, u64),
    form: &Form,
    range: &Type,
    guard: Option<&Code>,
    body: &Code,
) -> Result<Type, Wrong> {
    let (key, value) = match range {
        Type::Map(key, _) => (Type::clone(key), Type::clone(key)),
        Type::List(item) => (Type::Int, Type::clone(item)),
        _ => (Type::Dyn, Type::Dyn),
    };
    let kind = match (form.gives, &body.kind) {
        (Gives::All | Gives::Any, _) if !is_bool(body) => {
            let text = format!("expected type 'bool' but found '{}'", body.kind);
            return wrong(body_id, text);
        }
        (Gives::All | Gives::Any | Gives::One, _) => Type::Bool,
        (Gives::List, kind) => Type::List(Box::new(kind.clone())),
        (Gives::Matching, _) => Type::List(Box::new(value)),
        (Gives::Sorted, _) => range.clone(),
        (Gives::Map, kind) => Type::Map(Box::new(key), Box::new(kind.clone())),
        (Gives::Entries, kind @ (Type::Map(..) | Type::Dyn)) => kind.clone(),
        (Gives::Entries, other) => {
            let text = format!("expected type 'map(dyn, dyn)' but found '{other}'");
            return wrong(body_id, text);
        }
    };
    // The macro chooses by its condition between what it has and what it adds.
    let test = match form.gives {
        Gives::One | Gives::Matching => Some(body),
        _ => guard,
    };
    if let Some(test) = test.filter(|test| !is_bool(test)) {
        let gives = match form.gives {
            Gives::One => Type::Int,
            _ => kind,
        };
        let text = format!(
            "found no matching overload for '_?_:_' applied to '({}, {gives}, {gives})'",
            test.kind
        );
        return wrong(id, text);
    }
    Ok(kind)
}
