//! One rule of a schema.
//!
//! Owns the form of a rule: what its texts must be, and its checked expressions. Must not know
//! where in an object it applies.

use std::sync::Arc;

use serde_json::{Value, json};
use vmhost_schema::{Fault, Reason};

use crate::check::{Checked, check};
use crate::cost;
use crate::decl::{Decl, flag, text};
use crate::path;
use crate::types::Type;

/// A rule.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The expression as it was written.
    pub source: String,
    pub message: String,
    pub reason: Option<String>,
    /// The path of the field that a failure is reported for, below the value; empty for the value.
    pub field: String,
    pub optional_old: bool,
    /// The expression, or why it cannot be used.
    pub condition: Result<Checked, String>,
    /// The expression of the message, and how it was written.
    pub message_expression: Option<(Checked, String)>,
}

/// The costs of a rule and of its message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    pub rule: u64,
    pub message: Option<u64>,
}

/// Returns a fault.
pub(crate) fn fault(reason: Reason, field: String, message: String) -> Fault {
    Fault {
        reason,
        message,
        field,
    }
}

fn invalid(field: String, value: impl std::fmt::Display, detail: &str) -> Fault {
    let message = format!("Invalid value: {value}: {detail}");
    fault(Reason::Invalid, field, message)
}

fn required(field: String, detail: &str) -> Fault {
    fault(Reason::Required, field, format!("Required value: {detail}"))
}

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Returns what is wrong with the texts of a rule at `at` in a schema.
pub(crate) fn faults(rule: &Value, schema: &Value, at: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    let field = |name: &str| format!("{at}.{name}");
    let given = |name: &str| text(rule, name);
    let broken = |text: &str| text.contains(['\n', '\r']);
    let (source, message) = (given("rule").trim(), given("message").trim());
    if source.is_empty() {
        faults.push(required(field("rule"), "rule is not specified"));
    } else if message.is_empty() && !given("message").is_empty() {
        let detail = "must be non-empty if specified";
        faults.push(invalid(field("message"), json!(given("message")), detail));
    } else if broken(message) {
        let detail = "must not contain line breaks";
        faults.push(invalid(field("message"), json!(given("message")), detail));
    } else if broken(source) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        faults.push(required(field("message"), detail));
    }
    let expression = given("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        faults.push(required(field("messageExpression"), detail));
    }
    if let Some(reason) = rule.get("reason").and_then(Value::as_str)
        && !REASONS.contains(&reason)
    {
        let known = REASONS.map(|known| format!("{known:?}")).join(", ");
        let message = format!("Unsupported value: {reason:?}: supported values: {known}");
        faults.push(fault(Reason::NotSupported, field("reason"), message));
    }
    let to = given("fieldPath");
    if to.is_empty() {
        return faults;
    }
    for (wrong, detail) in [
        (to.trim().is_empty(), "must be non-empty if specified"),
        (broken(to), "must not contain line breaks"),
        (
            path::resolve(to, schema, true).is_err(),
            "must be a valid path",
        ),
    ] {
        if wrong {
            faults.push(invalid(field("fieldPath"), json!(to), detail));
        }
    }
    faults
}

/// Checks a rule whose texts are right. `schema` is that of its value.
pub(crate) fn compile(
    rule: &Value,
    schema: &Value,
    decl: &Arc<Decl>,
    at: &str,
) -> (Rule, Costs, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut costs = Costs::default();
    let this = Type::of(decl);
    let optional_old = flag(rule, "optionalOldSelf");
    let old = match optional_old {
        true => Type::Optional(Box::new(this.clone())),
        false => this.clone(),
    };
    let source = text(rule, "rule");
    let condition = check(source, &this, &old)
        .map_err(|error| format!("compilation failed: {error}"))
        .and_then(|checked| match checked.code.kind {
            Type::Bool => Ok(checked),
            _ => Err("cel expression must evaluate to a bool".to_owned()),
        });
    let mut message_expression = None;
    match &condition {
        Err(error) => faults.push(invalid(format!("{at}.rule"), shown(rule), error)),
        Ok(checked) => {
            costs.rule = cost::most(&checked.code, decl);
            let source = text(rule, "messageExpression");
            if !source.is_empty() {
                match message(source, &this, &old) {
                    Ok(checked) => {
                        costs.message = Some(cost::most(&checked.code, decl));
                        message_expression = Some((checked, source.to_owned()));
                    }
                    Err(error) => {
                        let field = format!("{at}.messageExpression");
                        faults.push(invalid(field, shown(rule), &error));
                    }
                }
            }
            if let Some(set) = rule.get("optionalOldSelf")
                && !checked.uses_old
            {
                let detail = "may not be set if oldSelf is not used in rule";
                faults.push(invalid(format!("{at}.optionalOldSelf"), set, detail));
            }
        }
    }
    let field = path::resolve(text(rule, "fieldPath"), schema, true);
    let rule = Rule {
        source: source.trim().to_owned(),
        message: text(rule, "message").trim().to_owned(),
        reason: rule
            .get("reason")
            .and_then(Value::as_str)
            .map(str::to_owned),
        field: field.map(|(shown, _)| shown).unwrap_or_default(),
        optional_old,
        condition,
        message_expression,
    };
    (rule, costs, faults)
}

fn message(source: &str, this: &Type, old: &Type) -> Result<Checked, String> {
    let checked = check(source, this, old)
        .map_err(|error| format!("messageExpression compilation failed: {error}"))?;
    match checked.code.kind {
        Type::String => Ok(checked),
        _ => Err("messageExpression must evaluate to a string".to_owned()),
    }
}

/// Returns a rule as kube-apiserver shows it in a refusal.
fn shown(rule: &Value) -> String {
    let quoted = |name: &str| json!(text(rule, name));
    let value = |name: &str| rule.get(name).cloned().unwrap_or_default();
    let shown = format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        quoted("rule"),
        quoted("message"),
        quoted("messageExpression"),
        value("reason"),
        quoted("fieldPath"),
        value("optionalOldSelf"),
    );
    // Go escapes these for browsers.
    shown
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

impl Rule {
    /// Returns how a refusal names the rule.
    pub fn name(&self) -> &str {
        match self.message.as_str() {
            "" => &self.source,
            message => message,
        }
    }

    /// Returns the message of a failure.
    pub fn text(&self) -> String {
        match self.message.as_str() {
            "" => format!("failed rule: {}", self.source),
            message => message.to_owned(),
        }
    }
}
