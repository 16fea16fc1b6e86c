//! Kubernetes' quantities (`4Gi`, `1.5G`, `500M`) as whole numbers of a unit. It must not know what
//! is measured.

use serde_json::Number;

/// What a whole number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Mi,
    Gi,
}

/// The suffixes of quantities, each with the bytes that it stands for.
const SUFFIXES: [(&str, u128); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

impl Unit {
    fn suffix(self) -> &'static str {
        match self {
            Self::Mi => "Mi",
            Self::Gi => "Gi",
        }
    }

    fn bytes(self) -> u128 {
        match self {
            Self::Mi => 1 << 20,
            Self::Gi => 1 << 30,
        }
    }

    /// Returns the quantity of so many units.
    pub(crate) fn text(self, number: &Number) -> String {
        format!("{number}{}", self.suffix())
    }

    /// Returns how many units a quantity is, rounded up; `None` if it is no quantity that can be
    /// counted so.
    pub(crate) fn number(self, text: &str) -> Option<i64> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let found = SUFFIXES.iter().find_map(|(suffix, bytes)| {
            let digits = text.strip_suffix(suffix)?;
            Some((digits, *bytes))
        });
        let (digits, scale) = found.unwrap_or((text, 1));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
        let places = u32::try_from(fraction.len()).ok()?;
        let divisor = 10_u128.checked_pow(places)?.checked_mul(self.bytes())?;
        let units = digits.checked_mul(scale)?.div_ceil(divisor);
        let units = i64::try_from(units).ok()?;
        Some(if is_negative { -units } else { units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_counted_and_rounded_up() {
        for (text, mi, gi) in [
            ("4096Mi", Some(4096), Some(4)),
            ("4Gi", Some(4096), Some(4)),
            ("4.5Gi", Some(4608), Some(5)),
            ("1G", Some(954), Some(1)),
            ("1048576", Some(1), Some(1)),
            ("0", Some(0), Some(0)),
            ("-5Mi", Some(-5), Some(-1)),
            ("1e3", None, None),
            ("500m", None, None),
            ("", None, None),
            ("Mi", None, None),
            ("1.2.3Gi", None, None),
            ("99999999999999999999Ei", None, None),
        ] {
            assert_eq!(
                (Unit::Mi.number(text), Unit::Gi.number(text)),
                (mi, gi),
                "{text}"
            );
        }
        assert_eq!(Unit::Gi.text(&Number::from(-7)), "-7Gi");
    }
}
