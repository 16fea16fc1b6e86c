//! Compiles optimised code in the background after a start, a swap, or the begin of a canary. The
//! code replaces the baseline code of its generation: the generation number stays the same, and no
//! key is enqueued. This module must not know why a generation runs.

use std::sync::{Arc, Weak};

use vmhost_engine::{Code, Engine};

use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Slot};

/// Starts the optimising compilation of a generation's component in the background. In the whole
/// process one component is compiled at a time, and only while a plugin runs it.
pub(crate) fn optimise_later(
    plugins: &Arc<Plugins>,
    slot: &Arc<Slot>,
    generation: &Generation,
    bytes: Vec<u8>,
) {
    let component = generation.plugin.component();
    slot.optimising(component, || {
        if generation.plugin.code() == Code::Optimised {
            return None;
        }
        let (engine, limit) = (
            plugins.loader.engine.clone(),
            plugins.loader.config.limits.component,
        );
        let made_for = (Arc::downgrade(slot), component.to_owned());
        let task = tokio::spawn(optimise(made_for, engine, bytes, limit));
        Some(task.abort_handle())
    });
}

async fn optimise(
    (slot, component): (Weak<Slot>, String),
    engine: Engine,
    bytes: Vec<u8>,
    limit: u64,
) {
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_AT_A_TIME.lock().await;
    // Whether the generation still runs is checked before the compilation, and again before the
    // code is installed. All generations that run on one interpreter have the same component.
    let next = |installed: &[u64]| -> Option<Arc<Generation>> {
        let lineup = slot.upgrade()?.lineup();
        let is_next = |generation: &&Arc<Generation>| {
            generation.plugin.component() == component && !installed.contains(&generation.number)
        };
        lineup.members().find(is_next).cloned()
    };
    if next(&[]).is_none() {
        return;
    }
    let compiled = engine.optimise(bytes, limit).await;
    match compiled {
        // A newer generation of the same component may run by now.
        Ok(image) => {
            let mut installed = Vec::new();
            while let Some(generation) = next(&installed) {
                installed.push(generation.number);
                generation.plugin.install(image.clone());
                tracing::debug!(
                    plugin = generation.description().name,
                    generation = generation.number,
                    "optimised code installed"
                );
            }
        }
        Err(error) => {
            if let Some(generation) = next(&[]) {
                tracing::warn!(
                    plugin = generation.description().name,
                    "the plugin keeps running baseline code: {error}"
                );
            }
        }
    }
}
