//! Sizes and times as `Plugin` objects write them. It must not know which field they are of.

use std::time::Duration;

/// Parses `64Mi`, `1Gi`, `1000000`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("{text:?} is not a size such as 64Mi");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: usize = match text.strip_prefix(digits).unwrap_or_default() {
        "" => 1,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return Err(wrong()),
    };
    let count: usize = digits.parse().map_err(|_| wrong())?;
    let bytes = count.checked_mul(unit).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(wrong)
}

/// Parses `500ms`, `10s`, `1m30s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration such as 500ms, 10s or 1m");
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    let parsed = Duration::try_from(parsed).map_err(|_| wrong())?;
    match parsed.is_zero() {
        true => Err(wrong()),
        false => Ok(parsed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_quantity_is_refused() {
        assert_eq!(size("64Mi"), Ok(64 << 20));
        assert_eq!(duration("1m"), Ok(Duration::from_secs(60)));
        for text in ["", "Mi", "0", "-1", "1Qi"] {
            assert!(size(text).is_err(), "{text}");
        }
        for text in ["", "0s", "-1s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
