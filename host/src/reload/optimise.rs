//! Optimised code, behind a swap and behind a start: it belongs to its generation, changes no number and re-enqueues nothing.

use std::sync::{Arc, Weak};

use vmhost_engine::{Code, Engine};

use crate::manager::Manager;
use crate::registry::{Generation, Slot};

/// Compiles the generation's bytes well, in the background, one at a time in the process; the newest wins.
pub fn optimise_later(manager: &Arc<Manager>, slot: &Arc<Slot>, bytes: Vec<u8>) {
    let generation = slot.current();
    if generation.plugin.code() == Code::Optimised {
        slot.optimising(None);
        return;
    }
    let (engine, limit) = (
        manager.loader.engine.clone(),
        manager.loader.config.limits.component,
    );
    let made_for = (Arc::downgrade(slot), Arc::downgrade(&generation));
    let task = tokio::spawn(optimise(made_for, engine, bytes, limit));
    slot.optimising(Some(task.abort_handle()));
}

async fn optimise(
    (slot, generation): (Weak<Slot>, Weak<Generation>),
    engine: Engine,
    bytes: Vec<u8>,
    limit: u64,
) {
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_AT_A_TIME.lock().await;
    // Compare before the work, and again before it is installed.
    let current = || {
        slot.upgrade()
            .zip(generation.upgrade())
            .filter(|(slot, generation)| Arc::ptr_eq(&slot.current(), generation))
    };
    if current().is_none() {
        return;
    }
    let compiled = engine.optimise(bytes, limit).await;
    match (compiled, current()) {
        (Ok(image), Some((slot, generation))) => {
            generation.plugin.install(image);
            tracing::debug!(
                plugin = slot.name,
                generation = generation.number,
                "optimised code installed"
            );
        }
        (Err(error), Some((slot, _))) => tracing::warn!(
            plugin = slot.name,
            "the plugin stays on baseline code: {error}"
        ),
        (_, None) => {}
    }
}
