//! Match conditions: expressions that a request must fulfil.
//!
//! Owns their evaluation with one budget, and the texts of their failures. Must not know which
//! webhook or policy the request is for.

use serde_json::Value;
use vmhost_rules::{Expression, Given, Scope, Seen, Unevaluated, Wanted};

/// What the evaluation of all conditions of a webhook or a policy may cost.
const BUDGET: u64 = 2_500_000;

/// The variables of a webhook's match conditions.
pub(crate) const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

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
        seen: &Seen<'_>,
        left: &mut u64,
    ) -> Option<Result<Given, String>> {
        let expression = match &self.expression {
            Ok(expression) => expression,
            Err(error) => return Some(Err(format!("compilation error: {error}"))),
        };
        match scope.evaluate(expression, seen, left) {
            Ok(given) => Some(Ok(given)),
            Err(why) => self.failure(why, *left).map(Err),
        }
    }

    /// Evaluates an expression that makes an object or a patch.
    pub fn make(&self, scope: &Scope, seen: &Seen<'_>, budget: u64) -> Result<Value, String> {
        let expression = self.expression.as_ref().map_err(String::clone)?;
        let mut left = budget;
        let made = scope.make(expression, seen, &mut left);
        made.map_err(|why| {
            let text = self.failure(why, left);
            text.unwrap_or_else(|| SPENT.to_owned())
        })
    }

    /// Returns the text of a failure. `None`: the budget is spent.
    fn failure(&self, why: Unevaluated, left: u64) -> Option<String> {
        let why = match why {
            // More is left than this one may cost.
            Unevaluated::OverBudget if left > 0 => {
                "operation cancelled: actual cost limit exceeded".to_owned()
            }
            Unevaluated::OverBudget => return None,
            Unevaluated::Failed(why) => why,
            Unevaluated::Unfit(why) => return Some(why),
        };
        let source = &self.source;
        Some(format!("expression '{source}' resulted in error: {why}"))
    }
}

/// The match conditions of a webhook, for a program that asks the webhook itself: without
/// `authorizer`, because there is no server.
#[derive(Debug)]
pub struct MatchConditions {
    scope: Scope,
    conditions: Vec<Checked>,
}

impl MatchConditions {
    /// Checks expressions. An error says what is wrong with the first bad one.
    pub fn check<'a>(expressions: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let scope = Scope::new(&VARIABLES);
        let mut conditions = Vec::new();
        for source in expressions {
            let condition = Checked::of(&scope, source, Wanted::Bool);
            if let Err(error) = &condition.expression {
                return Err(format!("expression '{}': {error}", condition.source()));
            }
            conditions.push(condition);
        }
        Ok(Self { scope, conditions })
    }

    /// Returns whether a request fulfils all of them. Null stands for an object that the request
    /// does not have. An error says why some have no result, while all others hold.
    pub fn hold(&self, object: &Value, old: &Value, request: &Value) -> Result<bool, String> {
        let seen = Seen::of(&[object, old, request]);
        hold(&self.conditions, &self.scope, &seen)
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
pub(crate) fn hold(conditions: &[Checked], scope: &Scope, seen: &Seen<'_>) -> Result<bool, String> {
    let mut left = BUDGET;
    let mut errors = Vec::new();
    for condition in conditions {
        match condition.evaluate(scope, seen, &mut left) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_are_evaluated_without_a_server() {
        let sources = ["object.metadata.name != 'a'", "oldObject == null"];
        let conditions = MatchConditions::check(sources).unwrap();
        let holds = |object: &Value, old: &Value| conditions.hold(object, old, &json!({}));
        let named = |name: &str| json!({ "metadata": { "name": name } });
        assert_eq!(holds(&named("b"), &Value::Null), Ok(true));
        assert_eq!(holds(&named("a"), &Value::Null), Ok(false));
        assert_eq!(holds(&named("b"), &named("b")), Ok(false));
        let error = holds(&json!({}), &Value::Null).unwrap_err();
        assert!(error.contains("no such key: metadata"), "{error}");
        let error = MatchConditions::check(["authorizer == null"]).unwrap_err();
        assert!(error.contains("authorizer"), "{error}");
    }
}
