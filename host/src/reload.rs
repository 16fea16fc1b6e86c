//! From new bytes to a new generation, or to nothing but a counter, a log line and a status.
//!
//! compile (off the runtimes' threads) -> describe (where guests run) -> check -> new stores -> replace one pointer -> all keys back in the low lane -> announce.
//! Optimised code comes later, behind the swap: it belongs to its generation, changes no number and re-enqueues nothing.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vmhost_core::Grants;
use vmhost_engine::{Code, Engine, Plugin};

use crate::manager::Manager;
use crate::permissions;
use crate::registry::{Generation, Slot, Starts, Wired};
use crate::watch_files::FileWatch;

/// How long a swap waits for stores that the new generation needs.
const NEW_STORES: Duration = Duration::from_secs(30);

/// How long new bytes that cannot be loaded may still be half of a file, closed and opened again by whoever writes it.
const GRACE: Duration = Duration::from_secs(1);

/// What a swap did, and how long its steps took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swapped {
    /// The plugin.
    pub plugin: String,
    /// The number of its generation now.
    pub generation: u64,
    /// From source to bytes, if the host built it.
    pub build: Option<Duration>,
    /// From bytes to code.
    pub compile: Duration,
    /// Describe, compare with the grants, fill new stores.
    pub check: Duration,
    /// In which no worker could start a call.
    pub pause: Duration,
    /// Keys that were put back.
    pub keys: usize,
}

/// How the last change of a plugin's file ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastReload {
    /// `swapped`, `unchanged` or `failed`, as the metric `vmhost_reloads_total` counts them.
    pub result: String,
    /// When, in UTC: `2026-01-31T12:00:00Z`.
    pub at: String,
    /// What was swapped, or why not.
    pub about: String,
}

impl LastReload {
    fn now(result: &str, about: String) -> Option<Arc<Self>> {
        let at = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second());
        Some(Arc::new(Self {
            result: result.to_owned(),
            at: at.map(|at| at.to_string()).unwrap_or_default(),
            about,
        }))
    }
}

/// `swapped vm: generation 2 (build 1.9s, compile 44ms, check 1.2ms, pause 800ns, keys put back: 501)`.
impl std::fmt::Display for Swapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "swapped {}: generation {} (",
            self.plugin, self.generation
        )?;
        if let Some(build) = self.build {
            write!(f, "build {build:.1?}, ")?;
        }
        write!(
            f,
            "compile {:.1?}, check {:.1?}, pause {:.1?}, keys put back: {})",
            self.compile, self.check, self.pause, self.keys
        )
    }
}

/// Watches a plugin's file and swaps when its content changes. Ends never; a reload that fails leaves all as it is.
pub async fn follow(manager: Arc<Manager>, slot: Arc<Slot>, path: PathBuf) {
    let limit = manager.loader.config.limits.component;
    let mut known = [0; 32];
    // A digest of another length would be no SHA-256: then the file is loaded once more.
    let _ = hex::decode_to_slice(slot.current().plugin.digest(), &mut known);
    let mut watch = FileWatch::new(&manager.loader.files, &path, known, limit);
    let mut newer = None;
    loop {
        let content = match newer.take() {
            Some(content) => content,
            None => watch.changed().await,
        };
        let loaded = tokio::select! {
            loaded = manager.loader.load(&content) => loaded,
            // What is being compiled is old already.
            content = watch.changed() => {
                newer = Some(content);
                continue;
            }
        };
        let reloaded = match loaded {
            Ok(loaded) => swap_to(&manager, &slot, loaded, content, None).await,
            Err(error) => Err(error),
        };
        if let Err(error) = reloaded {
            // What comes within the grace makes the failure the sight of half a file.
            match tokio::time::timeout(GRACE, watch.changed()).await {
                Ok(content) => newer = Some(content),
                Err(_) => report(&manager, &slot, &path.display().to_string(), &error),
            }
        }
    }
}

