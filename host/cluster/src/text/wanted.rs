//! The fields of an object that a store keeps. This module must not know which plugin wants them.

use std::collections::BTreeSet;
use std::fmt;

/// The kept fields of an object, besides `apiVersion`, `kind` and `metadata`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// All fields.
    All,
    /// The fields at these dotted paths (`spec.status`) and everything below them. A path names
    /// members of objects; an array on the path is kept whole. Empty for metadata only.
    Fields(BTreeSet<String>),
}

/// The wanted part of a member.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Below<'a> {
    All,
    Nothing,
    /// These paths below the member.
    Some(Paths<'a>),
}

/// Sorted paths that all begin with the same members, which are not looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paths<'a> {
    all: &'a [String],
    /// Where the next member begins in each of them.
    from: usize,
}

impl Wanted {
    /// Selects these fields; `None` selects all, as a description without `wantedFields` does.
    pub fn fields<S: Into<String>>(paths: Option<impl IntoIterator<Item = S>>) -> Self {
        paths.map_or(Self::All, |paths| {
            Self::Fields(paths.into_iter().map(Into::into).collect())
        })
    }

    /// Selects only `apiVersion`, `kind` and `metadata`.
    pub fn metadata() -> Self {
        Self::Fields(BTreeSet::new())
    }

    /// Returns whether only the fields that are always kept are wanted. Then the API server need
    /// not send more.
    pub fn is_metadata(&self) -> bool {
        Self::metadata().covers(self)
    }

    /// Returns whether both keep the same fields.
    pub fn keeps_as(&self, other: &Self) -> bool {
        self.covers(other) && other.covers(self)
    }

    /// The fields that at least one of both wants.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Fields(a), Self::Fields(b)) => Self::Fields(a.union(b).cloned().collect()),
            _ => Self::All,
        }
    }

    /// Returns whether all fields of `other` are kept.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Fields(_), Self::All) => false,
            (Self::Fields(have), Self::Fields(want)) => want.iter().all(|want| {
                always_kept(want) || have.iter().any(|have| is_at_or_below(want, have))
            }),
        }
    }
}

/// Formats as `all`, `metadata`, or the paths.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Fields(_) if self.is_metadata() => f.write_str("metadata"),
            Self::Fields(paths) => {
                let mut comma = "";
                for path in paths {
                    write!(f, "{comma}{path}")?;
                    comma = ", ";
                }
                Ok(())
            }
        }
    }
}

fn always_kept(path: &str) -> bool {
    ["apiVersion", "kind", "metadata"]
        .iter()
        .any(|kept| is_at_or_below(path, kept))
}

fn is_at_or_below(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl<'a> Paths<'a> {
    /// These paths, which are sorted.
    pub(super) fn new(all: &'a [String]) -> Self {
        Self { all, from: 0 }
    }

    /// Returns the part of a member that the paths want. A guest may want thousands of fields, and
    /// objects have thousands of members, so that the paths are not compared one by one.
    pub(super) fn below(self, member: &str) -> Below<'a> {
        let after = |path: &String, with: &[u8]| {
            let rest = &path.as_bytes()[self.from..];
            rest.iter().cmp(member.as_bytes().iter().chain(with))
        };
        if self.all.binary_search_by(|path| after(path, b"")).is_ok() {
            return Below::All;
        }
        // What is below `member` is between `member.` and the character after the dot.
        let start = self.all.partition_point(|path| after(path, b".").is_lt());
        let end = self.all.partition_point(|path| after(path, b"/").is_lt());
        if start == end {
            return Below::Nothing;
        }
        Below::Some(Self {
            all: &self.all[start..end],
            from: self.from + member.len() + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(paths: &str) -> Wanted {
        Wanted::fields(Some(paths.split_whitespace()))
    }

    #[test]
    fn covering_goes_by_path_and_not_by_letter() {
        for (have, want, expect) in [
            ("spec", "spec.status", true),
            ("spec.status", "spec", false),
            ("spec.status", "spec.statusText", false),
            ("spec.a spec.b", "spec.b.c spec.a", true),
            ("", "metadata.labels kind", true),
            ("", "", true),
        ] {
            assert_eq!(
                fields(have).covers(&fields(want)),
                expect,
                "{have} covers {want}"
            );
        }
        assert!(
            Wanted::All.covers(&Wanted::All)
                && Wanted::All.covers(&fields("a"))
                && !fields("a").covers(&Wanted::All)
        );
    }

    #[test]
    fn a_union_covers_both() {
        let both = fields("spec.a").union(&fields("status"));
        assert!(
            both.covers(&fields("spec.a"))
                && both.covers(&fields("status.x"))
                && !both.covers(&fields("spec"))
        );
        assert_eq!(both.union(&Wanted::All), Wanted::All);
        assert_eq!(Wanted::fields(None::<Vec<String>>), Wanted::All);
    }

    #[test]
    fn the_paths_below_a_member_are_found() {
        let mut paths: Vec<String> = ["a-b.x", "a.b", "a.b.c", "a.bc.d", "ab", "a/b", "a.b-c.e"]
            .map(String::from)
            .into();
        paths.sort();
        let all = Paths::new(&paths);
        let below = |paths: Paths<'_>| -> Vec<String> {
            let rests = paths.all.iter().map(|path| &path[paths.from..]);
            rests.map(String::from).collect()
        };
        assert_eq!(all.below("ab"), Below::All);
        for none in ["", "b", "a-", "a.", "a.b.c.d", "zz"] {
            assert_eq!(all.below(none), Below::Nothing, "{none}");
        }
        let Below::Some(in_a) = all.below("a") else {
            panic!("something is below a");
        };
        assert_eq!(below(in_a), ["b", "b-c.e", "b.c", "bc.d"]);
        assert_eq!(in_a.below("b"), Below::All);
        let Below::Some(in_bc) = in_a.below("bc") else {
            panic!("something is below a.bc");
        };
        assert_eq!(below(in_bc), ["d"]);
        assert_eq!(in_bc.below("d"), Below::All);
        assert_eq!(in_bc.below("e"), Below::Nothing);
    }

    #[test]
    fn metadata_is_known_as_such() {
        for (wanted, expect, shown) in [
            (Wanted::metadata(), true, "metadata"),
            (fields("metadata.labels kind"), true, "metadata"),
            (fields("spec metadata"), false, "metadata, spec"),
            (Wanted::All, false, "all"),
        ] {
            assert_eq!(
                (wanted.is_metadata(), &*wanted.to_string()),
                (expect, shown)
            );
        }
        assert!(fields("spec spec.a").keeps_as(&fields("spec metadata.name")));
        assert!(!fields("spec").keeps_as(&Wanted::All));
    }
}
