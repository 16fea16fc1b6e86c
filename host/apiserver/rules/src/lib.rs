//! The validation rules of CustomResourceDefinitions (`x-kubernetes-validations`): expressions in
//! CEL over a value and its older value; and the expressions of admission ([`Scope`]), those that
//! make objects and patches among them.
//!
//! Owns what kube-apiserver makes of them: the types that a schema gives to expressions, the
//! largest cost of a rule, which limits a schema, the evaluation within a budget, and the words of
//! refusals. Must not know storage, HTTP, or what else is checked of an object.
//!
//! ```text
//! schema -> decl (what expressions see) --+
//! rule's text -> check (names, types) -> code -> cost (limits)    when a definition is written
//!                                          +---> eval (budget)    when an object is written
//! ```
//!
//! The crate `cel` parses. Checking, costs and evaluation are here, because refusals of rules that
//! are wrong or too expensive are most of what authors meet, and the crate has neither types nor
//! costs.
//!
//! ```
//! use serde_json::json;
//! use vmhost_rules::Rules;
//!
//! let schema = json!({
//!     "type": "object",
//!     "properties": { "spec": {
//!         "type": "object",
//!         "properties": { "min": { "type": "integer" }, "max": { "type": "integer" } },
//!         "x-kubernetes-validations": [{ "rule": "self.min <= self.max" }],
//!     } },
//! });
//! let rules = Rules::compile(&schema, "").expect("the rule is right");
//! let verdict = rules.check(&json!({ "spec": { "min": 2, "max": 1 } }), None);
//! assert_eq!(
//!     verdict.faults[0].to_string(),
//!     "spec: Invalid value: failed rule: self.min <= self.max"
//! );
//! ```
//!
//! # Differences from kube-apiserver
//! Expressions of admission see their objects without types, so that an unknown field is found when
//! they are evaluated. Time zones by name (`'America/New_York'`) are those of the machine: a rule
//! that uses an unknown one is refused when it is written; one whose name is computed, when the
//! rule is evaluated. The crate's parser words syntax errors, and limits the nesting of
//! expressions, differently.

mod access;
mod check;
mod clock;
mod code;
mod compile;
mod cost;
mod decl;
mod defaults;
mod eval;
mod functions;
mod named;
mod names;
mod open;
mod path;
mod price;
mod room;
mod rule;
mod signatures;
#[cfg(test)]
mod tests;
mod types;
mod uri;
mod validate;
mod value;

use serde_json::Value;
use vmhost_schema::Fault;

pub use access::{Authorizer, Check, Decision};
pub use open::{Expression, Given, Scope, Seen, Unevaluated, Wanted};
pub use path::resolve;
pub use validate::Verdict;

/// The rules of a schema.
#[derive(Debug, Default)]
pub struct Rules {
    root: Option<compile::Place>,
}

impl Rules {
    /// Checks the rules of an `openAPIV3Schema`, which must be structural, and its defaults by
    /// them. `at` is the path of the schema, with which the fields of faults begin.
    pub fn compile(openapi_v3_schema: &Value, at: &str) -> Result<Rules, Vec<Fault>> {
        let root = compile::compile(openapi_v3_schema, at)?;
        let faults = match &root {
            Some(root) => defaults::faults(openapi_v3_schema, root, at),
            None => Vec::new(),
        };
        match faults.is_empty() {
            true => Ok(Rules { root }),
            false => Err(faults),
        }
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Checks an object, which must be valid otherwise. `old` is the object that it replaces.
    pub fn check(&self, object: &Value, old: Option<&Value>) -> Verdict {
        match &self.root {
            Some(root) => validate::validate(root, object, old),
            None => Verdict::default(),
        }
    }
}
