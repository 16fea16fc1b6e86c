//! Quantities and semantic versions.
//!
//! A quantity is a number of billionths: the smallest that Kubernetes keeps. Must not know texts
//! other than theirs.

use std::cmp::Ordering;

use semver::Version;
use vmhost_schema::billionths;

use super::text::one;
use crate::value::{Failure, Function, Opaque, Val};

const BILLION: i128 = 1_000_000_000;

pub(super) fn find(name: &str) -> Option<Function> {
    let function: Function = match name {
        "quantity" => |args| {
            let text = one(args)?;
            let wrong = || {
                Failure::text(
                    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
                )
            };
            Ok(Val::opaque(Opaque::Quantity(
                billionths(text).ok_or_else(wrong)?,
            )))
        },
        "isQuantity" => |args| Ok(Val::Bool(billionths(one(args)?).is_some())),
        "sign" => |args| Ok(Val::Int(nanos(args)?.cmp(&0) as i64)),
        "isInteger" => |args| Ok(Val::Bool(integer(nanos(args)?).is_some())),
        "asInteger" => |args| {
            let wrong = || Failure::text("cannot convert value to integer");
            integer(nanos(args)?).map(Val::Int).ok_or_else(wrong)
        },
        "asApproximateFloat" => as_float,
        "add" => |args| sum(args, 1),
        "sub" => |args| sum(args, -1),
        "isGreaterThan" => |args| compare(args).map(|order| Val::Bool(order.is_gt())),
        "isLessThan" => |args| compare(args).map(|order| Val::Bool(order.is_lt())),
        "compareTo" => |args| compare(args).map(|order| Val::Int(order as i64)),
        "semver" => |args| {
            let wrong = || Failure::text("Invalid Semantic Version");
            let version = version(args)?.ok_or_else(wrong)?;
            Ok(Val::opaque(Opaque::Semver(version)))
        },
        "isSemver" => |args| Ok(Val::Bool(version(args)?.is_some())),
        "major" => |args| number(args, |version| version.major),
        "minor" => |args| number(args, |version| version.minor),
        "patch" => |args| number(args, |version| version.patch),
        _ => return None,
    };
    Some(function)
}

fn nanos(args: &[Val<'_>]) -> Result<i128, Failure> {
    match args {
        [Val::Opaque(value), ..] => match **value {
            Opaque::Quantity(nanos) => Ok(nanos),
            _ => Err(Failure::NoOverload),
        },
        _ => Err(Failure::NoOverload),
    }
}

fn integer(nanos: i128) -> Option<i64> {
    (nanos % BILLION == 0).then(|| i64::try_from(nanos / BILLION).ok())?
}

#[allow(clippy::cast_precision_loss, reason = "a double is not exact")]
fn as_float<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    Ok(Val::Double(nanos(args)? as f64 / BILLION as f64))
}

fn sum<'a>(args: &[Val<'a>], sign: i128) -> Result<Val<'a>, Failure> {
    let other = match args {
        [_, Val::Int(number)] => i128::from(*number) * BILLION,
        [_, rest @ ..] => nanos(rest)?,
        [] => return Err(Failure::NoOverload),
    };
    let total = nanos(args)?.checked_add(sign * other);
    let total = total.ok_or_else(|| Failure::text("quantity overflow"))?;
    Ok(Val::opaque(Opaque::Quantity(total)))
}

fn compare(args: &[Val<'_>]) -> Result<Ordering, Failure> {
    let [Val::Opaque(a), Val::Opaque(b)] = args else {
        return Err(Failure::NoOverload);
    };
    match (&**a, &**b) {
        (Opaque::Quantity(a), Opaque::Quantity(b)) => Ok(a.cmp(b)),
        (Opaque::Semver(a), Opaque::Semver(b)) => Ok(a.cmp_precedence(b)),
        _ => Err(Failure::NoOverload),
    }
}

/// Parses a version. With `true` as second argument, a `v` before it and missing parts are allowed.
fn version(args: &[Val<'_>]) -> Result<Option<Version>, Failure> {
    let text = one(args)?;
    let lenient = match args {
        [_] => false,
        [_, Val::Bool(lenient)] => *lenient,
        _ => return Err(Failure::NoOverload),
    };
    if !lenient {
        return Ok(Version::parse(text).ok());
    }
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut parts: Vec<&str> = numbers
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            trimmed => trimmed,
        })
        .collect();
    while parts.len() < 3 && rest.is_empty() {
        parts.push("0");
    }
    Ok(Version::parse(&format!("{}{rest}", parts.join("."))).ok())
}

fn number<'a>(args: &[Val<'a>], of: impl Fn(&Version) -> u64) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Opaque(value)] => match &**value {
            Opaque::Semver(version) => i64::try_from(of(version))
                .map(Val::Int)
                .map_err(|_| Failure::text("integer overflow")),
            _ => Err(Failure::NoOverload),
        },
        _ => Err(Failure::NoOverload),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        for (text, nanos) in [
            ("1", Some(BILLION)),
            ("100m", Some(BILLION / 10)),
            ("1.5Gi", Some(1_610_612_736 * BILLION)),
            ("-2k", Some(-2000 * BILLION)),
            ("1e3", Some(1000 * BILLION)),
            ("1E", Some(1_000_000_000_000_000_000 * BILLION)),
            ("0.1n", Some(1)),
            ("", None),
            ("1.2.3", None),
            ("10Mo", None),
        ] {
            assert_eq!(billionths(text), nanos, "{text}");
        }
    }
}
