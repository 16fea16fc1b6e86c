//! Compares the warnings about the candidate's keys with the warnings that the live version has. A
//! pure function. It must not know where warnings come from, or what is done about one.

use std::collections::BTreeSet;

use crate::canary::breach::Breach;
use crate::journal::story::Warning;

/// A key needs this many turns on the candidate before a warning about it counts against the
/// candidate: a warning is about several turns in a row.
const TURNS: u32 = 3;

/// Warnings by the controller's label and by their name.
pub(crate) type Names = BTreeSet<(String, String)>;

/// Returns the names of these warnings.
pub(crate) fn names<'w>(warnings: impl IntoIterator<Item = &'w Warning>) -> Names {
    let name = |warning: &Warning| (warning.controller.clone(), warning.name.clone());
    warnings.into_iter().map(name).collect()
}

/// Returns a warning about a key of the candidate, if the live version has no warning of the same
/// name. `known` are the warnings from before the canary, and `turns` returns how many turns in a
/// row a key had on the candidate, by the controller's label and the key's name.
pub(crate) fn strange(
    warnings: &[Warning],
    known: &Names,
    turns: impl Fn(&str, &str) -> u32,
) -> Option<Breach> {
    let of = |warning: &Warning| turns(&warning.controller, &warning.key);
    let live = names(warnings.iter().filter(|&warning| of(warning) == 0));
    let is_strange = |warning: &&Warning| {
        let warning: &Warning = warning;
        let name = (warning.controller.clone(), warning.name.clone());
        of(warning) >= TURNS && !known.contains(&name) && !live.contains(&name)
    };
    warnings
        .iter()
        .find(is_strange)
        .map(|warning| Breach::Warning {
            name: warning.name.clone(),
            key: warning.key.clone(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(name: &str, key: &str) -> Warning {
        Warning {
            name: name.into(),
            controller: "p/c".into(),
            key: key.into(),
            text: String::new(),
        }
    }

    /// The candidate has run the keys that begin with `c`.
    fn turns(controller: &str, key: &str) -> u32 {
        match (controller, key) {
            ("p/c", "a/c-new") => TURNS - 1,
            ("p/c", key) if key.starts_with("a/c") => TURNS,
            _ => 0,
        }
    }

    fn found(warnings: &[(&str, &str)], known: &[(&str, &str)]) -> Option<Breach> {
        let all = |of: &[(&str, &str)]| -> Vec<Warning> {
            of.iter().map(|(name, key)| warning(name, key)).collect()
        };
        strange(&all(warnings), &names(&all(known)), turns)
    }

    #[test]
    fn only_what_the_live_version_does_not_have_counts() {
        let breach = Some(Breach::Warning {
            name: "self-waking".into(),
            key: "a/c1".into(),
        });
        assert_eq!(found(&[("self-waking", "a/c1")], &[]), breach);
        assert_eq!(
            found(&[("never-quiet", "a/l"), ("self-waking", "a/c1")], &[]),
            breach
        );
        assert_eq!(
            found(&[("self-waking", "a/l"), ("self-waking", "a/c1")], &[]),
            None
        );
        assert_eq!(
            found(&[("self-waking", "a/c1")], &[("self-waking", "a/l")]),
            None
        );
        assert_eq!(
            found(&[("self-waking", "a/l")], &[]),
            None,
            "the live version's own"
        );
        assert_eq!(found(&[], &[]), None);
    }

    #[test]
    fn turns_of_the_live_version_are_not_held_against_the_candidate() {
        assert_eq!(found(&[("self-waking", "a/c-new")], &[]), None);
    }

    #[test]
    fn another_controller_is_another_matter() {
        let other = Warning {
            controller: "q/c".into(),
            ..warning("self-waking", "a/c1")
        };
        assert_eq!(strange(&[other], &Names::new(), turns), None);
    }
}
