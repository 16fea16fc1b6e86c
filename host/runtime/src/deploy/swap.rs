//! Swaps a plugin to new content. A reload that fails leaves only a counter, a log line and a
//! status; and, with `--install-crds`, the definitions that it had installed by then.
//!
//! The steps: compile (on threads outside the runtimes) -> describe (on the guests' runtime) ->
//! check -> fill new stores -> exchange one pointer -> requeue all keys in the low lane ->
//! announce. Optimised code is installed later and changes no generation number.
//!
//! [`super::prepare`] does everything up to the new stores and changes nothing that runs.
//! [`super::tries`] retries a step of the preparation if [`super::error`] says that the failure may
//! pass. [`super::replace`] does the rest. This module must not know how a turn runs.

use std::path::Path;
use std::sync::Arc;

use vmhost_core::chain_line;
use vmhost_engine::Plugin;

use crate::config::terms::Terms;
use crate::deploy::files::FileWatch;
use crate::deploy::history;
use crate::deploy::history::report::{RollbackSuggested, RolledBack, Why};
use crate::deploy::loaded::Loaded;
use crate::deploy::optimise::optimise_later;
use crate::deploy::orders::{Order, OrderError};
use crate::deploy::plugins::Plugins;
use crate::deploy::prepare::{self, prepare};
use crate::deploy::replace::{self, Swapped};
use crate::deploy::rollback::{self, Chosen};
use crate::deploy::slot::{Ready, Slot};
use crate::deploy::source::{Build, News, Source, Watch};
use crate::deploy::{canary, tries};

/// Watches a plugin's source and swaps when its content changes, and carries out orders. Returns
/// when the plugin is removed. A failed reload leaves the current generation running.
pub async fn follow(plugins: Arc<Plugins>, slot: Arc<Slot>, source: Source) {
    let Some(mut orders) = slot.orders.incoming() else {
        tracing::error!(plugin = slot.name, "two tasks swap the plugin; one ends");
        return;
    };
    let path = source.path().to_owned();
    let (mut watch, build) = watch(&plugins, &slot, source);
    // The content that has yet to be prepared.
    let mut pending: Option<News> = None;
    loop {
        let is_pending = pending.is_some();
        let generation = slot.current();
        let next = tokio::select! {
            order = orders.next() => Next::Order(order),
            () = generation.breaker_opened(), if slot.probation.is_on(generation.number) => {
                Next::Paused
            }
            // The content that is being built, compiled, checked or waited for is already out of
            // date.
            news = watch.changed() => Next::News(news),
            ready = ready(&plugins, &slot, &path, build.as_deref(), pending.take()) => {
                Next::Ready(ready)
            }
        };
        match next {
            Next::News(news) => pending = Some(news),
            Next::Ready(None) => {}
            Next::Ready(Some(ready)) => {
                swap_to_the_end(&plugins, &slot, ready, Why::Swapped).await;
            }
            Next::Order(Order::End { answer }) => {
                // The caller may have stopped waiting.
                let _ = answer.send(Ok(()));
                return;
            }
            Next::Order(order) => {
                obey(&plugins, &slot, &path, order).await;
                // The order interrupted the preparation, so it begins again.
                pending = is_pending.then_some(None);
            }
            Next::Paused => {
                doubt(&plugins, &slot, generation.number).await;
                pending = is_pending.then_some(None);
            }
        }
    }
}

/// What wakes the task next.
enum Next {
    Order(Order),
    News(News),
    /// A circuit breaker opened on a generation that is on probation.
    Paused,
    /// The content is prepared, or there is no reason to swap.
    Ready(Option<Ready>),
}

/// Watches the source, unless reloads are off. Also returns its build, if it has one.
fn watch(plugins: &Plugins, slot: &Slot, source: Source) -> (Watch, Option<Box<dyn Build>>) {
    match source {
        _ if !plugins.loader.config.reload => (Watch::Off, None),
        Source::File(path) => (Watch::File(watch_file(plugins, slot, &path)), None),
        Source::Folder(watch, build) => (Watch::Folder(watch), Some(build)),
        Source::Orders(_) => (Watch::Off, None),
    }
}

/// Prepares the pending content. Never returns if there is none.
async fn ready(
    plugins: &Arc<Plugins>,
    slot: &Slot,
    path: &Path,
    build: Option<&dyn Build>,
    pending: Option<News>,
) -> Option<Ready> {
    match pending {
        Some(news) => prepare(plugins, slot, path, build, news).await,
        None => std::future::pending().await,
    }
}

