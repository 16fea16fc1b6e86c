//! How much calls can cost, and how large their results can be.
//!
//! Must not know other parts of expressions.

use super::{Estimate, Estimator, known_size, size_of};
use crate::code::{Code, Literal, Op};
use crate::price::{matching, pattern, times, traversal};
use crate::types::Type;

impl Estimator {
    pub(super) fn call(&mut self, code: &Code, name: &str, args: &[Code]) -> Estimate {
        let known: Vec<Estimate> = args.iter().map(|arg| self.estimate(arg)).collect();
        let sum = known
            .iter()
            .fold(0, |sum: u64, arg| sum.saturating_add(arg.cost));
        let size = |at: usize| known.get(at).map_or(u64::MAX, |arg| arg.size);
        let (own, result) = match (name, known.as_slice()) {
            ("dyn", [inner]) => {
                let cost = inner.cost.saturating_add(1);
                return Estimate {
                    cost,
                    ..inner.clone()
                };
            }
            ("_[_]" | "_[?_]", [of, _]) => {
                let place = self.inner(&of.place);
                let size = of.entry.unwrap_or_else(|| known_size(&place, &code.kind));
                return Estimate {
                    cost: sum.saturating_add(1),
                    size,
                    place,
                    entry: None,
                };
            }
            ("isSorted" | "sum" | "min" | "max", [of]) => (
                of.size.saturating_mul(self.item_cost(args.first(), of)),
                size_of(&code.kind),
            ),
            ("indexOf" | "lastIndexOf", [of, ..]) => match args.first().map(|arg| &arg.kind) {
                Some(Type::String) => (traversal(of.size), 1),
                _ => (of.size.saturating_mul(self.item_cost(args.first(), of)), 1),
            },
            ("_+_", [a, b]) => {
                let size = a.size.saturating_add(b.size);
                let entry = a.entry.zip(b.entry).map(|(a, b)| a.max(b));
                let cost = match &code.kind {
                    Type::String | Type::Bytes => traversal(size),
                    _ => 1,
                };
                let size = if code.kind.is_scalar() { 1 } else { size };
                return Estimate {
                    entry,
                    ..Estimate::made(sum.saturating_add(cost), size)
                };
            }
            ("_==_" | "_!=_", [a, b]) => match args.first().map(|arg| &arg.kind) {
                Some(Type::Opaque(_)) => (1, 1),
                _ => (traversal(a.size.min(b.size)), 1),
            },
            ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b]) => {
                let long = args
                    .iter()
                    .any(|arg| matches!(arg.kind, Type::String | Type::Bytes | Type::Dyn));
                (
                    if long {
                        traversal(a.size.min(b.size))
                    } else {
                        1
                    },
                    1,
                )
            }
            ("startsWith" | "endsWith", [_, part]) => (traversal(part.size), 1),
            ("contains", [text, part]) => {
                (traversal(text.size).saturating_mul(traversal(part.size)), 1)
            }
            ("matches", [text, pattern]) => (matching(text.size, pattern.size), 1),
            // As if the pattern of each named format had 128 characters.
            ("validate", [_, text]) => (
                traversal(text.size).saturating_mul(pattern(128)),
                size_of(&code.kind),
            ),
            ("find" | "findAll", [text, pattern, ..]) => {
                (matching(text.size, pattern.size), text.size)
            }
            ("@in", [_, of]) => match args.get(1).map(|arg| &arg.kind) {
                Some(Type::Map(..)) => (1, 1),
                _ => (of.size, 1),
            },
            ("lowerAscii" | "upperAscii" | "trim" | "substring", [text, ..]) => {
                (traversal(text.size), text.size)
            }
            ("replace", [text, ..]) => {
                let old = args.get(1).map(|arg| &arg.op);
                (times(text.size, 0.2), replaced(text.size, old, size(2)))
            }
            ("split", [text, ..]) => {
                let most = match args.get(2).map(|arg| &arg.op) {
                    Some(Op::Literal(Literal::Int(most))) => u64::try_from(*most).ok(),
                    _ => None,
                };
                (times(text.size, 0.2), most.unwrap_or(text.size))
            }
            ("join", [of, ..]) => {
                let item = known_size(&self.inner(&of.place), &Type::String);
                let item = of.entry.unwrap_or(item);
                let between = if known.len() > 1 { size(1) } else { 0 };
                let texts = of.size.saturating_mul(item);
                let seams = of.size.saturating_sub(1).saturating_mul(between);
                let size = texts.saturating_add(seams);
                (traversal(size), size)
            }
            ("format", [form, _]) => (traversal(form.size), u64::MAX),
            ("string", [of]) => match args.first().map(|arg| &arg.kind) {
                Some(Type::Bytes) => (traversal(of.size), of.size),
                _ => (1, size_of(&code.kind)),
            },
            ("bytes", [of]) => (traversal(of.size), of.size.saturating_mul(4)),
            ("strings.quote", [of]) => (
                traversal(of.size),
                of.size.saturating_mul(2).saturating_add(2),
            ),
            ("ip", [of]) => match args.first().map(|arg| &arg.kind) {
                Some(Type::Opaque(_)) => (1, u64::MAX),
                _ => (traversal(of.size), u64::MAX),
            },
            ("ip.isCanonical", [of]) => (times(of.size, 0.2), 1),
            ("url", [of]) => (traversal(of.size), of.size),
            ("isIP" | "isCIDR" | "isQuantity" | "isSemver", [of, ..]) => (traversal(of.size), 1),
            ("cidr" | "quantity" | "semver", [of, ..]) => (traversal(of.size), u64::MAX),
            ("containsIP" | "containsCIDR", [_, other]) => {
                let base = if name == "containsIP" { 4 } else { 7 };
                let parsed = match args.get(1).map(|arg| &arg.kind) {
                    Some(Type::String) => traversal(other.size),
                    _ => 0,
                };
                (parsed.saturating_add(base), 1)
            }
            ("sets.contains" | "sets.equivalent" | "sets.intersects", [a, b]) => {
                (a.size.saturating_mul(b.size), 1)
            }
            ("slice" | "distinct" | "reverse" | "sort" | "flatten", [of, ..]) => {
                let cost = match name {
                    "distinct" | "sort" => of.size.saturating_mul(of.size),
                    _ => of.size,
                };
                (cost, of.size)
            }
            _ => (1, size_of(&code.kind)),
        };
        Estimate::made(sum.saturating_add(own), result)
    }

    /// Returns what it costs to look at one item of a list.
    fn item_cost(&self, list: Option<&Code>, known: &Estimate) -> u64 {
        let long = match list.map(|list| &list.kind) {
            Some(Type::List(item)) => matches!(**item, Type::String | Type::Bytes),
            _ => false,
        };
        if !long {
            return 1;
        }
        let size = known_size(&self.inner(&known.place), &Type::String);
        traversal(size).saturating_add(1)
    }
}

/// Returns the most characters of a text of this size with a part of it replaced.
fn replaced(size: u64, old: Option<&Op>, new: u64) -> u64 {
    let old = match old {
        Some(Op::Literal(Literal::String(old))) => old.chars().count() as u64,
        _ => 0,
    };
    if old == 0 {
        let seams = size.saturating_add(1).saturating_mul(new);
        return seams.saturating_add(size);
    }
    if new <= old {
        return size;
    }
    size.div_ceil(old).saturating_mul(new)
}
