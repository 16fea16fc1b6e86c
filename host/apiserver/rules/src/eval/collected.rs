//! What a loop gives.
//!
//! Must not know costs, or how a loop goes on.

use std::rc::Rc;

use crate::code::Gives;
use crate::functions;
use crate::value::{Failure, Val};

/// What a loop has found so far.
#[derive(Default)]
pub(super) struct Collected<'a> {
    /// An error that a later item can hide.
    failure: Option<Failure>,
    count: usize,
    items: Vec<Val<'a>>,
    keys: Vec<Val<'a>>,
    pub(super) entries: Vec<(Val<'a>, Val<'a>)>,
}

impl<'a> Collected<'a> {
    /// Takes the body of one item. Returns the result of the loop if it is decided.
    pub(super) fn take(
        &mut self,
        gives: Gives,
        key: Val<'a>,
        value: Val<'a>,
        body: Result<Option<Val<'a>>, Failure>,
    ) -> Result<Option<Val<'a>>, Failure> {
        if let Gives::All | Gives::Any = gives {
            let decides = gives == Gives::Any;
            let failure = match body {
                Ok(Some(Val::Bool(held))) if held == decides => {
                    return Ok(Some(Val::Bool(decides)));
                }
                Ok(Some(Val::Bool(_)) | None) => return Ok(None),
                Ok(Some(_)) => Failure::NoOverload,
                Err(Failure::OverBudget) => return Err(Failure::OverBudget),
                Err(other) => other,
            };
            self.failure.get_or_insert(failure);
            return Ok(None);
        }
        let Some(body) = body? else {
            return Ok(None);
        };
        match (gives, body) {
            (Gives::One, Val::Bool(held)) => self.count += usize::from(held),
            (Gives::Matching, Val::Bool(true)) => self.items.push(value),
            (Gives::Matching, Val::Bool(false)) => {}
            (Gives::List, body) => self.items.push(body),
            (Gives::Sorted, body) => {
                self.items.push(value);
                self.keys.push(body);
            }
            (Gives::Map, body) => self.entries.push((key, body)),
            (Gives::Entries, body) => {
                for key in body.keys()? {
                    if let Some(value) = body.get(&key)? {
                        insert(&mut self.entries, key, value)?;
                    }
                }
            }
            _ => return Err(Failure::NoOverload),
        }
        Ok(None)
    }

    pub(super) fn finish(self, gives: Gives) -> Result<Val<'a>, Failure> {
        match gives {
            Gives::All | Gives::Any => self.failure.map_or(Ok(Val::Bool(gives == Gives::All)), Err),
            Gives::One => Ok(Val::Bool(self.count == 1)),
            Gives::List | Gives::Matching => Ok(Val::list(self.items)),
            Gives::Sorted => functions::sorted(self.items, &self.keys),
            Gives::Map | Gives::Entries => Ok(Val::Map(Rc::new(self.entries))),
        }
    }
}

/// Adds an entry, whose key must be new.
pub(super) fn insert<'a>(
    entries: &mut Vec<(Val<'a>, Val<'a>)>,
    key: Val<'a>,
    value: Val<'a>,
) -> Result<(), Failure> {
    for (known, _) in entries.iter() {
        if known.equal(&key)? {
            return Err(Failure::text(format!("Failed with repeated key: {key:?}")));
        }
    }
    entries.push((key, value));
    Ok(())
}
