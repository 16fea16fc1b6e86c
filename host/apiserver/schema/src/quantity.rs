//! Quantities: amounts of a resource with a suffix, such as `500m` and `1Gi`.
//!
//! Owns their canonical form, in which a server stores them (k8s.io/apimachinery
//! `pkg/api/resource`). Must not know which resources there are.

use serde_json::Value;

use crate::node::{Additional, Node};

/// The suffixes of powers of ten, from 10^-9.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// The suffixes of powers of 1024.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The exponent of the smallest amount: smaller ones are rounded up to it.
const SMALLEST: i32 = -9;
/// The same of the resources of a list, such as the limits of a container.
const SMALLEST_OF_LIST: i32 = -3;
/// More digits than these are kept as they are.
const DIGITS: usize = 20;

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Decimal,
    /// A suffix stands for a power of two.
    Binary(u32),
    /// `1e3`
    Exponent,
}

/// The parts of a quantity as it is written.
#[derive(Clone, Copy, Debug)]
struct Amount<'a> {
    /// 1 or -1.
    sign: i128,
    /// Digits; may be empty if `fraction` is not.
    whole: &'a str,
    /// The digits behind the point; may be empty.
    fraction: &'a str,
    /// What is behind the digits, unchecked.
    suffix: &'a str,
}

impl<'a> Amount<'a> {
    /// Takes a quantity apart; `None` if it does not begin with a number.
    fn parse(text: &'a str) -> Option<Amount<'a>> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, suffix) = rest.split_at(end.unwrap_or(rest.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        Some(Amount {
            sign,
            whole,
            fraction,
            suffix,
        })
    }
}

/// Returns a quantity (`100m`, `1.5Gi`, `2e3`) as a number of billionths, the smallest amount that
/// Kubernetes keeps; `None` for what is no quantity, or too large.
#[must_use]
pub fn billionths(text: &str) -> Option<i128> {
    let Amount {
        sign,
        whole,
        fraction,
        suffix,
    } = Amount::parse(text)?;
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let scale = u32::try_from(fraction.len()).ok()?;
    let binary = |power: u32| 1024_i128.checked_pow(power).map(|factor| (factor, 0));
    let decimal = |power: i32| Some((1_i128, power));
    let (factor, exponent) = match suffix {
        "n" => decimal(-9)?,
        "u" => decimal(-6)?,
        "m" => decimal(-3)?,
        "" => decimal(0)?,
        "k" => decimal(3)?,
        "M" => decimal(6)?,
        "G" => decimal(9)?,
        "T" => decimal(12)?,
        "P" => decimal(15)?,
        "E" => decimal(18)?,
        "Ki" => binary(1)?,
        "Mi" => binary(2)?,
        "Gi" => binary(3)?,
        "Ti" => binary(4)?,
        "Pi" => binary(5)?,
        "Ei" => binary(6)?,
        other => decimal(other.strip_prefix(['e', 'E'])?.parse().ok()?)?,
    };
    // Nine digits make billionths; a smaller part is rounded up.
    let power = exponent
        .checked_add(9)?
        .checked_sub(i32::try_from(scale).ok()?)?;
    let scaled = digits.checked_mul(factor)?;
    let nanos = match u32::try_from(power) {
        Ok(power) => scaled.checked_mul(10_i128.checked_pow(power)?)?,
        Err(_) => {
            let divisor = 10_i128.checked_pow(power.unsigned_abs())?;
            scaled / divisor + i128::from(scaled % divisor != 0)
        }
    };
    Some(sign * nanos)
}

/// Writes all quantities of an object in their canonical form. Returns whether all are quantities.
pub(crate) fn normalize(value: &mut Value, node: &Node) -> bool {
    normalize_to(value, node, SMALLEST)
}

fn normalize_to(value: &mut Value, node: &Node, smallest: i32) -> bool {
    if node.kind.is_none() && node.format() == Some("quantity") {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null => return true,
            _ => return false,
        };
        return match canonical(&text, smallest) {
            Some(canonical) => {
                *value = Value::String(canonical);
                true
            }
            None => false,
        };
    }
    let mut valid = true;
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(field) = node.properties.get(name) {
                    valid &= normalize(value, field);
                } else if let Additional::Schema(field) = &node.additional {
                    valid &= normalize_to(value, field, SMALLEST_OF_LIST);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for item in items {
                    valid &= normalize(item, node);
                }
            }
        }
        _ => {}
    }
    valid
}

