//! Named formats: `format.dns1123Label().validate('my-name')`.
//!
//! Owns which there are, what they refuse and in which words. Follows k8s.io/apiserver
//! `pkg/cel/library/format.go`. Must not know expressions.

use crate::clock;
use crate::names;
use crate::uri::Uri;

/// The type of named formats.
pub(crate) const FORMAT: &str = "kubernetes.NamedFormat";

/// A named format.
pub(crate) struct Named {
    /// Its name in expressions.
    pub name: &'static str,
    /// The size of its pattern, by which a check is paid.
    pub size: u64,
    /// Returns what is wrong with a text.
    pub faults: fn(&str) -> Vec<String>,
}

/// Returns a named format; `None` if there is none with this name.
pub(crate) fn find(name: &str) -> Option<&'static Named> {
    NAMED.iter().find(|one| one.name == name)
}

static NAMED: [Named; 13] = [
    of("dns1123Label", 30, names::label),
    of("dns1123Subdomain", 60, names::subdomain),
    of("dns1035Label", 30, names::old_label),
    of("qualifiedName", 60, names::qualified),
    of("dns1123LabelPrefix", 30, |text| {
        names::label(&names::prefix(text))
    }),
    of("dns1123SubdomainPrefix", 60, |text| {
        names::subdomain(&names::prefix(text))
    }),
    of("dns1035LabelPrefix", 30, |text| {
        names::old_label(&names::prefix(text))
    }),
    of("labelValue", 40, names::value),
    of("uri", 1103, uri),
    of("uuid", 70, |text| {
        unless(is_uuid(text), "does not match the UUID format")
    }),
    of("byte", 84, |text| unless(is_base64(text), "invalid base64")),
    of("date", 71, |text| unless(is_date(text), "invalid date")),
    of("datetime", 71, |text| {
        unless(is_date_time(text), "invalid datetime")
    }),
];

const fn of(name: &'static str, size: u64, faults: fn(&str) -> Vec<String>) -> Named {
    Named { name, size, faults }
}

fn unless(right: bool, fault: &str) -> Vec<String> {
    match right {
        true => Vec::new(),
        false => vec![fault.to_owned()],
    }
}

fn uri(text: &str) -> Vec<String> {
    let why = match text {
        "" => "empty url",
        _ => "invalid URI for request",
    };
    unless(
        Uri::parse(text).is_some(),
        &format!("parse {text:?}: {why}"),
    )
}

fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else {
            return false;
        };
        if !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix('=').unwrap_or(text);
    let digits = digits.strip_suffix('=').unwrap_or(digits);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    !digits.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && clock::date(text).is_some()
}

/// Returns whether a text is a date, a `T` and a time with a zone.
fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((date, time)) = text.split_once('t') else {
        return false;
    };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return false;
    };
    let mut parts = clock.split(':');
    let mut at_most = |most: &str| {
        parts
            .next()
            .is_some_and(|part| is_two(part) && part <= most)
    };
    let is_clock = at_most("23") && at_most("59") && at_most("59");
    is_clock && (is_zone(rest) || after_fraction(rest).is_some_and(is_zone))
}

/// Returns what follows the fraction of a second. Kubernetes takes any character for its dot.
fn after_fraction(text: &str) -> Option<&str> {
    let mut letters = text.chars();
    letters.next()?;
    let digits = letters.as_str();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < digits.len()).then_some(rest)
}

fn is_zone(text: &str) -> bool {
    let offset = text.strip_prefix(['+', '-']);
    let offset = offset.and_then(|offset| offset.split_once(':'));
    text == "z" || offset.is_some_and(|(hours, minutes)| is_two(hours) && is_two(minutes))
}

fn is_two(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_take_and_refuse() {
        for (name, right, wrong, why) in [
            (
                "dns1123LabelPrefix",
                "my-",
                "-",
                "a lowercase RFC 1123 label",
            ),
            (
                "dns1123SubdomainPrefix",
                "my.a-",
                "A-b",
                "a lowercase RFC 1123 subdomain",
            ),
            ("dns1035LabelPrefix", "my-", "1b-", "a DNS-1035 label"),
            (
                "uri",
                "https://a.b/c",
                "no uri",
                "parse \"no uri\": invalid URI for request",
            ),
            ("uri", "/path", "", "parse \"\": empty url"),
            (
                "uuid",
                "123e4567-E89B-12d3-a456-426614174000",
                "123e4567-e89b-12d3-a456-42661417400",
                "does not match the UUID format",
            ),
            ("byte", "aGVsbG8=", "aGVsbG8", "invalid base64"),
            ("byte", "aGk=", "", "invalid base64"),
            ("date", "2024-02-29", "2023-02-29", "invalid date"),
            (
                "datetime",
                "2021-01-01T00:00:00Z",
                "2021-01-01T24:00:00Z",
                "invalid datetime",
            ),
            (
                "datetime",
                "2021-01-01t00:00:00.5+02:00",
                "2021-01-01",
                "invalid datetime",
            ),
        ] {
            let format = find(name).unwrap();
            assert_eq!((format.faults)(right), [""; 0], "{name} {right}");
            let faults = (format.faults)(wrong);
            assert!(
                faults.len() == 1 && faults[0].starts_with(why),
                "{name}: {faults:?}"
            );
        }
        assert!(find("dns1123label").is_none());
    }
}
