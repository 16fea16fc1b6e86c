//! Unloads idle plugins: first their instances, then their code. The next call loads a plugin
//! again, in about a millisecond.
//!
//! The module only compares the time of the last call with the clock. It must not know why a plugin
//! is idle.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::deploy::plugins::Plugins;
use crate::deploy::slot::Slot;

/// The number of plugins that keep their code for the whole idle time, at about 1 MiB each. With
/// more plugins, the most recently called ones keep it.
pub const WARM: usize = 64;

/// How long after a call a plugin beyond [`WARM`] keeps its code.
const GRACE: Duration = Duration::from_secs(1);

/// Raises the limit of open files to its maximum. Each plugin holds its image open, and each watch
/// is an open file as well; with many plugins these exceed the usual soft limit of 1,024.
pub fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::debug!(
            "cannot raise the limit of {:?} open files: {error}",
            limit.current
        );
    }
}

/// Starts the task that unloads idle plugins. It ends when the plugins are dropped.
pub(crate) fn start(plugins: &Arc<Plugins>) {
    let Some(after) = plugins.loader.config.idle_unload else {
        return;
    };
    let plugins = Arc::downgrade(plugins);
    tokio::spawn(follow(plugins, after));
}

async fn follow(plugins: Weak<Plugins>, after: Duration) {
    let step = (after / 4).clamp(Duration::from_secs(1), Duration::from_secs(30));
    loop {
        tokio::time::sleep(step).await;
        let Some(plugins) = plugins.upgrade() else {
            return;
        };
        unload(&plugins.slots(), Instant::now(), after, WARM);
    }
}

/// Unloads plugins that were not called for `after`, and all but the `warm` plugins that were
/// called last.
fn unload(slots: &[Arc<Slot>], now: Instant, after: Duration, warm: usize) {
    let mut loaded = Vec::new();
    for slot in slots {
        for generation in slot.lineup().members().cloned() {
            if let Some(before) = now.checked_sub(after)
                && generation.plugin.rest(before)
            {
                tracing::debug!(plugin = slot.name, "unloaded: not called for {after:?}");
            } else if let Some(used) = generation.plugin.used() {
                loaded.push((used, generation));
            }
        }
    }
    let surplus = loaded.len().saturating_sub(warm);
    if surplus == 0 {
        return;
    }
    loaded.sort_unstable_by_key(|(used, _)| *used);
    for (used, generation) in loaded.iter().take(surplus) {
        if now.saturating_duration_since(*used) >= GRACE {
            generation.plugin.rest(now);
        }
    }
}
