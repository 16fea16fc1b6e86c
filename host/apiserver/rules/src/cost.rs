//! How much an expression can cost, before it is evaluated.
//!
//! Owns the estimate of cel-go (`checker/cost.go`) and of Kubernetes' functions
//! (k8s.io/apiserver `pkg/cel/library/cost.go`), as far as the largest cost goes, with their
//! quirks: users know the limits from their clusters. Must not know the limits.

mod call;

use std::sync::Arc;

use crate::code::{Code, Gives, Literal, Loop, Op};
use crate::decl::Decl;
use crate::price::{MAKING, matching, of_loop};
use crate::types::Type;

/// Returns the largest cost of an expression whose `self` and `oldSelf` have this declared type.
pub(crate) fn most(code: &Code, this: &Arc<Decl>) -> u64 {
    let variable = Estimate {
        cost: 1,
        size: this.most,
        place: Place::At(this.clone()),
        entry: None,
    };
    let mut estimator = Estimator {
        root: this.clone(),
        variables: vec![variable.clone(), variable],
    };
    estimator.estimate(code).cost
}

/// What is known about a part of an expression.
#[derive(Clone)]
struct Estimate {
    cost: u64,
    /// The most characters, items or entries; [`u64::MAX`] if it is unknown.
    size: u64,
    place: Place,
    /// The size of the items of a made list or map.
    entry: Option<u64>,
}

/// Where a part comes from.
#[derive(Clone)]
enum Place {
    /// It is made by the expression.
    Made,
    /// It has this declared type.
    At(Arc<Decl>),
    /// It is below a declared type that says nothing about it.
    Unknown,
}

struct Estimator {
    root: Arc<Decl>,
    variables: Vec<Estimate>,
}

/// Returns the size of a value of a type whose values have one size.
fn size_of(kind: &Type) -> u64 {
    if kind.is_scalar() { 1 } else { u64::MAX }
}

impl Estimate {
    fn made(cost: u64, size: u64) -> Estimate {
        Estimate {
            cost,
            size,
            place: Place::Made,
            entry: None,
        }
    }
}

impl Estimator {
    fn literal(&self, value: &Literal) -> Estimate {
        match value {
            Literal::String(text) => Estimate::made(0, text.chars().count() as u64),
            Literal::Bytes(bytes) => Estimate::made(0, bytes.len() as u64),
            // Kubernetes looks a type's name up as if it were a path, and finds `self`.
            Literal::Kind(_) => Estimate::made(1, self.root.most),
            _ => Estimate::made(0, 1),
        }
    }

    fn estimate(&mut self, code: &Code) -> Estimate {
        match &code.op {
            Op::Literal(value) => self.literal(value),
            Op::Variable(slot) => {
                let known = self.variables.get(*slot).cloned();
                let known = known.unwrap_or_else(|| Estimate::made(1, u64::MAX));
                Estimate { cost: 1, ..known }
            }
            // No limit is computed for expressions with definitions.
            Op::Lazy(_) => Estimate::made(1, u64::MAX),
            Op::Select {
                of,
                field,
                optional,
            } => {
                let below = self.estimate(of);
                let looks = *optional || matches!(of.kind, Type::Map(..) | Type::Object(_));
                let place = self.field(&below.place, field);
                Estimate {
                    cost: below.cost.saturating_add(u64::from(looks)),
                    size: known_size(&place, &code.kind),
                    place,
                    entry: None,
                }
            }
            Op::Has { of, .. } => Estimate::made(self.estimate(of).cost, 1),
            Op::And(both) | Op::Or(both) => {
                let costs = both.iter().map(|one| self.estimate(one).cost);
                let cost = costs.fold(0, u64::saturating_add);
                Estimate::made(cost, 1)
            }
            Op::Choice(parts) => {
                let [when, a, b] = &**parts;
                let (when, a, b) = (self.estimate(when), self.estimate(a), self.estimate(b));
                Estimate {
                    cost: when.cost.saturating_add(a.cost.max(b.cost)),
                    size: a.size.max(b.size),
                    place: Place::Made,
                    entry: a.entry.zip(b.entry).map(|(a, b)| a.max(b)),
                }
            }
            Op::Matches { text, pattern } => {
                let text = self.estimate(text);
                let cost = matching(text.size, pattern.as_str().chars().count() as u64);
                Estimate::made(cost.saturating_add(text.cost), 1)
            }
            Op::Call { name, args, .. } => self.call(code, name, args),
            Op::List(items) => {
                let items: Vec<Estimate> =
                    items.iter().map(|(item, _)| self.estimate(item)).collect();
                let cost = items
                    .iter()
                    .fold(10, |sum: u64, item| sum.saturating_add(item.cost));
                Estimate {
                    entry: Some(items.iter().map(|item| item.size).max().unwrap_or(0)),
                    ..Estimate::made(cost, items.len() as u64)
                }
            }
            Op::Map(entries) => {
                let (mut cost, mut entry) = (30_u64, 0);
                for (key, value, _) in entries {
                    let (key, value) = (self.estimate(key), self.estimate(value));
                    cost = cost.saturating_add(key.cost).saturating_add(value.cost);
                    entry = entry.max(value.size);
                }
                Estimate {
                    entry: Some(entry),
                    ..Estimate::made(cost, entries.len() as u64)
                }
            }
            Op::Make { fields, .. } => {
                let costs = fields.iter().map(|(_, value, _)| self.estimate(value).cost);
                let cost = costs.fold(MAKING, u64::saturating_add);
                Estimate::made(cost, fields.len() as u64)
            }
            Op::Loop(each) => self.each(each),
            Op::IfPresent { of, body, .. } => {
                let of = self.estimate(of);
                let variable = Estimate {
                    cost: 1,
                    ..of.clone()
                };
                self.variables.push(variable);
                let body = self.estimate(body);
                self.variables.pop();
                let twice = of.cost.saturating_mul(2);
                Estimate {
                    cost: twice.saturating_add(13).saturating_add(body.cost),
                    ..body
                }
            }
        }
    }

