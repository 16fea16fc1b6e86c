//! Durations and timestamps as texts.
//!
//! Owns Go's form of durations and RFC 3339. Must not know expressions.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};

const SECOND: i64 = 1_000_000_000;

/// Parses a duration as Go's `time.ParseDuration` does: `1h30m`, `-1.5s`. Returns nanoseconds.
pub(crate) fn duration(text: &str) -> Option<i64> {
    parse(text, |unit| {
        Some(match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            _ => return None,
        })
    })
}

/// Parses a duration in the form that the format `duration` of a schema allows, which has more
/// units: `2 days`, `1 week`.
pub(crate) fn long_duration(text: &str) -> Option<i64> {
    if let Some(short) = duration(text) {
        return Some(short);
    }
    parse(&text.to_lowercase().replace(' ', ""), |unit| {
        Some(match unit {
            "ns" | "nano" | "nanos" => 1,
            "us" | "µs" | "μs" | "micro" | "micros" => 1_000,
            "ms" | "milli" | "millis" => 1_000_000,
            "s" | "sec" | "second" | "seconds" => SECOND,
            "m" | "min" | "minute" | "minutes" => 60 * SECOND,
            "h" | "hr" | "hour" | "hours" => 3600 * SECOND,
            "d" | "day" | "days" => 24 * 3600 * SECOND,
            "w" | "week" | "weeks" => 7 * 24 * 3600 * SECOND,
            _ => return None,
        })
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a duration with a fraction is rounded, and its size is checked"
)]
fn parse(text: &str, unit: impl Fn(&str) -> Option<i64>) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(digits?);
        let letters = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (name, after) = after.split_at(letters.unwrap_or(after.len()));
        let size = unit(name)?;
        let part = match number.parse::<i64>() {
            Ok(whole) => whole.checked_mul(size)?,
            Err(_) => {
                let float = number.parse::<f64>().ok()? * size as f64;
                (float.abs() < 9.2e18).then_some(float as i64)?
            }
        };
        total = total.checked_add(part)?;
        rest = after;
    }
    Some(sign * total)
}

/// Formats nanoseconds as CEL does: seconds with a fraction, `90s`, `1.5s`.
pub(crate) fn duration_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, rest) = (
        nanos.unsigned_abs() / 1_000_000_000,
        nanos.unsigned_abs() % 1_000_000_000,
    );
    if rest == 0 {
        return format!("{sign}{whole}s");
    }
    let fraction = format!("{rest:09}");
    format!("{sign}{whole}.{}s", fraction.trim_end_matches('0'))
}

/// Parses an RFC 3339 timestamp.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Parses a date, as its first moment in UTC.
pub(crate) fn date(text: &str) -> Option<Timestamp> {
    let date: Date = text.parse().ok()?;
    let zoned = date.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp())
}

/// Returns a time zone: `UTC`, an offset such as `-08:00`, or the zone with this name in the
/// machine's database. Capital letters count, as in Go.
pub(crate) fn zone(text: &str) -> Option<TimeZone> {
    if text.is_empty() || text == "UTC" {
        return Some(TimeZone::UTC);
    }
    if !text.contains(':') {
        let zone = TimeZone::get(text).ok()?;
        return (zone.iana_name() == Some(text)).then_some(zone);
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (hours.parse::<i32>().ok()?, minutes.parse::<i32>().ok()?);
    let seconds = sign * (hours.checked_mul(60)?.checked_add(minutes)?).checked_mul(60)?;
    Offset::from_seconds(seconds).ok().map(Offset::to_time_zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_in_go() {
        for (text, nanos) in [
            ("1h30m", Some(5400 * SECOND)),
            ("-1.5s", Some(-SECOND * 3 / 2)),
            ("0", Some(0)),
            ("300ms", Some(300_000_000)),
            ("1", None),
            ("1d", None),
            ("", None),
        ] {
            assert_eq!(duration(text), nanos, "{text}");
        }
        assert_eq!(long_duration("2 days"), Some(2 * 24 * 3600 * SECOND));
        assert_eq!(duration_text(5400 * SECOND), "5400s");
        assert_eq!(duration_text(-1_500_000_000), "-1.5s");
    }

    #[test]
    fn zones_are_utc_or_an_offset_or_have_a_name() {
        let hour = |zone: &str| {
            let at = timestamp("2020-01-01T10:00:00Z").unwrap();
            at.to_zoned(super::zone(zone).unwrap()).hour()
        };
        assert_eq!((hour("UTC"), hour("-08:00"), hour("+02:30")), (10, 2, 12));
        for unknown in ["Mars/Phobos", "utc", "Etc/Unknown", "/etc/passwd", "../UTC"] {
            assert!(zone(unknown).is_none(), "{unknown}");
        }
        // A machine without a database knows none.
        if let Some(berlin) = zone("Europe/Berlin") {
            let at = timestamp("2020-07-01T10:00:00Z").unwrap();
            assert_eq!(at.to_zoned(berlin).hour(), 12);
            assert!(zone("europe/berlin").is_none());
        }
        assert_eq!(
            date("2020-01-02").unwrap().to_string(),
            "2020-01-02T00:00:00Z"
        );
    }
}
