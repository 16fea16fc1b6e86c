//! Checks numbers: range, factor and bounds.
//!
//! Follows k8s.io/kube-openapi `pkg/validation/validate`. Must not know other values.

use serde_json::{Number, Value};

use super::text;
use crate::error::Fault;
use crate::format;
use crate::node::{Node, Type};

pub(super) fn check(number: &Number, node: &Node, path: &str, faults: &mut Vec<Fault>) {
    let rules = &node.rules;
    let value = Value::Number(number.clone());
    if node.kind == Some(Type::Integer) {
        let format = rules
            .format
            .as_deref()
            .filter(|format| format::is_known(node.kind, format));
        let range = if format == Some("int32") {
            f64::from(i32::MIN)..=f64::from(i32::MAX)
        } else {
            -9.3e18..=9.3e18
        };
        let float = number.as_f64().unwrap_or(f64::NAN);
        let above = number
            .as_u64()
            .is_some_and(|number| i64::try_from(number).is_err());
        if above || float.fract() != 0.0 || !range.contains(&float) {
            let kind = format.map_or("(default format)".to_owned(), |format| {
                format!("with format {format}")
            });
            faults.push(text::invalid_plain(format!(
                "Checked value must be of type integer {kind} in {path}"
            )));
        }
    }
    let bound = |bound: &Number| Bound::new(number, bound);
    if let Some(factor) = &rules.multiple_of {
        let factor = bound(factor);
        if factor.is_zero() {
            faults.push(text::bare(
                path,
                &Value::from(0),
                &format!("factor MultipleOf declared for {path} must be positive: 0"),
            ));
        } else if !factor.divides(number) {
            faults.push(text::invalid(
                path,
                &value,
                &format!("should be a multiple of {factor}"),
            ));
        }
    }
    if let Some(max) = &rules.maximum {
        let (max, exclusive) = (bound(max), rules.exclusive_maximum);
        let order = max.compare(number);
        if order.is_gt() || (exclusive && order.is_eq()) {
            let word = if exclusive {
                "less than"
            } else {
                "less than or equal to"
            };
            faults.push(text::invalid(
                path,
                &value,
                &format!("should be {word} {max}"),
            ));
        }
    }
    if let Some(min) = &rules.minimum {
        let (min, exclusive) = (bound(min), rules.exclusive_minimum);
        let order = min.compare(number);
        if order.is_lt() || (exclusive && order.is_eq()) {
            let word = if exclusive {
                "greater than"
            } else {
                "greater than or equal to"
            };
            faults.push(text::invalid(
                path,
                &value,
                &format!("should be {word} {min}"),
            ));
        }
    }
}

/// A bound in the type of the number to compare. An integer is compared with the integer part of
/// the bound, as by Go's `MaximumNativeType` and related functions.
enum Bound {
    Whole(i64),
    Float(f64),
}

impl Bound {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the whole part is what is meant"
    )]
    fn new(number: &Number, bound: &Number) -> Bound {
        let float = bound.as_f64().unwrap_or(f64::NAN);
        if number.is_f64() {
            Bound::Float(float)
        } else {
            Bound::Whole(bound.as_i64().unwrap_or(float as i64))
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self, Bound::Whole(0))
    }

    /// Compares the number with the bound.
    fn compare(&self, number: &Number) -> std::cmp::Ordering {
        match self {
            Bound::Whole(bound) => number.as_i64().unwrap_or(i64::MAX).cmp(bound),
            Bound::Float(bound) => number.as_f64().unwrap_or(f64::NAN).total_cmp(bound),
        }
    }

    fn divides(&self, number: &Number) -> bool {
        match self {
            Bound::Whole(factor) => number.as_i64().is_none_or(|number| number % factor == 0),
            Bound::Float(factor) => {
                let ratio = number.as_f64().unwrap_or(f64::NAN) / factor;
                (ratio - ratio.round()).abs() < 1e-9
            }
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::Whole(bound) => bound.fmt(f),
            Bound::Float(bound) => bound.fmt(f),
        }
    }
}
