//! The operators, and the functions of optional values.
//!
//! Must not know the libraries, except for shifted times.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::time;
use crate::decl::Listing;
use crate::value::{Failure, Function, Val, same_keys};

pub(super) fn find(name: &str) -> Option<Function> {
    let function: Function = match name {
        "_+_" => add,
        "_-_" => subtract,
        "_*_" => multiply,
        "_/_" => divide,
        "_%_" => modulo,
        "-_" => negate,
        "!_" => not,
        "_==_" => equals,
        "_!=_" => differs,
        "_<_" => less,
        "_<=_" => less_or_equal,
        "_>_" => greater,
        "_>=_" => greater_or_equal,
        "_[_]" => index,
        "_[?_]" => optional_index,
        "@in" => within,
        "size" => size,
        "optional.of" => optional_of,
        "optional.ofNonZeroValue" => optional_of_non_zero,
        "optional.none" => optional_none,
        "hasValue" => has_value,
        "value" => value,
        "or" => or,
        "orValue" => or_value,
        _ => return None,
    };
    Some(function)
}

fn whole(result: Option<i64>) -> Result<i64, Failure> {
    result.ok_or_else(|| Failure::text("integer overflow"))
}

fn unsigned(result: Option<u64>) -> Result<u64, Failure> {
    result.ok_or_else(|| Failure::text("unsigned integer overflow"))
}

/// Adds two values.
pub(super) fn add<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(match args {
        [Val::Int(a), Val::Int(b)] => Val::Int(whole(a.checked_add(*b))?),
        [Val::Uint(a), Val::Uint(b)] => Val::Uint(unsigned(a.checked_add(*b))?),
        [Val::Double(a), Val::Double(b)] => Val::Double(a + b),
        [Val::String(a), Val::String(b)] => Val::string(format!("{a}{b}")),
        [Val::Bytes(a), Val::Bytes(b)] => Val::Bytes(Cow::Owned([&**a, &**b].concat())),
        [Val::Duration(a), Val::Duration(b)] => Val::Duration(whole(a.checked_add(*b))?),
        [Val::Timestamp(_), Val::Duration(_)] | [Val::Duration(_), Val::Timestamp(_)] => {
            return time::shifted(args, 1);
        }
        [a, b] => return join(a, b),
        _ => return Err(Failure::NoOverload),
    })
}

/// Concatenates lists. In a list of identified items the new ones replace the old ones.
fn join<'a>(a: &Val<'a>, b: &Val<'a>) -> Result<Val<'a>, Failure> {
    let listing = a.listing();
    let (mut items, more) = (a.items()?, b.items()?);
    let keys = match listing {
        None | Some(Listing::Position) => {
            items.extend(more);
            return Ok(Val::list(items));
        }
        Some(Listing::Value) => &[][..],
        Some(Listing::Keys(keys)) => keys.as_slice(),
    };
    for item in more {
        let mut old = None;
        for (at, known) in items.iter().enumerate() {
            if same_keys(keys, known, &item)? {
                old = Some(at);
                break;
            }
        }
        match old.and_then(|at| items.get_mut(at)) {
            Some(known) => *known = item,
            None => items.push(item),
        }
    }
    Ok(Val::List(items.into(), listing))
}

fn subtract<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(match args {
        [Val::Int(a), Val::Int(b)] => Val::Int(whole(a.checked_sub(*b))?),
        [Val::Uint(a), Val::Uint(b)] => Val::Uint(unsigned(a.checked_sub(*b))?),
        [Val::Double(a), Val::Double(b)] => Val::Double(a - b),
        [Val::Duration(a), Val::Duration(b)] => Val::Duration(whole(a.checked_sub(*b))?),
        [Val::Timestamp(_), Val::Duration(_)] => return time::shifted(args, -1),
        [Val::Timestamp(a), Val::Timestamp(b)] => {
            let nanos = a.as_nanosecond() - b.as_nanosecond();
            Val::Duration(whole(i64::try_from(nanos).ok())?)
        }
        _ => return Err(Failure::NoOverload),
    })
}

fn multiply<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(match args {
        [Val::Int(a), Val::Int(b)] => Val::Int(whole(a.checked_mul(*b))?),
        [Val::Uint(a), Val::Uint(b)] => Val::Uint(unsigned(a.checked_mul(*b))?),
        [Val::Double(a), Val::Double(b)] => Val::Double(a * b),
        _ => return Err(Failure::NoOverload),
    })
}

fn divide<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(match args {
        [Val::Int(_), Val::Int(0)] | [Val::Uint(_), Val::Uint(0)] => {
            return Err(Failure::text("division by zero"));
        }
        [Val::Int(a), Val::Int(b)] => Val::Int(whole(a.checked_div(*b))?),
        [Val::Uint(a), Val::Uint(b)] => Val::Uint(unsigned(a.checked_div(*b))?),
        [Val::Double(a), Val::Double(b)] => Val::Double(a / b),
        _ => return Err(Failure::NoOverload),
    })
}

