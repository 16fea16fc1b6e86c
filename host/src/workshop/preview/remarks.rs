//! The remarks of a plan: about the run, and about what no preview can see.
//!
//! This module must not know how changes are grouped.

use super::change::Verb;
use super::run::Ran;

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
    let admission = match ran.asked {
        0 => "admission webhooks, quotas, and what other controllers do",
        _ => "what other controllers do",
    };
    let mut unseen = vec![admission.to_owned()];
    if ran.changes.iter().any(|change| change.verb == Verb::Delete) {
        unseen
            .push("dependents of what is deleted, of kinds that the plugin does not watch".into());
    }
    unseen.extend(ran.gaps.iter().cloned());
    unseen
}
