//! Match conditions: expressions that a request must fulfil.
//!
//! Owns their evaluation with one budget, and the texts of their failures. Must not know which
//! webhook or policy the request is for.

use serde_json::Value;
use vmhost_rules::{Expression, Given, Scope, Unevaluated, Wanted};

/// What the evaluation of all conditions of a webhook or a policy may cost.
const BUDGET: u64 = 2_500_000;

/// The text when a budget is spent.
pub(crate) const SPENT: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An expression as it was written, and checked.
#[derive(Debug)]
pub(crate) struct Checked {
    source: String,
    expression: Result<Expression, String>,
}

impl Checked {
    pub fn of(scope: &Scope, source: &str, wanted: Wanted) -> Checked {
        Checked {
            source: source.to_owned(),
            expression: scope.compile(source, wanted),
        }
    }

    pub fn source(&self) -> &str {
        self.source.trim()
    }

    /// Evaluates the expression. `None`: the budget is spent.
    pub fn evaluate(
        &self,
        scope: &Scope,
        values: &[&Value],
        left: &mut u64,
    ) -> Option<Result<Given, String>> {
        let expression = match &self.expression {
            Ok(expression) => expression,
            Err(error) => return Some(Err(format!("compilation error: {error}"))),
        };
        match scope.evaluate(expression, values, left) {
            Ok(given) => Some(Ok(given)),
            // More is left than this one may cost.
            Err(Unevaluated::OverBudget) if *left > 0 => Some(Err(format!(
                "expression '{}' resulted in error: operation cancelled: actual cost limit exceeded",
                self.source
            ))),
            Err(Unevaluated::OverBudget) => None,
            Err(Unevaluated::Failed(why)) => Some(Err(format!(
                "expression '{}' resulted in error: {why}",
                self.source
            ))),
        }
    }
}

/// Returns the conditions of a webhook or a policy.
pub(crate) fn read(list: &Value, scope: &Scope) -> Vec<Checked> {
    let list = list.as_array().into_iter().flatten();
    let sources = list.filter_map(|one| one["expression"].as_str());
    sources
        .map(|source| Checked::of(scope, source, Wanted::Bool))
        .collect()
}

/// Returns whether a request fulfils all conditions. An error says why some have no result, while
/// all others hold.
pub(crate) fn hold(
    conditions: &[Checked],
    scope: &Scope,
    values: &[&Value],
) -> Result<bool, String> {
    let mut left = BUDGET;
    let mut errors = Vec::new();
    for condition in conditions {
        match condition.evaluate(scope, values, &mut left) {
            None => return Err(SPENT.to_owned()),
            Some(Ok(Given::Bool(true))) => {}
            Some(Ok(_)) => return Ok(false),
            Some(Err(error)) => errors.push(error),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        more => Err(format!("[{}]", more.join(", "))),
    }
}