    /// Returns where a field of a value comes from. For values that the expression makes, cel-go
    /// looks into `self`.
    fn field(&self, place: &Place, field: &str) -> Place {
        let decl = match place {
            Place::Made => &self.root,
            Place::At(decl) => decl,
            Place::Unknown => return Place::Unknown,
        };
        match decl.field(field) {
            Some(field) => Place::At(field.decl.clone()),
            None => Place::Unknown,
        }
    }

    /// Returns where the items of a list or the values of a map come from; `Made` for values that
    /// the expression makes.
    fn inner(&self, place: &Place) -> Place {
        match place {
            Place::Made => Place::At(self.root.clone()),
            Place::At(decl) => decl
                .inner()
                .map_or(Place::Unknown, |inner| Place::At(inner.clone())),
            Place::Unknown => Place::Unknown,
        }
    }

    fn each(&mut self, each: &Loop) -> Estimate {
        let range = self.estimate(&each.range);
        let (key_kind, item_kind) = match &each.range.kind {
            Type::List(item) => (Type::Int, Type::clone(item)),
            Type::Map(key, value) => (Type::clone(key), Type::clone(value)),
            _ => (Type::Dyn, Type::Dyn),
        };
        let place = self.inner(&range.place);
        // The size of a declared value counts before the size of an item of a made list.
        let size = match &place {
            Place::Unknown => range.entry.unwrap_or_else(|| size_of(&item_kind)),
            place => known_size(place, &item_kind),
        };
        let item = Estimate {
            cost: 1,
            size,
            place,
            entry: None,
        };
        // Kubernetes gives keys no size.
        let key = Estimate::made(
            1,
            if key_kind == Type::String {
                0
            } else {
                size_of(&key_kind)
            },
        );
        let before = self.variables.len();
        match (each.two, &each.range.kind) {
            (true, _) => self.variables.extend([key, item]),
            (false, Type::Map(..)) => self.variables.push(key),
            (false, _) => self.variables.push(item),
        }
        let guard = each.guard.as_ref().map(|guard| self.estimate(guard).cost);
        let body = self.estimate(&each.body);
        self.variables.truncate(before);
        let (step, around) = of_loop(each.gives);
        let once = body
            .cost
            .saturating_add(step)
            .saturating_add(guard.unwrap_or(0));
        let cost = range.size.saturating_mul(once);
        let cost = cost.saturating_add(range.cost).saturating_add(around);
        let (size, entry) = match each.gives {
            Gives::All | Gives::Any | Gives::One => (1, None),
            Gives::Matching | Gives::Sorted => (range.size, Some(size)),
            Gives::List | Gives::Map | Gives::Entries => (range.size, Some(body.size)),
        };
        Estimate {
            entry,
            ..Estimate::made(cost, size)
        }
    }
}

/// Returns the size of a value at a place.
fn known_size(place: &Place, kind: &Type) -> u64 {
    match place {
        Place::At(decl) => decl.most,
        Place::Made | Place::Unknown => size_of(kind),
    }
}