/// A reload failed: counted and logged, and that is all.
pub fn report(manager: &Manager, slot: &Slot, what: &str, error: &anyhow::Error) {
    manager
        .metrics
        .reloads
        .with_label_values(&[slot.name.as_str(), "failed"])
        .inc();
    slot.last_reload
        .store(LastReload::now("failed", format!("{error:#}")));
    let number = slot.current().number;
    tracing::error!(
        plugin = slot.name,
        "{what} is not loaded, generation {number} goes on: {error:#}"
    );
}

/// Swaps to a plugin, unless it runs already. `loaded`: the plugin, and how long it took to compile
/// its component, which is `bytes`. `build`: how long it took to make the component.
pub async fn swap_to(
    manager: &Arc<Manager>,
    slot: &Arc<Slot>,
    loaded: (Plugin, Duration),
    bytes: Vec<u8>,
    build: Option<Duration>,
) -> Result<()> {
    let swapped = swap(manager, slot, loaded, build).await?;
    let result = if swapped.is_some() {
        "swapped"
    } else {
        "unchanged"
    };
    manager
        .metrics
        .reloads
        .with_label_values(&[slot.name.as_str(), result])
        .inc();
    let about = swapped.as_ref().map(ToString::to_string);
    slot.last_reload
        .store(LastReload::now(result, about.unwrap_or_default()));
    if let Some(swapped) = swapped {
        // The announcement: no call starts on an older generation after this line.
        tracing::info!(
            plugin = swapped.plugin,
            generation = swapped.generation,
            keys = swapped.keys,
            "{swapped}"
        );
        optimise_later(manager, slot, bytes);
    }
    Ok(())
}

async fn swap(
    manager: &Arc<Manager>,
    slot: &Arc<Slot>,
    (plugin, compile): (Plugin, Duration),
    build: Option<Duration>,
) -> Result<Option<Swapped>> {
    let present = slot.current();
    if plugin.digest() == present.plugin.digest() {
        return Ok(None);
    }
    let checked = Instant::now();
    let description = plugin.description().clone();
    if description.name != slot.name {
        bail!(
            "its description has the name {:?}, and the plugin that runs is {:?}: the name owns fields in the cluster",
            description.name,
            slot.name
        );
    }
    if !manager.loader.config.allow_wider
        && let Err(wider) = slot.grants.check_description(&description)
    {
        bail!(
            "it asks for more than the plugin was granted ({}); restart vmhost to grant it, or run with --allow-wider",
            wider.0.join(", ")
        );
    }
    permissions::check::at_swap(
        &manager.connection,
        present.description(),
        &description,
        &permissions::Options::of(&manager.loader.config),
    )
    .await?;
    manager.set_up(&description).await?;
    let controllers = manager.wire(&description, Some(&present));
    ready(&controllers, &present).await?;
    let generation = Arc::new(Generation {
        number: slot.next_number(),
        grants: Grants::of(&description),
        plugin,
        controllers,
        starts: Starts::default(),
    });
    let check = checked.elapsed();

    for wired in generation.controllers.values() {
        wired.sources.open();
    }
    let started = Instant::now();
    let before = slot.replace(generation.clone());
    slot.breaker.reset();
    let pause = started.elapsed();
    // Calls that were about to start on the old code have started when this is announced.
    before.started().await;

    manager
        .metrics
        .generation
        .with_label_values(&[slot.name.as_str()])
        .set(generation.number as i64);
    let keys = renew(manager, slot, &before, &generation);
    Ok(Some(Swapped {
        plugin: slot.name.clone(),
        generation: generation.number,
        build,
        compile,
        check,
        pause,
        keys,
    }))
}

