//! String formats: which are known, and whether a string matches.
//!
//! Follows k8s.io/kube-openapi `pkg/validation/strfmt`, but does not check uncommon formats (credit
//! cards, ISBNs). Must not know schemas.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use crate::node::Type;

/// The formats that strings of a CustomResourceDefinition may have, without dashes; others are
/// ignored.
const STRINGS: [&str; 24] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
];

/// Returns whether values of this type are checked against this format.
pub(crate) fn is_known(kind: Option<Type>, format: &str) -> bool {
    match kind {
        None | Some(Type::String) => {
            matches!(format, "k8s-short-name" | "k8s-long-name")
                || STRINGS.contains(&format.replace('-', "").as_str())
        }
        Some(Type::Integer) => matches!(format, "int32" | "int64"),
        Some(Type::Number) => matches!(format, "float" | "double"),
        Some(Type::Boolean | Type::Array | Type::Object) => false,
    }
}

/// Returns whether `text` matches the string format `format`.
pub(crate) fn matches(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "datetime" => is_date_time(text),
        "date" => is_date(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "uuid" => UUID.is_match(text),
        "uuid3" => UUID.is_match(text) && version(text) == Some('3'),
        "uuid4" => UUID.is_match(text) && version(text) == Some('4'),
        "uuid5" => UUID.is_match(text) && version(text) == Some('5'),
        "uri" => URI.is_match(text),
        "email" => EMAIL.is_match(text),
        "hostname" => text.len() <= 255 && HOSTNAME.is_match(text),
        "mac" => MAC.is_match(text),
        "byte" => BASE64.is_match(text) && text.len().is_multiple_of(4),
        "duration" => DURATION.is_match(text),
        "hexcolor" => HEX_COLOR.is_match(text),
        "k8sshortname" => text.len() <= 63 && LABEL.is_match(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(|part| LABEL.is_match(part)),
        _ => true,
    }
}

/// Compiles a pattern of this file; a test compiles each of them.
fn fixed(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern}: {error}"))
}

static UUID: LazyLock<Regex> = LazyLock::new(|| {
    fixed(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
});
static URI: LazyLock<Regex> =
    LazyLock::new(|| fixed(r"^([A-Za-z][A-Za-z0-9+.-]*:[^\s]*|/[^\s]*)$"));
static EMAIL: LazyLock<Regex> = LazyLock::new(|| fixed(r"^[^@\s]+@[^@\s]+$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        r"^([a-zA-Z0-9\p{S}\p{L}](-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?|([a-zA-Z0-9\p{S}\p{L}]([a-zA-Z0-9\p{S}\p{L}-]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.)+[a-zA-Z\p{L}]{2,63})$",
    )
});
static MAC: LazyLock<Regex> =
    LazyLock::new(|| fixed(r"(?i)^[0-9a-f]{2}([:-][0-9a-f]{2}){5}([:-][0-9a-f]{2}){0,2}$"));
static BASE64: LazyLock<Regex> = LazyLock::new(|| fixed(r"^[A-Za-z0-9+/]*={0,2}$"));
static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    fixed(
        r"(?i)^[+-]?(0|([0-9]*\.?[0-9]+\s*(ns|nanos?|us|µs|μs|micros?|ms|millis?|s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?|w|weeks?)\s*)+)$",
    )
});
static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| fixed(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static LABEL: LazyLock<Regex> = LazyLock::new(|| fixed(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    fixed(r"^([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})$")
});

fn version(uuid: &str) -> Option<char> {
    uuid.chars().filter(|c| *c != '-').nth(12)
}

fn is_date_time(text: &str) -> bool {
    text.split_once(['T', 't'])
        .is_some_and(|(date, time)| is_date(date) && TIME.is_match(time))
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let max = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= max)
}
