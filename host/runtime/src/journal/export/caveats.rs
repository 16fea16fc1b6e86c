//! Explains in words why a replay of a turn may differ from the turn. This module must not know the
//! files of a case.

use vmhost_core::trace::Drawn;
use vmhost_engine::Settings;

use super::http;
use crate::journal::record::TurnRecord;

/// Returns what the call got but its case lacks: a sentence for each.
pub(super) fn missing(
    record: &TurnRecord,
    is_redacted: bool,
    has_chance: bool,
    settings: &Settings,
) -> Vec<String> {
    let mut missing = Vec::new();
    if is_redacted {
        missing.push("sensitive values are hashes in it: the call saw the values".to_owned());
    }
    if !has_chance {
        missing.push(
            "random numbers are left out, since a secret may be made of them: a replay draws others"
                .to_owned(),
        );
    }
    let start = record.trace.start.as_deref();
    if record.trace.drawn.cut || start.is_some_and(|start| start.drawn.cut) {
        let most = Drawn::MOST;
        missing.push(format!(
            "the call or its instance drew more than {most} readings of a clock or random bytes: the rest is not kept"
        ));
    }
    missing.extend(http::lacking(&record.trace));
    if !settings.is_empty() {
        missing.push(
            "the plugin has settings, which are not recorded: write those that it reads into request.json (settings)"
                .to_owned(),
        );
    }
    missing
}

/// Returns why a replay may differ although the case has everything that the call got.
pub(super) fn doubts(record: &TurnRecord) -> Vec<String> {
    let earlier = record.trace.earlier;
    let doubt = || {
        format!(
            "its instance had served calls before ({earlier}): what they left in it, such as the order of its hash maps, is not recorded"
        )
    };
    (earlier > 0).then(doubt).into_iter().collect()
}