fn modulo<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(match args {
        [Val::Int(_), Val::Int(0)] | [Val::Uint(_), Val::Uint(0)] => {
            return Err(Failure::text("modulus by zero"));
        }
        [Val::Int(a), Val::Int(b)] => Val::Int(whole(a.checked_rem(*b))?),
        [Val::Uint(a), Val::Uint(b)] => Val::Uint(unsigned(a.checked_rem(*b))?),
        _ => return Err(Failure::NoOverload),
    })
}

fn negate<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(match args {
        [Val::Int(a)] => Val::Int(whole(a.checked_neg())?),
        [Val::Double(a)] => Val::Double(-a),
        _ => return Err(Failure::NoOverload),
    })
}

fn not<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Bool(a)] => Ok(Val::Bool(!a)),
        _ => Err(Failure::NoOverload),
    }
}

fn equals<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match args {
        [a, b] => a.equal(b).map(Val::Bool),
        _ => Err(Failure::NoOverload),
    }
}

fn differs<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match args {
        [a, b] => a.equal(b).map(|same| Val::Bool(!same)),
        _ => Err(Failure::NoOverload),
    }
}

fn ordered<'a>(args: &[Val<'a>], holds: fn(Ordering) -> bool) -> Result<Val<'a>, Failure> {
    let [a, b] = args else {
        return Err(Failure::NoOverload);
    };
    match (a.order(b), a, b) {
        (Some(order), ..) => Ok(Val::Bool(holds(order))),
        // Not a number has no order.
        (None, Val::Double(_), _) | (None, _, Val::Double(_)) => Ok(Val::Bool(false)),
        _ => Err(Failure::NoOverload),
    }
}

fn less<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    ordered(args, Ordering::is_lt)
}

fn less_or_equal<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    ordered(args, Ordering::is_le)
}

fn greater<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    ordered(args, Ordering::is_gt)
}

fn greater_or_equal<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    ordered(args, Ordering::is_ge)
}

fn index<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [of, key] = args else {
        return Err(Failure::NoOverload);
    };
    if let Val::Optional(_) = of {
        return optional_index(args);
    }
    of.get(key)?.ok_or_else(|| absent(of, key))
}

/// Returns the error for a key that a map does not have or an index that a list does not have.
fn absent(of: &Val<'_>, key: &Val<'_>) -> Failure {
    let key = match key {
        Val::String(text) => text.to_string(),
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    Failure::text(match of.keys() {
        Ok(_) => format!("no such key: {key}"),
        Err(_) => format!("index out of bounds: {key}"),
    })
}

fn optional_index<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let (of, key): (&Val<'a>, _) = match args {
        [Val::Optional(None), _] => return Ok(Val::Optional(None)),
        [Val::Optional(Some(of)), key] => (&**of, key),
        [of, key] => (of, key),
        _ => return Err(Failure::NoOverload),
    };
    Ok(of.get(key)?.map_or(Val::Optional(None), Val::some))
}

fn within<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [item, of] = args else {
        return Err(Failure::NoOverload);
    };
    let Ok(items) = of.items() else {
        return of.get(item).map(|found| Val::Bool(found.is_some()));
    };
    for one in items {
        if one.equal(item)? {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}

fn size<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [of] = args else {
        return Err(Failure::NoOverload);
    };
    let length = of.len().and_then(|length| i64::try_from(length).ok());
    length.map(Val::Int).ok_or(Failure::NoOverload)
}

fn optional_of<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match args {
        [value] => Ok(Val::some(value.clone())),
        _ => Err(Failure::NoOverload),
    }
}

fn optional_of_non_zero<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [value] = args else {
        return Err(Failure::NoOverload);
    };
    let zero = match value {
        Val::Null | Val::Bool(false) | Val::Int(0) | Val::Uint(0) | Val::Duration(0) => true,
        Val::Double(number) => *number == 0.0,
        other => other.len() == Some(0),
    };
    Ok(match zero {
        true => Val::Optional(None),
        false => Val::some(value.clone()),
    })
}

fn optional_none<'a>(_: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(Val::Optional(None))
}

fn has_value<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Optional(value)] => Ok(Val::Bool(value.is_some())),
        _ => Err(Failure::NoOverload),
    }
}

fn value<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Optional(Some(value))] => Ok(Val::clone(value)),
        [Val::Optional(None)] => Err(Failure::text("optional.none() dereference")),
        _ => Err(Failure::NoOverload),
    }
}

fn or<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Optional(None), other @ Val::Optional(_)] => Ok(other.clone()),
        [some @ Val::Optional(_), _] => Ok(some.clone()),
        _ => Err(Failure::NoOverload),
    }
}

fn or_value<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Optional(Some(value)), _] => Ok(Val::clone(value)),
        [Val::Optional(None), other] => Ok(other.clone()),
        _ => Err(Failure::NoOverload),
    }
}