/// Waits for stores that are new. Those that the present generation reads too are as ready as they were.
async fn ready(controllers: &FxHashMap<String, Wired>, present: &Generation) -> Result<()> {
    let is_old = |sources| {
        present
            .controllers
            .values()
            .any(|wired| Arc::ptr_eq(&wired.sources, sources))
    };
    let filled = async {
        for wired in controllers.values().filter(|wired| !is_old(&wired.sources)) {
            wired.sources.synced().await;
        }
    };
    let filled = tokio::time::timeout(NEW_STORES, filled).await;
    filled.with_context(|| {
        format!("the objects that it wants could not be listed within {NEW_STORES:?}")
    })
}

/// All keys get their chance with the new code; controllers that are new start, and those that are no more stop.
fn renew(manager: &Arc<Manager>, slot: &Arc<Slot>, before: &Generation, now: &Generation) -> usize {
    let mut left = HashMap::new();
    for (name, old) in &before.controllers {
        if now.sources(&old.controller).is_none() {
            tracing::info!(
                controller = name,
                "the controller is not part of the plugin any more, or another one"
            );
            // What the old queue still knows, its successor has to look at: an object that is gone is in no store.
            left.insert(name, old.controller.unfinished());
            slot.retire(&old.controller);
        }
        warn_of_finalizer(old, now.controllers.get(name));
    }
    let mut keys = 0;
    for (name, wired) in &now.controllers {
        let old = before.controllers.get(name);
        let mut names = wired.sources.names();
        if let Some(old) = old
            && old.controller.kind == wired.controller.kind
        {
            let own = names.len();
            names.extend(left.remove(name).into_iter().flatten());
            if !Arc::ptr_eq(&old.sources, &wired.sources) {
                // What only the old stores show is gone by now, and is to be told; then they tell no more.
                names.extend(old.sources.names());
                old.sources.close();
                wired.controller.mapper.renew(true);
            }
            if names.len() > own {
                names.sort_unstable();
                names.dedup();
            }
        } else if let Some(old) = old {
            old.sources.close();
        }
        wired.controller.mapper.renew(false);
        keys += wired.controller.renew(names);
        // A controller that still waits for its old stores may be the better for new ones.
        if !wired.controller.has_started() {
            manager.start_workers(slot, wired.clone());
        }
    }
    keys
}

/// Who takes off a finalizer that the new version does not put on any more?
fn warn_of_finalizer(old: &Wired, now: Option<&Wired>) {
    let finalizer = |wired: &Wired| wired.sources.description().finalizer.clone();
    if let Some(was) = finalizer(old)
        && now.and_then(finalizer).as_ref() != Some(&was)
    {
        tracing::warn!(
            controller = &*old.controller.label,
            "the new version does not take {was} off: objects that carry it cannot go. Run `vmhost finalizers FILE --remove` with the old version"
        );
    }
}

/// Compiles the generation's component well, in the background. One is compiled at a time in the
/// process; of a plugin it is the newest.
pub fn optimise_later(manager: &Arc<Manager>, slot: &Arc<Slot>, bytes: Vec<u8>) {
    let generation = slot.current();
    let component = generation.plugin.component();
    slot.optimising(component, || {
        if generation.plugin.code() == Code::Optimised {
            return None;
        }
        let (engine, limit) = (
            manager.loader.engine.clone(),
            manager.loader.config.limits.component,
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
    // Compared before the work, and again before it is installed. Generations that one interpreter
    // runs have the same component.
    let current = || {
        let generation = slot.upgrade()?.current();
        (generation.plugin.component() == component).then_some(generation)
    };
    if current().is_none() {
        return;
    }
    let compiled = engine.optimise(bytes, limit).await;
    match (compiled, current()) {
        (Ok(image), Some(generation)) => {
            generation.plugin.install(image);
            tracing::debug!(
                plugin = generation.description().name,
                generation = generation.number,
                "optimised code installed"
            );
        }
        (Err(error), Some(generation)) => tracing::warn!(
            plugin = generation.description().name,
            "the plugin stays on baseline code: {error}"
        ),
        (_, None) => {}
    }
}
