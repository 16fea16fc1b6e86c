//! Plugins that nobody calls are unloaded: their instances first, then their code. The next call of one loads it again, in about a millisecond.
//!
//! It knows neither why a plugin is idle nor what its code is: it looks at the clock now and then.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::deploy::plugins::Plugins;
use crate::deploy::slot::Slot;

/// Plugins whose code stays for the whole time. Of more, those that were called last stay: at about 1 MiB each.
pub const WARM: usize = 64;

/// A plugin beyond [`WARM`] is left alone for so long after a call.
const GRACE: Duration = Duration::from_secs(1);

/// A plugin's image is a file that is held open, and so is each watch: with many plugins these are more than the 1,024 that a process may usually have at first.
pub fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::debug!(
            "the limit of open files stays at {:?}: {error}",
            limit.current
        );
    }
}

/// Looks now and then, for as long as there is a plugins.
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

/// Unloads what was not called for `after`, and all but the `warm` plugins that were called last.
fn unload(slots: &[Arc<Slot>], now: Instant, after: Duration, warm: usize) {
    let mut loaded = Vec::new();
    for slot in slots {
        let generation = slot.current();
        if let Some(before) = now.checked_sub(after)
            && generation.plugin.rest(before)
        {
            tracing::debug!(plugin = slot.name, "unloaded: not called for {after:?}");
        } else if let Some(used) = generation.plugin.used() {
            loaded.push((used, generation));
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
