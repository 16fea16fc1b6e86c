//! The remarks of a plan: about the run, and about what no preview can see.
//!
//! This module must not know how changes are grouped.

use super::change::Verb;
use super::run::Ran;

/// What only the cluster's API server can say of a write.
const UNASKED: &str =
    "admission webhooks, quotas, CEL rules and access rights (asked with --server-dry-run)";

/// Returns remarks about a run.
pub(super) fn notes(ran: &Ran) -> Vec<String> {
    let counted = [
        (
            ran.left,
            "keys were not run, since calls of the plugin kept failing",
        ),
        (
            ran.asking,
            "keys ask for another turn although nothing changes",
        ),
        (
            ran.later,
            "keys come back after a time: what they do then is not run",
        ),
        (ran.owned, "objects only get other owners of their fields"),
        (
            ran.asked,
            "writes were asked for as dry runs of the API server; what follows them was not",
        ),
        (
            ran.unsent,
            "HTTP requests were not sent: a preview sends none, and the policy was told so",
        ),
        (
            ran.outdated,
            "writes met an object that has changed since it was listed",
        ),
        (
            ran.elsewhere,
            "effects name their cluster (in-cluster): a preview leaves them out",
        ),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    let counted = counted.map(|(count, text)| format!("{count} {text}"));
    let warnings = ran.warnings.iter();
    let warnings =
        warnings.map(|(text, count)| format!("an API server warns {count} times: {text}"));
    counted.chain(warnings).collect()
}

/// Returns what a run could not see.
pub(super) fn unseen(ran: &Ran) -> Vec<String> {
    let mut unseen = Vec::new();
    if ran.asked == 0 {
        unseen.push(UNASKED.to_owned());
    }
    unseen.push("what other controllers do".to_owned());
    if ran.changes.iter().any(|change| change.verb == Verb::Delete) {
        unseen
            .push("dependents of what is deleted, of kinds that the plugin does not watch".into());
    }
    unseen.extend(ran.gaps.iter().cloned());
    unseen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_dry_run_shows_is_said_with_the_flag_that_asks_for_it() {
        let plain = unseen(&Ran::default());
        assert!(plain[0].contains("CEL rules") && plain[0].contains("--server-dry-run"));
        let asked = Ran {
            asked: 3,
            ..Ran::default()
        };
        assert_eq!(unseen(&asked), plain[1..]);
    }

    #[test]
    fn keys_that_come_back_after_a_time_are_said_not_to_be_followed() {
        let ran = Ran {
            later: 2,
            ..Ran::default()
        };
        let text = "2 keys come back after a time: what they do then is not run";
        assert_eq!(notes(&ran), [text]);
    }

    #[test]
    fn effects_that_name_their_cluster_are_said_to_be_left_out() {
        let ran = Ran {
            elsewhere: 3,
            ..Ran::default()
        };
        let text = "3 effects name their cluster (in-cluster): a preview leaves them out";
        assert_eq!(notes(&ran), [text]);
    }
}
