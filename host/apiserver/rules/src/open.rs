//! Expressions over values without a schema: the conditions and policies of admission.
//!
//! Owns the variables of such expressions, the definitions that they share (`variables.x`), and
//! what one evaluation may cost. Must not know what a variable means, or what follows from a
//! result.

use std::rc::Rc;

use serde_json::Value;

use crate::access::{self, Asking, Authorizer};
use crate::check::{Checked, Definition, check_with};
use crate::code::Code;
use crate::decl::OPEN;
use crate::eval::evaluate_with;
use crate::room::with_room;
use crate::types::{OBJECT, PATCH, Type};
use crate::value::{Failure, Val, json};

/// What one evaluation may cost.
const CALL_BUDGET: u64 = 1_000_000;

/// The variables of a question about access, which come after all others.
const ACCESS: [(&str, &str); 2] = [
    ("authorizer", access::AUTHORIZER),
    ("authorizer.requestResource", access::RESOURCE),
];

/// The variables and definitions that expressions see.
#[derive(Debug)]
pub struct Scope {
    names: Vec<(String, Type)>,
    definitions: Vec<Definition>,
    /// The definitions, in the same order.
    codes: Vec<Code>,
    /// Whether expressions may ask about access.
    asks: bool,
}

/// The values that an expression sees.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    values: Vec<&'a Value>,
    authorizer: Option<&'a dyn Authorizer>,
}

impl<'a> Seen<'a> {
    /// Returns the values of a scope's variables, in their order.
    pub fn of(values: &[&'a Value]) -> Seen<'a> {
        Seen {
            values: values.to_vec(),
            authorizer: None,
        }
    }

    /// Adds what answers questions about access.
    #[must_use]
    pub fn with_authorizer(self, authorizer: &'a dyn Authorizer) -> Seen<'a> {
        Seen {
            authorizer: Some(authorizer),
            ..self
        }
    }
}

/// A checked expression of a [`Scope`].
#[derive(Debug)]
pub struct Expression(Code);

/// What an expression must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A condition.
    Bool,
    /// A message.
    Text,
    /// A text or nothing.
    TextOrNull,
    /// An object that is merged into another one: `Object{spec: Object.spec{replicas: 1}}`.
    Object,
    /// The operations of a JSON patch: `[JSONPatch{op: "remove", path: "/spec/x"}]`.
    Patch,
}

/// What an expression gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// A condition that holds, or does not.
    Bool(bool),
    /// A text.
    Text(String),
    /// Null, or a value of another type.
    Other,
}

/// Why an expression gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unevaluated {
    /// It costs more than it may, or than is left.
    OverBudget,
    /// It failed, for this reason.
    Failed(String),
    /// What it made cannot be used, for this reason.
    Unfit(String),
}

impl Scope {
    /// Returns a scope with these variables.
    pub fn new(names: &[&str]) -> Scope {
        let names = names.iter().map(|name| ((*name).to_owned(), Type::Dyn));
        Scope {
            names: names.collect(),
            definitions: Vec::new(),
            codes: Vec::new(),
            asks: false,
        }
    }

    /// Returns the scope with `authorizer`, which asks what is allowed. Messages do not see it.
    #[must_use]
    pub fn with_authorizer(mut self) -> Scope {
        let added = ACCESS.map(|(name, kind)| (name.to_owned(), Type::Opaque(kind)));
        self.names.extend(added);
        self.asks = true;
        self
    }

    /// Adds a definition, which may use those before it. An error says what is wrong with it.
    pub fn define(&mut self, name: &str, source: &str) -> Result<(), String> {
        let Checked { code, depth, .. } = self.checked(source, false, true)?;
        self.definitions.push(Definition {
            name: name.to_owned(),
            kind: code.kind.clone(),
            depth,
        });
        self.codes.push(code);
        Ok(())
    }

