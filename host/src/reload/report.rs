//! How a reload ended, for the metric, the status and the log.

use std::path::Path;
use std::time::Duration;

use super::last::LastReload;
use crate::manager::Manager;
use crate::registry::Slot;

/// A reload ended: `swapped`, `unchanged` or `failed`. `next_try`: after how long the same content
/// is tried again.
pub fn count(
    manager: &Manager,
    slot: &Slot,
    result: &str,
    about: String,
    next_try: Option<Duration>,
) {
    manager
        .metrics
        .reloads
        .with_label_values(&[slot.name.as_str(), result])
        .inc();
    slot.last_reload
        .store(Some(LastReload::now(result, about, next_try)));
}

/// A reload failed, and only other content can mend it: that is counted, shown and logged, and that
/// is all.
pub fn failed(manager: &Manager, slot: &Slot, source: &Path, about: &str) {
    count(manager, slot, "failed", about.to_owned(), None);
    tracing::error!(
        plugin = slot.name,
        "{} is not loaded, generation {} goes on: {about}",
        source.display(),
        slot.current().number
    );
}

/// As [`failed`], of what will be tried again. `is_news`: the last try did not end like this.
pub fn failed_for_now(
    manager: &Manager,
    slot: &Slot,
    source: &Path,
    about: &str,
    next_try: Duration,
    is_news: bool,
) {
    count(manager, slot, "failed", about.to_owned(), Some(next_try));
    let (plugin, source, number) = (&slot.name, source.display(), slot.current().number);
    if is_news {
        tracing::error!(
            plugin,
            "{source} is not loaded, generation {number} goes on, next try in {next_try:.1?}: {about}"
        );
    } else {
        tracing::debug!(
            plugin,
            "{source} is still not loaded, next try in {next_try:.1?}: {about}"
        );
    }
}
