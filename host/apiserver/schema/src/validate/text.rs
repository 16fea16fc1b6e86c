//! The texts of validation errors, in the form of k8s.io/apimachinery `util/validation/field` and
//! kube-openapi `validation/errors`. Must not know what is validated.

use serde_json::{Number, Value};

use crate::error::{Fault, Reason};

fn fault(reason: Reason, message: String, path: &str) -> Fault {
    // A fault of the whole object names the field "<nil>", which is how Go prints a nil path.
    let field = if path.is_empty() { "<nil>" } else { path };
    Fault {
        reason,
        message,
        field: field.to_owned(),
    }
}

/// Formats a number like Go: a whole float without a fraction.
pub(super) fn number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => format!("{float}"),
        _ => number.to_string(),
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::Number(one) => number(one),
        other => other.to_string(),
    }
}

/// Returns the fault `Invalid value: 3: spec.size in body should be less than or equal to 2`.
pub(super) fn invalid(path: &str, bad: &Value, detail: &str) -> Fault {
    fault(
        Reason::Invalid,
        format!("Invalid value: {}: {path} in body {detail}", value(bad)),
        path,
    )
}

/// Returns a fault without a value or field, for example of `anyOf`: only its text says where.
pub(super) fn invalid_plain(detail: String) -> Fault {
    fault(
        Reason::Invalid,
        format!("Invalid value: \"\": {detail}"),
        "",
    )
}

/// Returns the fault `Invalid value: "string": spec.memory in body must be of type integer:
/// "string"`.
pub(super) fn type_invalid(path: &str, wanted: &str, actual: &str) -> Fault {
    let actual = Value::from(actual);
    let message =
        format!("Invalid value: {actual}: {path} in body must be of type {wanted}: {actual}");
    fault(Reason::TypeInvalid, message, path)
}

/// Returns the fault `Unsupported value: "x": supported values: "a", "b"`.
pub(super) fn not_supported(path: &str, bad: &Value, allowed: &[Value]) -> Fault {
    let allowed: Vec<String> = allowed
        .iter()
        .map(|one| match one {
            Value::String(_) => one.to_string(),
            other => Value::from(other.to_string()).to_string(),
        })
        .collect();
    let message = format!(
        "Unsupported value: {}: supported values: {}",
        value(bad),
        allowed.join(", ")
    );
    fault(Reason::NotSupported, message, path)
}

pub(super) fn required(path: &str) -> Fault {
    fault(Reason::Required, "Required value".to_owned(), path)
}

pub(super) fn duplicate(path: &str, bad: &Value) -> Fault {
    fault(
        Reason::Duplicate,
        format!("Duplicate value: {}", value(bad)),
        path,
    )
}

pub(super) fn bare(path: &str, bad: &Value, detail: &str) -> Fault {
    fault(
        Reason::Invalid,
        format!("Invalid value: {}: {detail}", value(bad)),
        path,
    )
}

pub(super) fn too_long(path: &str, max: u64) -> Fault {
    let unit = if max == 1 { "byte" } else { "bytes" };
    fault(
        Reason::TooLong,
        format!("Too long: may not be more than {max} {unit}"),
        path,
    )
}

pub(super) fn too_many(path: &str, actual: u64, max: u64) -> Fault {
    let unit = if max == 1 { "item" } else { "items" };
    fault(
        Reason::TooMany,
        format!("Too many: {actual}: must have at most {max} {unit}"),
        path,
    )
}
