//! Evaluates a checked expression.
//!
//! Owns the order of evaluation and what it costs: each step pays before it is taken, so that no
//! expression takes longer than its budget. Must not know schemas or what a result means.

mod call;
mod collected;
mod made;

use std::borrow::Cow;
use std::rc::Rc;

use call::{price, searches};
use collected::{Collected, insert};

use crate::code::{Code, Gives, Literal, Loop, Op};
use crate::price::{COPY, matching, of_loop};
use crate::value::{Failure, Val};

/// Evaluates an expression with `self` and `oldSelf`. Returns also what it cost, which is at most
/// `budget`.
pub(crate) fn evaluate<'a>(
    code: &'a Code,
    this: Val<'a>,
    old: Val<'a>,
    budget: u64,
) -> (Result<Val<'a>, Failure>, u64) {
    evaluate_with(code, vec![this, old], &[], budget)
}

/// Evaluates an expression with the values of its first slots, and with definitions that it may
/// use. Returns also what it cost.
pub(crate) fn evaluate_with<'a>(
    code: &'a Code,
    values: Vec<Val<'a>>,
    definitions: &'a [Code],
    budget: u64,
) -> (Result<Val<'a>, Failure>, u64) {
    let mut machine = Machine {
        outermost: values.len(),
        variables: values,
        definitions,
        known: vec![None; definitions.len()],
        left: budget,
    };
    let result = machine.run(code);
    (result, budget - machine.left)
}

struct Machine<'a> {
    variables: Vec<Val<'a>>,
    /// The number of variables outside of all loops.
    outermost: usize,
    definitions: &'a [Code],
    /// The values of definitions that were used.
    known: Vec<Option<Result<Val<'a>, Failure>>>,
    left: u64,
}

