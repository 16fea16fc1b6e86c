//! Parses tool versions from what the tools print. This module knows no tool.

use std::fmt;

use serde::{Serialize, Serializer};

/// Major, minor, patch. A suffix (`rc1`, `+wasi`) is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// Returns the first version in a text: `go version go1.26.8 linux/amd64`, `v20.20.2`,
    /// `Debian clang version 14.0.6`.
    pub fn find(text: &str) -> Option<Self> {
        let digit_or_dot = |c: char| c.is_ascii_digit() || c == '.';
        text.split(|c| !digit_or_dot(c)).find_map(Self::parse)
    }

    /// Parses `1.26` or `1.26.8`. A number alone is not a version: it may be a year or a count.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim_matches('.').split('.');
        let mut next = || parts.next()?.parse().ok();
        let (major, minor) = (next()?, next()?);
        Some(Self(major, minor, next().unwrap_or(0)))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_tools_print() {
        for (text, version) in [
            ("go version go1.26.8 linux/amd64", Version(1, 26, 8)),
            ("v20.20.2\n", Version(20, 20, 2)),
            (
                "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu",
                Version(14, 0, 6),
            ),
            ("cargo 1.95.0 (f2d3ce0bd 2026-03-21)", Version(1, 95, 0)),
            ("componentize-py 0.25.1", Version(0, 25, 1)),
            ("Python 3.14.0rc1", Version(3, 14, 0)),
            ("go version go1.27rc2 linux/amd64", Version(1, 27, 0)),
            ("built 2026, version 3.1.", Version(3, 1, 0)),
        ] {
            assert_eq!(Version::find(text), Some(version), "{text}");
        }
        for text in ["", "2026", "no version", "...", "1."] {
            assert_eq!(Version::find(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_compared_not_letters() {
        assert!(Version(0, 9, 20) < Version(0, 10, 0));
        assert!(Version(14, 0, 0) < Version(14, 0, 6));
        assert_eq!(Version(1, 26, 8).to_string(), "1.26.8");
    }
}
