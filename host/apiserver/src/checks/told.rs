//! Collects what is wrong with one value, and the parts that rules share.
//!
//! Must not know definitions.

use std::net::IpAddr;

use serde_json::Value;

use crate::meta::check::{LABEL_RULE, SUBDOMAIN_RULE, is_label, is_subdomain};
use crate::status::{Cause, FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED, cause};

pub(super) const PORT: &str = "must be between 1 and 65535, inclusive";
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// How many faults of an object are told: a body has room for a million, each of which would be
/// told in some hundred bytes.
pub(super) const MOST: usize = 1000;

/// Says what is wrong with a value of one definition.
pub(super) type Rule = fn(&Value, &mut Told<'_>);

/// What is wrong with the value at a path.
pub(super) struct Told<'c> {
    pub path: &'c str,
    pub causes: &'c mut Vec<Cause>,
}

impl Told<'_> {
    fn field(&self, name: &str) -> String {
        match (self.path, name) {
            (path, "") => path.to_owned(),
            ("", name) => name.to_owned(),
            (path, name) if name.starts_with('[') => format!("{path}{name}"),
            (path, name) => format!("{path}.{name}"),
        }
    }

    fn add(&mut self, reason: &'static str, name: &str, why: String) {
        if self.causes.len() < MOST {
            self.causes.push(cause(reason, self.field(name), why));
        }
    }

    pub fn invalid(&mut self, name: &str, value: &Value, why: &str) {
        self.add(INVALID, name, format!("Invalid value: {value}: {why}"));
    }

    /// Like [`Told::invalid`], of a value as Go shows it.
    pub fn shown(&mut self, name: &str, value: &str, why: &str) {
        self.add(INVALID, name, format!("Invalid value: {value}: {why}"));
    }

    pub fn required(&mut self, name: &str, why: &str) {
        let colon = if why.is_empty() { "" } else { ": " };
        self.add(REQUIRED, name, format!("Required value{colon}{why}"));
    }

    pub fn forbidden(&mut self, name: &str, why: &str) {
        self.add(FORBIDDEN, name, format!("Forbidden: {why}"));
    }

    pub fn duplicate(&mut self, name: &str, value: &Value) {
        let why = format!("Duplicate value: {value}");
        self.add("FieldValueDuplicate", name, why);
    }

    pub fn unsupported(&mut self, name: &str, value: &Value, known: &str) {
        let why = format!("Unsupported value: {value}: supported values: {known}");
        self.add(NOT_SUPPORTED, name, why);
    }

    /// Checks that these numbers are not below zero.
    pub fn not_negative(&mut self, value: &Value, names: &[&str]) {
        for name in names {
            if int(value, name).is_some_and(|number| number < 0) {
                self.invalid(name, &value[*name], NOT_NEGATIVE);
            }
        }
    }

    /// Checks a number or a percentage.
    pub fn portion(&mut self, value: &Value, name: &str) {
        let given = &value[name];
        if given.as_i64().is_some_and(|number| number < 0) {
            self.invalid(name, given, NOT_NEGATIVE);
        }
        let Some(text) = given.as_str() else {
            return;
        };
        let digits = text.strip_suffix('%').unwrap_or_default();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            self.invalid(name, given, PERCENT);
        }
    }

    /// Checks that a percentage is not above 100.
    pub fn at_most_all(&mut self, value: &Value, name: &str) {
        let digits = value[name].as_str().and_then(|text| text.strip_suffix('%'));
        let percent = digits.and_then(|digits| digits.parse::<u64>().ok());
        if percent.is_some_and(|percent| percent > 100) {
            self.invalid(name, &value[name], "must not be greater than 100%");
        }
    }

    /// Checks the number or the name of a port.
    pub fn port(&mut self, value: &Value, name: &str) {
        let given = &value[name];
        if given.as_i64().is_some_and(|number| !is_port(number)) {
            self.invalid(name, given, PORT);
        }
        if let Some(text) = given.as_str() {
            self.port_name(name, text);
        }
    }

    pub fn port_name(&mut self, name: &str, text: &str) {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        for (is_wrong, why) in [
            (text.len() > 15, "must be no more than 15 characters"),
            (
                text.is_empty() || !text.bytes().all(allowed),
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            ),
            (
                !text.bytes().any(|byte| byte.is_ascii_lowercase()),
                "must contain at least one letter (a-z)",
            ),
            (text.contains("--"), "must not contain consecutive hyphens"),
            (
                text.starts_with('-') || text.ends_with('-'),
                "must not begin or end with a hyphen",
            ),
        ] {
            if is_wrong {
                self.invalid(name, &text.into(), why);
            }
        }
    }

    /// Checks a text that is a subdomain, if there is one.
    pub fn subdomain(&mut self, value: &Value, name: &str) {
        let text = text(value, name);
        if !text.is_empty() && !is_subdomain(text) {
            self.invalid(name, &value[name], SUBDOMAIN_RULE);
        }
    }

    /// Checks a text that is a label of DNS, if there is one.
    pub fn label(&mut self, value: &Value, name: &str) {
        let text = text(value, name);
        if text.is_empty() || is_label(text) {
            return;
        }
        if text.len() > 63 {
            self.invalid(name, &value[name], "must be no more than 63 characters");
        }
        let plain = text.get(..1).is_some_and(is_label) && !text.ends_with('-');
        let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !(plain && text.chars().all(inside)) {
            let is_dotted = is_subdomain(text);
            let why = if is_dotted {
                "must not contain dots"
            } else {
                LABEL_RULE
            };
            self.invalid(name, &value[name], why);
        }
    }

    pub fn ip(&mut self, name: &str, value: &Value) {
        if value
            .as_str()
            .is_some_and(|text| text.parse::<IpAddr>().is_err())
        {
            self.invalid(name, value, IP);
        }
    }

    pub fn cidr(&mut self, name: &str, value: &Value) {
        if value.as_str().is_some_and(|text| !is_cidr(text)) {
            self.invalid(name, value, CIDR);
        }
    }
}

pub(super) fn is_port(number: i64) -> bool {
    (1..=65_535).contains(&number)
}

fn is_cidr(text: &str) -> bool {
    let parts = text
        .split_once('/')
        .map(|(ip, bits)| (ip.parse(), bits.parse::<u8>()));
    match parts {
        Some((Ok(IpAddr::V4(_)), Ok(bits))) => bits <= 32,
        Some((Ok(IpAddr::V6(_)), Ok(bits))) => bits <= 128,
        _ => false,
    }
}

/// Returns a text; empty if there is none.
pub(super) fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn int(of: &Value, name: &str) -> Option<i64> {
    of.get(name)?.as_i64()
}

/// Returns whether a field has a value.
pub(super) fn has(of: &Value, name: &str) -> bool {
    of.get(name).is_some_and(|value| !value.is_null())
}

/// Returns whether a field is a text that is empty. (A missing one is told by the schema.)
pub(super) fn is_blank(of: &Value, name: &str) -> bool {
    of.get(name).is_some_and(|value| value == "")
}

/// Returns the items of a list, with their places.
pub(super) fn list<'a>(
    of: &'a Value,
    name: &str,
) -> impl Iterator<Item = (usize, &'a Value)> + use<'a> {
    let items = of.get(name).and_then(Value::as_array);
    items.into_iter().flatten().enumerate()
}

/// Returns those of these fields that have a value.
pub(super) fn given<'n>(of: &Value, names: &[&'n str]) -> Vec<&'n str> {
    let all = names.iter().copied();
    all.filter(|name| has(of, name)).collect()
}