    /// Checks an expression. An error says what is wrong with it.
    pub fn compile(&self, source: &str, wanted: Wanted) -> Result<Expression, String> {
        let patches = matches!(wanted, Wanted::Object | Wanted::Patch);
        let code = self.checked(source, patches, wanted != Wanted::Text)?.code;
        match (wanted, &code.kind) {
            (Wanted::Object, kind) if is_made(kind, OBJECT) => Ok(Expression(code)),
            (Wanted::Patch, Type::List(item)) if is_made(item, PATCH) => Ok(Expression(code)),
            (Wanted::Bool, Type::Bool)
            | (Wanted::Text, Type::String)
            | (Wanted::TextOrNull, Type::String | Type::Null | Type::Dyn) => Ok(Expression(code)),
            (Wanted::Bool, other) => Err(format!("must evaluate to bool but got {other}")),
            (Wanted::Text, other) => Err(format!("must evaluate to string but got {other}")),
            (Wanted::TextOrNull, other) => {
                let known = "must evaluate to one of [string null_type]";
                Err(format!("{known} but got {other}"))
            }
            (Wanted::Object, other) => Err(format!("must evaluate to {OBJECT} but got {other}")),
            (Wanted::Patch, other) => {
                Err(format!("must evaluate to list({PATCH}) but got {other}"))
            }
        }
    }

    fn checked(&self, source: &str, patches: bool, asks: bool) -> Result<Checked, String> {
        let mut names = self.names.clone();
        if self.asks && !asks {
            // They keep their places, but no expression can name them.
            for (name, _) in names.iter_mut().rev().take(ACCESS.len()) {
                name.clear();
            }
        }
        let check = || check_with(source, names, &self.definitions, patches);
        let checked = with_room(source.chars().count(), check).flatten();
        checked.map_err(|error| format!("compilation failed: {error}"))
    }

    /// Evaluates an expression of this scope. Takes what it costs from `left`.
    pub fn evaluate(
        &self,
        expression: &Expression,
        seen: &Seen<'_>,
        left: &mut u64,
    ) -> Result<Given, Unevaluated> {
        Ok(match self.run(expression, seen, left)? {
            Val::Bool(value) => Given::Bool(value),
            Val::String(text) => Given::Text(text.into_owned()),
            _ => Given::Other,
        })
    }

    /// Evaluates an expression that was compiled as [`Wanted::Object`] or [`Wanted::Patch`], like
    /// [`Scope::evaluate`]. Returns the object, or the list of the operations.
    pub fn make(
        &self,
        expression: &Expression,
        seen: &Seen<'_>,
        left: &mut u64,
    ) -> Result<Value, Unevaluated> {
        let made = self.run(expression, seen, left)?;
        json::made(&made).map_err(Unevaluated::Unfit)
    }

    fn run<'a>(
        &'a self,
        expression: &'a Expression,
        seen: &Seen<'a>,
        left: &mut u64,
    ) -> Result<Val<'a>, Unevaluated> {
        let values = seen.values.iter().map(|value| Val::read(value, &OPEN));
        let values: Result<Vec<Val<'a>>, Failure> = values.collect();
        let mut values = values.map_err(|failure| Unevaluated::Failed(failure.to_string()))?;
        if self.asks {
            let ask = |begin: fn(&'a dyn Authorizer) -> Asking<'a>| {
                let asking = seen.authorizer.map(begin);
                asking.map_or(Val::Null, |asking| Val::Asking(Rc::new(asking)))
            };
            values.extend([ask(Asking::of), ask(Asking::about_request)]);
        }
        let budget = CALL_BUDGET.min(*left);
        let (result, cost) = evaluate_with(&expression.0, values, &self.codes, budget);
        *left = left.saturating_sub(cost);
        result.map_err(|failure| match failure {
            Failure::OverBudget => Unevaluated::OverBudget,
            failure => Unevaluated::Failed(failure.to_string()),
        })
    }
}

