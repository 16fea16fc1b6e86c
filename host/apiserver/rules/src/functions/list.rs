//! Functions of lists, and of lists as sets.
//!
//! Must not know how items are declared.

use std::cmp::Ordering;

use super::operators::add;
use super::text;
use crate::value::{Failure, Function, Val};

/// The most items of a list that `lists.range` makes.
const LONGEST: i64 = 100_000;

pub(super) fn find(name: &str) -> Option<Function> {
    let function: Function = match name {
        "isSorted" => is_sorted,
        "sum" => sum,
        "min" => |args| extreme(args, Ordering::Less),
        "max" => |args| extreme(args, Ordering::Greater),
        "indexOf" => |args| index_of(args, false),
        "lastIndexOf" => |args| index_of(args, true),
        "slice" => slice,
        "flatten" => flatten,
        "distinct" => distinct,
        "reverse" => reverse,
        "sort" => |args| {
            let items = items(args)?;
            let keys = items.clone();
            sorted(items, &keys)
        },
        "lists.range" => range,
        "sets.contains" => |args| sets(args, |a, b| all_in(b, a)),
        "sets.equivalent" => |args| sets(args, |a, b| Ok(all_in(a, b)? && all_in(b, a)?)),
        "sets.intersects" => |args| {
            sets(args, |a, b| {
                for item in a {
                    if position(b, item)?.is_some() {
                        return Ok(true);
                    }
                }
                Ok(false)
            })
        },
        _ => return None,
    };
    Some(function)
}

fn items<'a>(args: &[Val<'a>]) -> Result<Vec<Val<'a>>, Failure> {
    args.first().ok_or(Failure::NoOverload)?.items()
}

fn order(a: &Val<'_>, b: &Val<'_>) -> Result<Ordering, Failure> {
    a.order(b).ok_or(Failure::NoOverload)
}

fn is_sorted<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let items = items(args)?;
    for (a, b) in items.iter().zip(items.iter().skip(1)) {
        if order(a, b)?.is_gt() {
            return Ok(Val::Bool(false));
        }
    }
    Ok(Val::Bool(true))
}

fn sum<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let mut items = items(args)?.into_iter();
    // The type of an empty list is not known here; its sum is the int 0.
    let Some(mut total) = items.next() else {
        return Ok(Val::Int(0));
    };
    for item in items {
        total = add(&[total, item])?;
    }
    Ok(total)
}

fn extreme<'a>(args: &[Val<'a>], wanted: Ordering) -> Result<Val<'a>, Failure> {
    let mut best: Option<Val<'a>> = None;
    for item in items(args)? {
        let better = match &best {
            Some(best) => order(&item, best)? == wanted,
            None => true,
        };
        if better {
            best = Some(item);
        }
    }
    let name = if wanted.is_lt() { "min" } else { "max" };
    best.ok_or_else(|| Failure::text(format!("{name} called on empty list")))
}

fn position(items: &[Val<'_>], wanted: &Val<'_>) -> Result<Option<usize>, Failure> {
    for (at, item) in items.iter().enumerate() {
        if item.equal(wanted)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn index_of<'a>(args: &[Val<'a>], last: bool) -> Result<Val<'a>, Failure> {
    let found = match args {
        [Val::String(whole), Val::String(part)] => text::index_of(whole, part, None, last)?,
        [Val::String(whole), Val::String(part), Val::Int(from)] => {
            text::index_of(whole, part, Some(*from), last)?
        }
        [list, wanted] => {
            let mut items = list.items()?;
            let length = items.len();
            if last {
                items.reverse();
            }
            let at = position(&items, wanted)?;
            let at = at.map(|at| if last { length - 1 - at } else { at });
            at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
        }
        _ => return Err(Failure::NoOverload),
    };
    Ok(Val::Int(found))
}

fn slice<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [list, Val::Int(start), Val::Int(end)] = args else {
        return Err(Failure::NoOverload);
    };
    let items = list.items()?;
    let at = |number: i64| usize::try_from(number).ok();
    let part = at(*start)
        .zip(at(*end))
        .and_then(|(start, end)| items.get(start..end));
    match part {
        Some(part) => Ok(Val::list(part.to_vec())),
        None => Err(Failure::text(format!(
            "cannot slice({start}, {end}), list is length {}",
            items.len()
        ))),
    }
}

fn flatten<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let levels = match args {
        [_] => 1,
        [_, Val::Int(levels)] if *levels >= 0 => *levels,
        [_, Val::Int(_)] => return Err(Failure::text("level must be non-negative")),
        _ => return Err(Failure::NoOverload),
    };
    let mut flat = Vec::new();
    level(&items(args)?, levels, &mut flat)?;
    Ok(Val::list(flat))
}

fn level<'a>(items: &[Val<'a>], levels: i64, flat: &mut Vec<Val<'a>>) -> Result<(), Failure> {
    for item in items {
        match item {
            Val::Items(..) | Val::List(..) if levels > 0 => {
                level(&item.items()?, levels - 1, flat)?
            }
            other => flat.push(other.clone()),
        }
    }
    Ok(())
}

fn distinct<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let mut found: Vec<Val<'a>> = Vec::new();
    for item in items(args)? {
        if position(&found, &item)?.is_none() {
            found.push(item);
        }
    }
    Ok(Val::list(found))
}

fn reverse<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let mut items = items(args)?;
    items.reverse();
    Ok(Val::list(items))
}

/// Returns items in the order of their keys.
pub(crate) fn sorted<'a>(items: Vec<Val<'a>>, keys: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    for (a, b) in keys.iter().zip(keys.iter().skip(1)) {
        order(a, b)?;
    }
    let mut pairs: Vec<(Val<'a>, &Val<'a>)> = items.into_iter().zip(keys).collect();
    pairs.sort_by(|(_, a), (_, b)| a.order(b).unwrap_or(Ordering::Equal));
    Ok(Val::list(pairs.into_iter().map(|(item, _)| item).collect()))
}

fn range<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Int(end)] if *end <= LONGEST => Ok(Val::list((0..*end).map(Val::Int).collect())),
        [Val::Int(_)] => Err(Failure::OverBudget),
        _ => Err(Failure::NoOverload),
    }
}

fn sets<'a>(
    args: &[Val<'a>],
    holds: impl Fn(&[Val<'a>], &[Val<'a>]) -> Result<bool, Failure>,
) -> Result<Val<'a>, Failure> {
    match args {
        [a, b] => holds(&a.items()?, &b.items()?).map(Val::Bool),
        _ => Err(Failure::NoOverload),
    }
}

/// Returns whether all items of `a` are in `b`.
fn all_in(a: &[Val<'_>], b: &[Val<'_>]) -> Result<bool, Failure> {
    for item in a {
        if position(b, item)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