impl<'a> Machine<'a> {
    fn spend(&mut self, cost: u64) -> Result<(), Failure> {
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Failure::OverBudget)
            }
        }
    }

    fn run(&mut self, code: &'a Code) -> Result<Val<'a>, Failure> {
        match &code.op {
            Op::Literal(value) => Ok(constant(value)),
            Op::Variable(slot) => {
                self.spend(1)?;
                let value = self.variables.get(*slot).cloned();
                let value = value.ok_or_else(|| Failure::text("no such attribute"))?;
                self.copied(value)
            }
            Op::Lazy(at) => self.definition(*at),
            Op::Select {
                of,
                field,
                optional,
            } => {
                let of = self.run(of)?;
                self.spend(1)?;
                select(&of, field, *optional)
            }
            Op::Has { of, field } => {
                let of = self.run(of)?;
                let found = match &of {
                    Val::Optional(None) => None,
                    Val::Optional(Some(of)) => of.field(field)?,
                    of => of.field(field)?,
                };
                Ok(Val::Bool(found.is_some()))
            }
            Op::And(both) => self.logic(both, false),
            Op::Or(both) => self.logic(both, true),
            Op::Choice(parts) => {
                let [when, a, b] = &**parts;
                match self.run(when)? {
                    Val::Bool(true) => self.run(a),
                    Val::Bool(false) => self.run(b),
                    _ => Err(Failure::NoOverload),
                }
            }
            Op::Matches { text, pattern } => {
                let Val::String(text) = self.run(text)? else {
                    return Err(Failure::NoOverload);
                };
                self.spend(matching(text.len() as u64, pattern.as_str().len() as u64))?;
                Ok(Val::Bool(pattern.is_match(&text)))
            }
            Op::Call {
                name,
                function,
                args,
            } => {
                let args: Result<Vec<Val<'a>>, Failure> =
                    args.iter().map(|arg| self.run(arg)).collect();
                let args = args?;
                self.spend(price(name, &args))?;
                function(&args)
            }
            Op::List(items) => self.list(items),
            Op::Map(entries) => self.map(entries),
            Op::Make { name, fields } => self.make(name, fields),
            Op::Loop(each) => self.each(each),
            Op::IfPresent { of, body, flat } => match self.run(of)? {
                Val::Optional(None) => Ok(Val::Optional(None)),
                Val::Optional(Some(value)) => {
                    self.variables.push(Val::clone(&value));
                    let result = self.run(body);
                    self.variables.pop();
                    match (result?, *flat) {
                        (value @ Val::Optional(_), true) => Ok(value),
                        (_, true) => Err(Failure::NoOverload),
                        (value, false) => Ok(Val::some(value)),
                    }
                }
                _ => Err(Failure::NoOverload),
            },
        }
    }

    /// Pays for the copy of a variable's value. A text of the object is only referred to; one that
    /// was made is copied.
    fn copied(&mut self, value: Val<'a>) -> Result<Val<'a>, Failure> {
        let bytes = match &value {
            Val::String(Cow::Owned(text)) => text.len(),
            Val::Bytes(Cow::Owned(bytes)) => bytes.len(),
            _ => 0,
        };
        self.spend(bytes as u64 / COPY)?;
        Ok(value)
    }

    /// Returns the value of a definition, which does not see the variables of the loops around.
    fn definition(&mut self, at: usize) -> Result<Val<'a>, Failure> {
        self.spend(1)?;
        if let Some(Some(known)) = self.known.get(at) {
            let known = known.clone()?;
            return self.copied(known);
        }
        let definitions = self.definitions;
        let code = definitions
            .get(at)
            .ok_or_else(|| Failure::text("no such attribute"))?;
        let around = self.variables.split_off(self.outermost);
        let result = self.run(code);
        self.variables.extend(around);
        if let Some(known) = self.known.get_mut(at) {
            *known = Some(result.clone());
        }
        result
    }

    /// Evaluates `&&` or `||`. A value that decides the result hides an error on the other side.
    fn logic(&mut self, both: &'a [Code; 2], decides: bool) -> Result<Val<'a>, Failure> {
        let mut failure = None;
        for one in both {
            match self.run(one) {
                Ok(Val::Bool(value)) if value == decides => return Ok(Val::Bool(decides)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => failure = failure.or(Some(Failure::NoOverload)),
                Err(Failure::OverBudget) => return Err(Failure::OverBudget),
                Err(other) => failure = failure.or(Some(other)),
            }
        }
        failure.map_or(Ok(Val::Bool(!decides)), Err)
    }

    fn list(&mut self, items: &'a [(Code, bool)]) -> Result<Val<'a>, Failure> {
        self.spend(10)?;
        let mut made = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.run(item)?, *optional) {
                (Val::Optional(None), true) => {}
                (Val::Optional(Some(value)), true) => made.push(Val::clone(&value)),
                (_, true) => return Err(Failure::NoOverload),
                (value, false) => made.push(value),
            }
        }
        Ok(Val::list(made))
    }

    fn map(&mut self, entries: &'a [(Code, Code, bool)]) -> Result<Val<'a>, Failure> {
        self.spend(30)?;
        let mut made: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.run(key)?;
            let value = match (self.run(value)?, *optional) {
                (Val::Optional(None), true) => continue,
                (Val::Optional(Some(value)), true) => Val::clone(&value),
                (_, true) => return Err(Failure::NoOverload),
                (value, false) => value,
            };
            self.spend(searches(1, made.len()))?;
            insert(&mut made, key, value)?;
        }
        Ok(Val::Map(Rc::new(made)))
    }

    /// Goes through a list or map.
    fn each(&mut self, each: &'a Loop) -> Result<Val<'a>, Failure> {
        let range = self.run(&each.range)?;
        let (step, around) = of_loop(each.gives);
        self.spend(around)?;
        let keys = range.keys().ok();
        let length = range.len().ok_or(Failure::NoOverload)?;
        let mut result = Collected::default();
        for at in 0..keys.as_ref().map_or(length, Vec::len) {
            self.spend(step)?;
            let (key, value) = match keys.as_ref().and_then(|keys| keys.get(at)) {
                Some(key) if each.two => {
                    let value = match &range {
                        // Its keys are in the order of its entries.
                        Val::Map(entries) => entries.get(at).map(|(_, value)| value.clone()),
                        other => other.get(key)?,
                    };
                    (key.clone(), value.unwrap_or(Val::Null))
                }
                Some(key) => (key.clone(), key.clone()),
                None => {
                    let key = i64::try_from(at).map(Val::Int).unwrap_or(Val::Null);
                    (key, range.item(at).ok_or(Failure::NoOverload)??)
                }
            };
            let before = self.variables.len();
            if each.two {
                self.variables.push(key.clone());
            }
            self.variables.push(value.clone());
            let body = self.step(each);
            self.variables.truncate(before);
            if let (Gives::Map | Gives::Entries, Ok(Some(made))) = (each.gives, &body) {
                let more = match each.gives {
                    Gives::Map => 1,
                    _ => made.len().unwrap_or(0),
                };
                self.spend(searches(more, result.entries.len().saturating_add(more)))?;
            }
            if let Some(early) = result.take(each.gives, key, value, body)? {
                return Ok(early);
            }
        }
        result.finish(each.gives)
    }

    /// Evaluates the body for one item; `None` if the guard leaves the item out.
    fn step(&mut self, each: &'a Loop) -> Result<Option<Val<'a>>, Failure> {
        if let Some(guard) = &each.guard {
            match self.run(guard)? {
                Val::Bool(true) => {}
                Val::Bool(false) => return Ok(None),
                _ => return Err(Failure::NoOverload),
            }
        }
        self.run(&each.body).map(Some)
    }
}

fn constant(value: &Literal) -> Val<'_> {
    match value {
        Literal::Null => Val::Null,
        Literal::Bool(value) => Val::Bool(*value),
        Literal::Int(value) => Val::Int(*value),
        Literal::Uint(value) => Val::Uint(*value),
        Literal::Double(value) => Val::Double(*value),
        Literal::String(text) => Val::String(Cow::Borrowed(text)),
        Literal::Bytes(bytes) => Val::Bytes(Cow::Borrowed(bytes)),
        Literal::Kind(name) => Val::Kind(name),
    }
}

fn select<'a>(of: &Val<'a>, field: &str, optional: bool) -> Result<Val<'a>, Failure> {
    let maybe = |found: Option<Val<'a>>| found.map_or(Val::Optional(None), Val::some);
    match of {
        Val::Optional(None) => Ok(Val::Optional(None)),
        Val::Optional(Some(of)) => of.field(field).map(maybe),
        of if optional => of.field(field).map(maybe),
        of => of
            .field(field)?
            .ok_or_else(|| Failure::text(format!("no such key: {field}"))),
    }
}