/// Carries out an order.
async fn obey(plugins: &Arc<Plugins>, slot: &Arc<Slot>, path: &Path, order: Order) {
    match order {
        Order::Swap {
            loaded,
            terms,
            answer,
        } => {
            let _ = answer.send(swap_to(plugins, slot, path, *loaded, terms).await);
        }
        // Handled by the caller, which ends.
        Order::End { answer } => drop(answer),
        Order::Rollback { to, answer } => {
            let done = roll_back(plugins, slot, to, Why::RolledBack).await;
            if let Err(error) = &done {
                let (plugin, about) = (&slot.name, chain_line(error));
                tracing::warn!(plugin, "the ordered rollback is not done: {about}");
            }
            // The caller may have stopped waiting.
            let _ = answer.send(done);
        }
        Order::StartCanary { start, answer } => {
            let started = canary::start(plugins, slot, *start).await;
            let _ = answer.send(started.map(|started| {
                optimise_later(plugins, slot, &started.generation, started.component);
            }));
        }
        Order::Promote { generation, answer } => {
            let _ = answer.send(promote(plugins, slot, generation).await);
        }
    }
}

/// Replaces the running version by one that was handed over, unless that was rolled back. Each step
/// is tried once.
async fn swap_to(
    plugins: &Arc<Plugins>,
    slot: &Arc<Slot>,
    path: &Path,
    loaded: Loaded,
    terms: Arc<Terms>,
) -> Result<String, OrderError> {
    let digest = loaded.plugin.digest().to_owned();
    if rollback::refused(&plugins.loader, slot, &digest)
        .await
        .is_some()
    {
        let why = rollback::refusal(slot, path, &digest);
        tries::count(&plugins.metrics, slot, "refused", why.clone(), None);
        return Err(OrderError::RolledBack(why));
    }
    let ready = prepare::once(plugins, slot, loaded.shared(), terms).await;
    let ready = ready.map_err(|error| {
        let about = chain_line(&error);
        tracing::error!(
            plugin = slot.name,
            "cannot load {}; generation {} keeps running: {about}",
            path.display(),
            slot.current().number
        );
        tries::count(&plugins.metrics, slot, "failed", about, None);
        OrderError::Unfit(Box::new(error))
    })?;
    let swapped = swap_to_the_end(plugins, slot, ready, Why::Swapped).await;
    swapped.ok_or(OrderError::Dropped)
}

/// Replaces the running version by an older one, and refuses it until the source has other bytes.
async fn roll_back(
    plugins: &Arc<Plugins>,
    slot: &Arc<Slot>,
    to: Option<String>,
    why: Why,
) -> Result<RolledBack, OrderError> {
    let loader = &plugins.loader;
    let Chosen { loaded, code } = rollback::choose(loader, slot, to).await?;
    let terms = slot.current().terms.clone();
    let ready = prepare::once(plugins, slot, loaded, terms).await;
    let ready = ready.map_err(|error| OrderError::Unfit(Box::new(error)))?;
    let from = slot.current();
    // Done before the swap: if the host is killed in between, it starts with the older version.
    rollback::refuse_current(loader, slot, ready.loaded.plugin.digest()).await;
    let swapped = swap_to_the_end(plugins, slot, ready, why).await;
    let swapped = swapped.ok_or(OrderError::Dropped)?;
    let (refused, runs) = (from.plugin.digest(), slot.current().plugin.clone());
    let outcome = rollback::outcome(&slot.name, refused, runs.digest());
    tracing::warn!(plugin = slot.name, "{outcome}");
    Ok(RolledBack {
        plugin: slot.name.clone(),
        from: format!("sha256:{refused}"),
        to: format!("sha256:{}", runs.digest()),
        generation: slot.current().number,
        code: code.to_owned(),
        about: format!("{swapped}: {outcome}"),
    })
}

/// Reacts to a circuit breaker that opened on a generation on probation: rolls back to the version
/// before it, or suggests that.
async fn doubt(plugins: &Arc<Plugins>, slot: &Arc<Slot>, generation: u64) {
    if !slot.probation.is_on(generation) {
        return;
    }
    let why = format!("all calls of generation {generation} fail since its swap");
    let plugin = &slot.name;
    if plugins.loader.config.auto_rollback {
        tracing::warn!(plugin, "{why}: rolling back (--auto-rollback)");
        if let Err(error) = roll_back(plugins, slot, None, Why::Breaker).await {
            // This is tried only once: what fails now would fail again a second later.
            slot.probation.end();
            let about = chain_line(&error);
            tracing::error!(plugin, "cannot roll back by itself: {about}");
        }
        return;
    }
    if let Some(to) = rollback::suggested(&plugins.loader, slot).await {
        tracing::warn!(plugin, "{why}: `vmhost rollback {plugin}` would run {to}");
        slot.probation
            .suggest(generation, RollbackSuggested { to, why });
    }
}

