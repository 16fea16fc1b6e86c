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
pub(super) enum Below<'a> {
    All,
    Nothing,
    /// These paths below the member.
    Some(Vec<&'a str>),
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

/// Returns the part of a member that these paths want.
pub(super) fn below<'a>(paths: &'a [impl AsRef<str>], member: &str) -> Below<'a> {
    let mut deeper = Vec::new();
    for path in paths {
        match path.as_ref().strip_prefix(member) {
            Some("") => return Below::All,
            Some(rest) => deeper.extend(rest.strip_prefix('.')),
            None => {}
        }
    }
    if deeper.is_empty() {
        Below::Nothing
    } else {
        Below::Some(deeper)
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
