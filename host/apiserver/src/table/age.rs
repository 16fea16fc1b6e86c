//! Times as kubectl prints them.
//!
//! Follows k8s.io/apimachinery `pkg/util/duration`. Must not know tables.

use jiff::{SpanRound, Timestamp, Unit};

/// Returns the time since a timestamp, formatted like kubectl.
pub(super) fn age(text: &str) -> String {
    let Ok(then) = text.parse::<Timestamp>() else {
        return "<invalid>".to_owned();
    };
    let seconds = Timestamp::now().since(then).ok().and_then(|span| {
        let rounded = span
            .round(
                SpanRound::new()
                    .largest(Unit::Second)
                    .smallest(Unit::Second),
            )
            .ok()?;
        Some(rounded.get_seconds())
    });
    duration(seconds.unwrap_or(0))
}

/// Returns a number of seconds, formatted like kubectl.
pub(super) fn duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |a: i64, x: &str, b: i64, y: &str| {
        if b == 0 {
            format!("{a}{x}")
        } else {
            format!("{a}{x}{b}{y}")
        }
    };
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_kubectl() {
        let seen: Vec<String> = [
            0, 59, 119, 120, 125, 600, 3600, 10_800, 28_799, 100_000, 200_000, 700_000,
        ]
        .map(duration)
        .to_vec();
        assert_eq!(
            seen,
            [
                "0s", "59s", "119s", "2m", "2m5s", "10m", "60m", "3h", "7h59m", "27h", "2d7h", "8d"
            ]
        );
        assert_eq!(age("yesterday"), "<invalid>");
    }
}
