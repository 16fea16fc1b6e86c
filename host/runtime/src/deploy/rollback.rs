//! Finds and loads the version that replaces a refused one: in a rollback, and at a start if the
//! plugin's file has a refused version.
//!
//! This module must not know how a version is swapped.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use vmhost_core::{chain, one_line};
use vmhost_engine::{Code, LoadError, Plugin};

use crate::config::terms::Terms;
use crate::deploy::history::report::Why;
use crate::deploy::history::{History, Start, Version, with};
use crate::deploy::loaded::Loaded;
use crate::deploy::loader::Loader;
use crate::deploy::orders::OrderError;
use crate::deploy::slot::Slot;

/// The number of a digest's characters that a person is shown.
const SHORT: usize = 12;

/// A loaded version to roll back to.
pub(crate) struct Chosen {
    pub(crate) loaded: Loaded<Arc<Plugin>>,
    /// Where its code came from, for the answer to the operator.
    pub(crate) code: &'static str,
}

/// Loads the version whose digest begins with `to`, or else the one before the running version,
/// under the present terms. Its code is compiled only if neither this process nor the cache has it.
pub(crate) async fn choose(
    loader: &Loader,
    slot: &Slot,
    to: Option<String>,
) -> Result<Chosen, OrderError> {
    let current = slot.current().plugin.digest().to_owned();
    let name = slot.name.clone();
    let terms = slot.current().terms.clone();
    // A plugin in memory has the settings and limits under which it ran, so it is the last resort
    // where these change. Those of the flags never do.
    let may_change = *terms != Terms::default();
    let version = with(&loader.history, move |history| {
        let digest = history.choose(&name, &current, to.as_deref())?;
        history.version(&name, &digest, may_change)
    });
    let version = version.await.ok_or(OrderError::Dropped)?;
    match version.map_err(|error| OrderError::Refused(error.to_string()))? {
        Version::Kept(plugin, bytes) => Ok(Chosen {
            loaded: Loaded {
                plugin,
                bytes,
                build: None,
                compile: Duration::ZERO,
            },
            code: "memory",
        }),
        Version::Bytes(bytes) => {
            let loaded = load(loader, bytes, &terms).await;
            let loaded = loaded.map_err(|error| OrderError::Unfit(Box::new(error)))?;
            let code = match loaded.plugin.code() {
                Code::Baseline => "baseline",
                Code::Optimised => "optimised",
            };
            Ok(Chosen {
                loaded: loaded.shared(),
                code,
            })
        }
    }
}

/// Returns the plugin that a start runs in place of `loaded`, which comes from this file and has
/// these terms: if that version was rolled back the one before it, else `loaded` itself.
pub(crate) async fn instead(loader: &Loader, path: &Path, loaded: Loaded, terms: &Terms) -> Loaded {
    let plugin = loaded.plugin.description().name.clone();
    let refused = loaded.plugin.digest().to_owned();
    let (name, digest) = (plugin.clone(), refused.clone());
    let start = with(&loader.history, move |history| {
        history.start(&name, &digest)
    });
    let path = path.display();
    let (found, bytes) = match start.await {
        None | Some(Start::Run) => return loaded,
        Some(Start::Instead(found, bytes)) => (found, bytes),
        Some(Start::Lost(error)) => {
            tracing::warn!(
                plugin,
                "{path} holds sha256:{refused}, which was rolled back, but it runs, since no other version can take its place: {error}"
            );
            return loaded;
        }
    };
    match load(loader, bytes, terms).await {
        Ok(before) => {
            tracing::warn!(
                plugin,
                "{path} holds sha256:{refused}, which was rolled back: running sha256:{found} from the history instead; {}",
                how_to_lift(&plugin, &refused)
            );
            before
        }
        Err(error) => {
            tracing::warn!(
                plugin,
                "{path} holds sha256:{refused}, which was rolled back, but it runs, since sha256:{found} from the history cannot be loaded: {}",
                one_line(&chain(&error))
            );
            with(&loader.history, move |history| history.lift(&plugin)).await;
            loaded
        }
    }
}

/// Refuses the version that runs now, because the version `to` is about to replace it.
pub(crate) async fn refuse_current(loader: &Loader, slot: &Slot, to: &str) {
    let from = slot.current().plugin.digest().to_owned();
    let (name, to) = (slot.name.clone(), to.to_owned());
    let refused = move |history: &History| history.roll_back(&name, &from, &to);
    with(&loader.history, refused).await;
}

/// Returns `None` if this version is not refused. Else returns whether that still has to be logged
/// for the plugin's source.
pub(crate) async fn refused(loader: &Loader, slot: &Slot, digest: &str) -> Option<bool> {
    let (name, digest) = (slot.name.clone(), digest.to_owned());
    let refused = with(&loader.history, move |history| {
        let is_refused = history.refuses(&name, &digest);
        is_refused.then(|| history.is_news(&name, &digest))
    });
    refused.await.flatten()
}

/// Ends all refusals of a plugin, since its source has other bytes now.
pub(crate) async fn lift(loader: &Loader, slot: &Slot) {
    let name = slot.name.clone();
    with(&loader.history, move |history| history.lift(&name)).await;
}

/// Formats the text about a plugin's source that has a refused version.
pub(crate) fn refusal(slot: &Slot, source: &Path, digest: &str) -> String {
    format!(
        "{} holds sha256:{digest}, which was rolled back; generation {} keeps running; {}",
        source.display(),
        slot.current().number,
        how_to_lift(&slot.name, digest)
    )
}

/// Returns the digest of the version that a rollback would run, as documents show it. `None` if
/// there is no version to roll back to.
pub(crate) async fn suggested(loader: &Loader, slot: &Slot) -> Option<String> {
    let current = slot.current().plugin.digest().to_owned();
    let name = slot.name.clone();
    let chosen = with(&loader.history, move |history| {
        history.choose(&name, &current, None)
    });
    Some(format!("sha256:{}", chosen.await?.ok()?))
}

/// Formats the text about a rollback that is done.
pub(crate) fn outcome(plugin: &str, refused: &str, runs: &str) -> String {
    format!(
        "sha256:{} runs, sha256:{} is refused: {}",
        short(runs),
        short(refused),
        how_to_lift(plugin, refused)
    )
}

/// Adds the first generations to the histories. If a history has a run without an end, the process
/// that ran it was killed.
pub(crate) async fn began(loader: &Loader, slots: &[Arc<Slot>]) {
    let first: Vec<_> = slots.iter().map(|slot| slot.current()).collect();
    let history = with(&loader.history, move |history| {
        for generation in first {
            let (plugin, number) = (&generation.plugin, generation.number);
            // Whether the plugin's file has a refused version was already checked.
            history.began(plugin, number, Why::Crash, None, false);
        }
    });
    history.await;
}

async fn load(loader: &Loader, bytes: Vec<u8>, terms: &Terms) -> Result<Loaded, LoadError> {
    let (plugin, compile) = loader.load_under(&bytes, terms).await?;
    Ok(Loaded {
        plugin,
        bytes,
        build: None,
        compile,
    })
}

fn how_to_lift(plugin: &str, digest: &str) -> String {
    format!(
        "other bytes in its source lift this, or `vmhost rollback {plugin} --to {}`",
        short(digest)
    )
}

fn short(digest: &str) -> &str {
    digest.get(..SHORT).unwrap_or(digest)
}