fn is_made(kind: &Type, name: &str) -> bool {
    matches!(kind, Type::Made(made) if **made == *name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(scope: &Scope, source: &str, values: &[&Value]) -> Result<Given, Unevaluated> {
        let wanted = [Wanted::Bool, Wanted::TextOrNull];
        let mut made = wanted
            .into_iter()
            .map(|wanted| scope.compile(source, wanted));
        let expression = made.find_map(Result::ok);
        let expression = expression.unwrap_or_else(|| panic!("{source} does not compile"));
        scope.evaluate(&expression, &Seen::of(values), &mut 10_000_000)
    }

    #[test]
    fn values_need_no_schema() {
        let scope = Scope::new(&["object", "oldObject"]);
        let object = json!({
            "metadata": { "name": "a", "labels": { "a.b/c": "x" } },
            "spec": { "replicas": 3, "share": 0.5, "ports": [{ "port": 80 }], "none": null },
        });
        let values = [&object, &Value::Null];
        for holds in [
            "object.spec.replicas == 3 && object.spec.share < 1.0",
            "object.metadata.labels['a.b/c'] == 'x' && !has(object.metadata.annotations)",
            "object.spec.ports.all(p, p.port > 0) && oldObject == null",
            "type(object.spec.replicas) == int && type(object.spec.share) == double",
            "object.spec.none == null && object.?spec.?missing.orValue('d') == 'd'",
            "object.metadata.name in ['a', 'b'] && object.metadata == object.metadata",
        ] {
            assert_eq!(
                given(&scope, holds, &values),
                Ok(Given::Bool(true)),
                "{holds}"
            );
        }
        let missing = given(&scope, "object.spec.missing == 1", &values);
        assert_eq!(
            missing,
            Err(Unevaluated::Failed("no such key: missing".to_owned()))
        );
    }

    #[test]
    fn definitions_are_evaluated_where_they_are_used() {
        let mut scope = Scope::new(&["object"]);
        scope
            .define("names", "object.items.map(i, i.name)")
            .unwrap();
        scope.define("broken", "object.missing").unwrap();
        scope.define("first", "variables.names[0]").unwrap();
        let object = json!({ "items": [{ "name": "a" }, { "name": "b" }] });
        for holds in [
            "variables.first == 'a' && size(variables.names) == 2",
            "object.items.all(i, i.name in variables.names)",
            "true || variables.broken == 1",
        ] {
            assert_eq!(
                given(&scope, holds, &[&object]),
                Ok(Given::Bool(true)),
                "{holds}"
            );
        }
        assert!(given(&scope, "variables.broken == 1", &[&object]).is_err());
        assert!(scope.compile("variables.later == 1", Wanted::Bool).is_err());
    }

    #[test]
    fn definitions_nest_only_so_deep() {
        let mut scope = Scope::new(&["object"]);
        scope.define("v0", "1").unwrap();
        let mut more = (1..200).map(|at| {
            let source = format!("variables.v{} + 1", at - 1);
            scope.define(&format!("v{at}"), &source)
        });
        let error = more.find_map(Result::err).unwrap();
        assert!(error.contains("nests deeper than 100 levels"), "{error}");
    }

    #[test]
    fn the_type_of_a_result_is_checked() {
        let scope = Scope::new(&["object"]);
        let error = scope.compile("object.x", Wanted::Bool).unwrap_err();
        assert_eq!(error, "must evaluate to bool but got dyn");
        let error = scope.compile("params.x == 1", Wanted::Bool).unwrap_err();
        assert!(
            error.contains("undeclared reference to 'params'"),
            "{error}"
        );
    }

    #[test]
    fn an_evaluation_stays_within_its_budget() {
        let scope = Scope::new(&["object"]);
        let object = json!({ "items": vec![1; 2000] });
        let source = "object.items.all(a, object.items.all(b, a == b))";
        let expression = scope.compile(source, Wanted::Bool).unwrap();
        let mut left = 10_000_000;
        let result = scope.evaluate(&expression, &Seen::of(&[&object]), &mut left);
        assert_eq!(result, Err(Unevaluated::OverBudget));
        assert_eq!(left, 9_000_000);
    }
}
