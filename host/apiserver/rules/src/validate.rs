//! Applies the rules of a schema to an object.
//!
//! Owns which older value belongs to a value, the budget of an object, and which broken rules are
//! forgiven because nothing changed. Follows k8s.io/apiextensions-apiserver
//! `pkg/apiserver/schema/cel/validation.go`. Must not know how expressions are evaluated.

mod pair;

use serde_json::{Map, Value};
use vmhost_schema::{Fault, Reason};

use crate::compile::Place;
use crate::eval::evaluate;
use crate::path::child;
use crate::rule::{Rule, fault};
use crate::value::{Failure, Val};
use pair::Pair;

/// What one evaluation may cost.
const CALL_BUDGET: u64 = 1_000_000;

/// What the evaluations for one object may cost.
const OBJECT_BUDGET: u64 = 10_000_000;

/// The longest message that an expression may make, in bytes.
const LONGEST_MESSAGE: usize = 5 << 10;

/// What the rules say about an object.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The broken rules.
    pub faults: Vec<Fault>,
    /// The broken rules of values that did not change, as texts: they do not refuse the object.
    pub warnings: Vec<String>,
}

/// Applies the rules.
pub(crate) fn validate(root: &Place, object: &Value, old: Option<&Value>) -> Verdict {
    let mut validator = Validator {
        verdict: Verdict::default(),
        left: OBJECT_BUDGET,
    };
    let pair = Pair {
        value: object,
        old,
        current: old,
        nearest: None,
    };
    // An error only says that nothing more is checked.
    let _ = validator.place(root, "", pair);
    validator.verdict
}

/// The budget is spent.
struct Spent;

struct Validator {
    verdict: Verdict,
    left: u64,
}

/// Returns a fault of a value; one of the whole object names the field "<nil>".
fn at(reason: Reason, path: &str, message: String) -> Fault {
    let path = if path.is_empty() { "<nil>" } else { path };
    fault(reason, path.to_owned(), message)
}

impl Validator {
    fn place(&mut self, place: &Place, path: &str, pair: Pair<'_>) -> Result<(), Spent> {
        if pair.value.is_null() {
            return Ok(());
        }
        self.rules(place, path, pair)?;
        for nested in &place.all_of {
            let pair = Pair {
                current: None,
                ..pair
            };
            self.rules(nested, path, pair)?;
        }
        match pair.value {
            Value::Array(items) => self.items(place, path, pair, items),
            Value::Object(map) => self.fields(place, path, pair, map),
            _ => Ok(()),
        }
    }

