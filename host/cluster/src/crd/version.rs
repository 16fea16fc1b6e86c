//! Compares versions by semver.org's rules, with the spellings that people use: `v1.2`, `1.2.0` and
//! `1.2.0+build` are equal. This module must not know definitions.

use std::cmp::Ordering;

/// Compares two versions; `None` if one of them is not a version.
pub(super) fn compare(left: &str, right: &str) -> Option<Ordering> {
    let (left, right) = (Version::parse(left)?, Version::parse(right)?);
    Some(left.cmp(&right))
}

/// Ordered field by field: a pre-release is older than its release.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version<'a> {
    core: [u64; 3],
    /// Whether this is a release, which is newer than all of its pre-releases.
    release: bool,
    pre: Vec<Identifier<'a>>,
}

/// Numbers are older than words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier<'a> {
    Number(u64),
    Word(&'a str),
}

impl<'a> Version<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (numbers, pre) = match text.split_once('-') {
            Some((numbers, pre)) => (numbers, Some(pre)),
            None => (text, None),
        };
        let mut core = [0; 3];
        for (at, number) in numbers.split('.').enumerate() {
            *core.get_mut(at)? = number.parse().ok()?;
        }
        let pre = pre.map_or_else(Vec::new, |pre| pre.split('.').map(Identifier::of).collect());
        Some(Self {
            core,
            release: pre.is_empty(),
            pre,
        })
    }
}

impl<'a> Identifier<'a> {
    fn of(text: &'a str) -> Self {
        text.parse().map_or(Self::Word(text), Self::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_their_order() {
        // semver.org's example, and common spellings.
        let rising = [
            "0.9.10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "v1.2",
            "1.10.0+build.7",
        ];
        for pair in rising.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Some(Ordering::Less), "{pair:?}");
            assert_eq!(compare(pair[1], pair[0]), Some(Ordering::Greater));
        }
        for (left, right) in [("1.2", "v1.2.0"), ("1.2.0+a", "1.2.0+b")] {
            assert_eq!(compare(left, right), Some(Ordering::Equal));
        }
        for bad in ["", "newest", "1.x", "1.2.3.4", "-1"] {
            assert_eq!(compare(bad, "1.0.0"), None, "{bad}");
        }
    }
}
