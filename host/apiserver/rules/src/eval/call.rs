//! What calls cost, once their arguments are known.
//!
//! Must not know how an expression is evaluated.

use crate::named;
use crate::price::{COPY, MAKING, matching, times, traversal};
use crate::value::{Opaque, Val};

/// More items than any evaluation can pay for.
const ITEMS: u64 = 1 << 20;

/// Returns what it costs to search a made map so many times. kube-apiserver's maps need no search;
/// those of most rules are so small that this is nothing.
pub(super) fn searches(times: usize, entries: usize) -> u64 {
    times.saturating_mul(entries) as u64 / 16
}

/// Returns how many items a list and the lists in it have together, but not more than `most`.
fn nested(value: &Val<'_>, most: u64) -> u64 {
    let mut sum = 0_u64;
    for item in value.items().unwrap_or_default() {
        let inner = nested(&item, most.saturating_sub(sum));
        sum = sum.saturating_add(inner).saturating_add(1);
        if sum >= most {
            return most;
        }
    }
    sum
}

/// Returns the size of a named format's pattern.
fn pattern_size(format: Option<&Val<'_>>) -> u64 {
    let Some(Val::Opaque(value)) = format else {
        return 1;
    };
    match &**value {
        Opaque::Format(name) => named::find(name).map_or(1, |format| format.size),
        _ => 1,
    }
}

/// Returns what it costs to copy a question about access with one more part. kube-apiserver copies
/// no texts; those of real questions are so short that this is nothing.
fn asked(args: &[Val<'_>], sizes: &[u64]) -> u64 {
    let before = match args.first() {
        Some(Val::Asking(asking)) => asking.size() as u64,
        _ => 0,
    };
    sizes
        .iter()
        .fold(before, |sum, size| sum.saturating_add(*size))
        / COPY
}

/// Returns what a call costs, once its arguments are known.
pub(super) fn price(name: &str, args: &[Val<'_>]) -> u64 {
    let sizes: Vec<u64> = args
        .iter()
        .map(|arg| arg.len().unwrap_or(1) as u64)
        .collect();
    match (name, sizes.as_slice()) {
        ("_==_" | "_!=_", [a, b]) => {
            let unordered = args.iter().any(|arg| arg.listing().is_some());
            let made = args.iter().any(|arg| matches!(arg, Val::Map(_)));
            let pairs = if unordered {
                times(a.saturating_mul(*b), 0.1)
            } else if made {
                a.saturating_mul(*b) / 16
            } else {
                0
            };
            traversal(*a.min(b)).saturating_add(pairs)
        }
        ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b]) => traversal(*a.min(b)),
        ("_+_", [a, b]) => {
            let unordered = args.iter().any(|arg| arg.listing().is_some());
            let pairs = if unordered {
                times(a.saturating_mul(*b), 0.1)
            } else {
                0
            };
            traversal(a.saturating_add(*b)).saturating_add(pairs)
        }
        ("@in", [_, of]) => match args.get(1) {
            Some(Val::Data(..)) => 1,
            _ => *of,
        },
        ("_[_]" | "_[?_]", [of, _]) => match args.first() {
            // A made map is searched.
            Some(Val::Map(_)) => traversal(*of),
            _ => 1,
        },
        ("contains", [text, part]) => traversal(*text).saturating_mul(traversal(*part)),
        ("matches" | "find" | "findAll", [text, pattern, ..]) => matching(*text, *pattern),
        ("indexOf" | "lastIndexOf", [of, ..]) => match args.first() {
            Some(Val::String(_)) => {
                traversal(*of).saturating_mul(traversal(sizes.get(1).copied().unwrap_or(1)))
            }
            _ => *of,
        },
        ("replace" | "split" | "ip.isCanonical", [text, ..]) => times(*text, 0.2),
        ("join" | "isSorted" | "sum" | "min" | "max" | "slice" | "reverse", [of, ..]) => *of,
        ("flatten", _) => args.first().map_or(1, |list| nested(list, ITEMS)),
        ("lists.range", _) => match args.first() {
            Some(Val::Int(end)) => u64::try_from(*end).unwrap_or(0).max(1),
            _ => 1,
        },
        ("distinct" | "sort", [of]) => of.saturating_mul(*of),
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [a, b]) => a.saturating_mul(*b),
        ("validate", [_, text]) => matching(*text, pattern_size(args.first())),
        // The limit of an expression leaves room for two.
        ("check", _) => 350_000,
        ("fieldSelector" | "labelSelector", [_, text]) => {
            let parts = times(*text, 0.5).saturating_mul(10 + MAKING);
            let copied = asked(args, &sizes);
            let parsed = traversal(*text).saturating_add(parts).saturating_add(10);
            parsed.saturating_add(copied)
        }
        ("_-_" | "_*_" | "_/_" | "_%_" | "-_" | "!_" | "size" | "type" | "dyn", _) => 1,
        (
            "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name",
            _,
        ) => asked(args, &sizes).saturating_add(1),
        ("format.named", _) => 1,
        (_, [text, ..]) => traversal(*text),
        (_, []) => 1,
    }
}