    fn items<'o>(
        &mut self,
        place: &Place,
        path: &str,
        pair: Pair<'o>,
        items: &'o [Value],
    ) -> Result<(), Spent> {
        let Some(below) = &place.items else {
            return Ok(());
        };
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            self.place(below, &path, pair.item(place, item))?;
        }
        Ok(())
    }

    fn fields<'o>(
        &mut self,
        place: &Place,
        path: &str,
        pair: Pair<'o>,
        map: &'o Map<String, Value>,
    ) -> Result<(), Spent> {
        for (name, value) in map {
            if let Some(below) = &place.values {
                let path = format!("{path}[{name}]");
                self.place(below, &path, pair.field(name, value))?;
            }
            if let Some(below) = place.properties.get(name) {
                self.place(below, &child(path, name), pair.field(name, value))?;
            }
        }
        Ok(())
    }

    fn rules(&mut self, place: &Place, path: &str, pair: Pair<'_>) -> Result<(), Spent> {
        let Some(decl) = place.decl.as_ref().filter(|_| !place.rules.is_empty()) else {
            return Ok(());
        };
        let this = Val::read(pair.value, decl);
        let old = pair.old.filter(|old| !old.is_null());
        let old = old.map(|old| Val::read(old, decl)).transpose();
        for rule in &place.rules {
            let (this, old) = match (&this, &old) {
                (Ok(this), Ok(old)) => (this.clone(), old.clone()),
                (Err(failure), _) | (_, Err(failure)) => {
                    self.failed(place, path, rule, failure)?;
                    continue;
                }
            };
            self.rule(place, rule, path, pair, (this, old))?;
        }
        Ok(())
    }

    fn rule<'v>(
        &mut self,
        place: &'v Place,
        rule: &'v Rule,
        path: &str,
        pair: Pair<'v>,
        (this, old): (Val<'v>, Option<Val<'v>>),
    ) -> Result<(), Spent> {
        let checked = match &rule.condition {
            Ok(checked) => checked,
            Err(error) => {
                let message = format!(
                    "Invalid value: {:?}: rule compile error: {error}",
                    place.kind
                );
                self.verdict.faults.push(at(Reason::Invalid, path, message));
                return Ok(());
            }
        };
        let old = match (old, rule.optional_old) {
            (Some(old), true) => Val::some(old),
            (Some(old), false) => old,
            (None, true) => Val::Optional(None),
            // A rule about a change needs an older value.
            (None, false) if checked.uses_old => return Ok(()),
            (None, false) => Val::Null,
        };
        let (result, spent) = evaluate(&checked.code, this.clone(), old.clone(), CALL_BUDGET);
        self.spend(place, path, spent)?;
        match result {
            Ok(Val::Bool(true)) => return Ok(()),
            Ok(Val::Bool(false)) => {}
            Ok(_) => return self.failed(place, path, rule, &Failure::NoOverload),
            Err(failure) => return self.failed(place, path, rule, &failure),
        }
        let message = match &rule.message_expression {
            Some((expression, source)) => {
                let (made, spent) =
                    evaluate(&expression.code, this, old, CALL_BUDGET.min(self.left));
                self.left = self.left.saturating_sub(spent);
                match made {
                    Err(Failure::OverBudget) => {
                        let text = format!(
                            "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source:?}"
                        );
                        let message = format!("Invalid value: {:?}: {text}", place.kind);
                        self.verdict.faults.push(at(Reason::Invalid, path, message));
                        return Err(Spent);
                    }
                    Ok(Val::String(text)) => usable(&text).unwrap_or_else(|| rule.text()),
                    _ => rule.text(),
                }
            }
            None => rule.text(),
        };
        let path = match rule.field.as_str() {
            "" => path.to_owned(),
            field => child(path, field),
        };
        let broken = broken(place, rule, &path, pair.value, &message);
        if !checked.uses_old && pair.unchanged() {
            self.verdict.warnings.push(broken.to_string());
        } else {
            self.verdict.faults.push(broken);
        }
        Ok(())
    }

    fn spend(&mut self, place: &Place, path: &str, spent: u64) -> Result<(), Spent> {
        match self.left.checked_sub(spent) {
            Some(left) if left > 0 => {
                self.left = left;
                Ok(())
            }
            _ => {
                let text = "validation failed due to running out of cost budget, no further validation rules will be run";
                let message = format!("Invalid value: {:?}: {text}", place.kind);
                self.verdict.faults.push(at(Reason::Invalid, path, message));
                Err(Spent)
            }
        }
    }

    /// Reports a rule that has no result.
    fn failed(
        &mut self,
        place: &Place,
        path: &str,
        rule: &Rule,
        failure: &Failure,
    ) -> Result<(), Spent> {
        let name = rule.name();
        let text = match failure {
            Failure::NoOverload => format!(
                "'{failure}': call arguments did not match a supported operator, function or macro signature for rule: {name}"
            ),
            Failure::OverBudget => format!(
                "'{failure}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"
            ),
            Failure::Text(_) => format!("{failure} evaluating rule: {name}"),
        };
        let message = format!("Invalid value: {:?}: {text}", place.kind);
        self.verdict.faults.push(at(Reason::Invalid, path, message));
        match failure {
            Failure::OverBudget => Err(Spent),
            _ => Ok(()),
        }
    }
}

/// Returns a message that an expression made, if it can be shown.
fn usable(text: &str) -> Option<String> {
    let text = text.trim();
    let good = !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
    good.then(|| text.to_owned())
}

/// Returns the fault of a broken rule.
fn broken(place: &Place, rule: &Rule, path: &str, value: &Value, message: &str) -> Fault {
    // Lists and objects are not shown.
    let shown = match place.kind.as_str() {
        "object" | "array" => String::new(),
        _ => format!(": {value}"),
    };
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => at(Reason::Forbidden, path, format!("Forbidden: {message}")),
        Some("FieldValueRequired") => {
            at(Reason::Required, path, format!("Required value: {message}"))
        }
        Some("FieldValueDuplicate") => {
            at(Reason::Duplicate, path, format!("Duplicate value{shown}"))
        }
        _ => at(
            Reason::Invalid,
            path,
            format!("Invalid value{shown}: {message}"),
        ),
    }
}