/// Returns the canonical form of a quantity, rounded up to a power of ten; `None` if the text is no
/// quantity.
fn canonical(text: &str, smallest: i32) -> Option<String> {
    let text = text.trim();
    let Amount {
        sign,
        whole,
        fraction,
        suffix,
    } = Amount::parse(text)?;
    let digits = format!("{whole}{fraction}");
    let (form, exponent) = suffix_of(suffix)?;
    if digits.len() > DIGITS {
        return Some(text.to_owned());
    }
    let amount = digits.parse::<i128>().ok()? * sign;
    let exponent = exponent - i32::try_from(fraction.len()).ok()?;
    let amount = match form {
        Form::Binary(power) => amount << power,
        Form::Decimal | Form::Exponent => amount,
    };
    let (amount, exponent) = round(amount, exponent, smallest);
    let written = match form {
        Form::Binary(_) => binary(amount, exponent),
        form => decimal(amount, exponent, form),
    };
    Some(written.unwrap_or_else(|| text.to_owned()))
}

fn suffix_of(suffix: &str) -> Option<(Form, i32)> {
    let at = |all: &[&str]| all.iter().position(|one| *one == suffix);
    if let Some(at) = at(&DECIMAL) {
        return Some((Form::Decimal, 3 * i32::try_from(at).ok()? + SMALLEST));
    }
    if let Some(at) = at(&BINARY) {
        return Some((Form::Binary(10 * u32::try_from(at).ok()?), 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // Greater exponents than any amount has are not worth an overflow.
    Some((Form::Exponent, exponent)).filter(|_| (-30..=30).contains(&exponent))
}

/// Rounds an amount away from zero to the smallest one.
fn round(mut amount: i128, mut exponent: i32, smallest: i32) -> (i128, i32) {
    while exponent < smallest {
        let rest = amount % 10;
        amount = amount / 10 + rest.signum();
        exponent += 1;
    }
    (amount, exponent)
}

/// Writes an amount with a suffix for a power of two; `None` if it is too large for this module.
fn binary(amount: i128, exponent: i32) -> Option<String> {
    let unit = 10_i128.pow(exponent.unsigned_abs());
    if exponent > 0 || amount % unit != 0 {
        return decimal(amount, exponent, Form::Decimal);
    }
    let mut amount = amount / unit;
    if amount.abs() < 1024 {
        return decimal(amount, 0, Form::Decimal);
    }
    let mut suffixes = BINARY.iter();
    let mut suffix = suffixes.next();
    while amount % 1024 == 0 {
        let Some(next) = suffixes.next() else {
            break;
        };
        suffix = Some(next);
        amount /= 1024;
    }
    Some(format!("{amount}{}", suffix.copied().unwrap_or_default()))
}

/// Writes an amount with a suffix or an exponent; `None` if it is too large for this module.
fn decimal(mut amount: i128, mut exponent: i32, form: Form) -> Option<String> {
    if amount == 0 {
        return Some("0".to_owned());
    }
    while amount % 10 == 0 {
        amount /= 10;
        exponent += 1;
    }
    let largest = 18;
    while exponent % 3 != 0 || (exponent > largest && form == Form::Decimal) {
        amount = amount.checked_mul(10)?;
        exponent -= 1;
    }
    if form == Form::Exponent {
        return Some(match exponent {
            0 => amount.to_string(),
            exponent => format!("{amount}e{exponent}"),
        });
    }
    let at = usize::try_from((exponent - SMALLEST) / 3).unwrap_or_default();
    let suffix = DECIMAL.get(at).copied().unwrap_or_default();
    Some(format!("{amount}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_one_form() {
        for (text, expected) in [
            ("1", "1"),
            ("0", "0"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Ki", "1Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("100M", "100M"),
            ("0.1n", "1n"),
            ("1e3", "1e3"),
            ("12e1", "120"),
            ("-0.5", "-500m"),
            (".5", "500m"),
            ("1E", "1E"),
            ("2000.0", "2k"),
            // More than the digits of this module: it stays as it is.
            ("9999999999999999.9999Ei", "9999999999999999.9999Ei"),
        ] {
            assert_eq!(
                canonical(text, SMALLEST).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for text in ["", "x", "1x", "1.2.3", "1 Gi", "Gi", "1mm", "--1"] {
            assert_eq!(canonical(text, SMALLEST), None, "{text}");
        }
    }
    #[test]
    fn resources_of_a_list_are_rounded_up_to_thousandths() {
        for (text, expected) in [
            ("1n", "1m"),
            ("1500u", "2m"),
            ("0.5", "500m"),
            ("0.0001Ki", "103m"),
            ("-1n", "-1m"),
        ] {
            let found = canonical(text, SMALLEST_OF_LIST);
            assert_eq!(found.as_deref(), Some(expected), "{text}");
        }
    }
}