/// Swaps in a task of its own. The shutdown cancels the calling task, but a swap that has begun
/// must run to its end, or else the workers of a replaced controller would never end. Returns the
/// text of the swap.
async fn swap_to_the_end(
    plugins: &Arc<Plugins>,
    slot: &Arc<Slot>,
    ready: Ready,
    why: Why,
) -> Option<String> {
    let (plugins, slot) = (plugins.clone(), slot.clone());
    let swap = tokio::spawn(async move { swap(&plugins, &slot, ready, why).await });
    swap.await
        .inspect_err(|error| tracing::error!("the swap ended early: {error}"))
        .ok()
}

/// Watches the file that the current generation was loaded from.
fn watch_file(plugins: &Plugins, slot: &Slot, path: &Path) -> FileWatch {
    let limit = plugins.loader.config.limits.component;
    let mut known = [0; 32];
    // A digest that is no SHA-256 is ignored; then the file is loaded once more.
    let _ = hex::decode_to_slice(slot.current().plugin.digest(), &mut known);
    FileWatch::new(&plugins.loader.files, path, known, limit)
}

/// Swaps and announces the new generation: no call starts on an older one after the log line. The
/// run of the version before ends for the reason `why`. This must run to its end while the host
/// runs. Returns the text of the swap.
async fn swap(plugins: &Arc<Plugins>, slot: &Arc<Slot>, mut ready: Ready, why: Why) -> String {
    let is_rollback = why != Why::Swapped;
    let bytes = std::mem::take(&mut ready.loaded.bytes);
    let before = slot.current().plugin.clone();
    let swapped = Swapped {
        is_rollback,
        ..replace::replace(plugins, slot, ready).await
    };
    let text = swapped.to_string();
    let result = match is_rollback {
        true => "rolled_back",
        false => "swapped",
    };
    tries::count(&plugins.metrics, slot, result, text.clone(), None);
    tracing::info!(
        plugin = swapped.plugin,
        generation = swapped.generation,
        keys = swapped.keys,
        "{text}"
    );
    match is_rollback {
        true => slot.probation.end(),
        false => slot.probation.begin(swapped.generation),
    }
    keep(plugins, slot, why, before, bytes, !is_rollback).await;
    text
}

/// Promotes the candidate of a canary, in a task of its own like a swap.
async fn promote(
    plugins: &Arc<Plugins>,
    slot: &Arc<Slot>,
    generation: Option<u64>,
) -> Result<(), OrderError> {
    let (plugins, slot) = (plugins.clone(), slot.clone());
    let promotion = async move {
        let before = slot.current().plugin.clone();
        let promoted = replace::promote(&plugins, &slot, generation).await?;
        let text = promoted.to_string();
        tries::count(&plugins.metrics, &slot, "swapped", text.clone(), None);
        tracing::info!(
            plugin = promoted.plugin,
            generation = promoted.generation,
            keys = promoted.keys,
            "{text}"
        );
        slot.probation.begin(promoted.generation);
        // The component came with the operator's order, so the source may still have a refused
        // version.
        let component = promoted.component;
        keep(&plugins, &slot, Why::Promoted, before, component, false).await;
        Ok::<(), OrderError>(())
    };
    let promoted = tokio::spawn(promotion).await;
    promoted.unwrap_or(Err(OrderError::Dropped))
}

/// Adds the version that runs now to the history, and compiles optimised code for it. The run of
/// the version before ended for the reason `why`.
async fn keep(
    plugins: &Arc<Plugins>,
    slot: &Arc<Slot>,
    why: Why,
    before: Arc<Plugin>,
    bytes: Vec<u8>,
    is_from_source: bool,
) {
    let present = slot.current();
    let (now, generation) = (present.plugin.clone(), present.number);
    let kept = history::with(&plugins.loader.history, move |history| {
        history.keep(&now, &bytes);
        history.began(&now, generation, why, Some(before), is_from_source);
        bytes
    });
    if let Some(bytes) = kept.await.filter(|bytes| !bytes.is_empty()) {
        optimise_later(plugins, slot, &present, bytes);
    }
}
