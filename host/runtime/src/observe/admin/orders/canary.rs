//! `/plugins/{plugin}/canary`: the report about the present or last canary, and the orders to
//! start, promote and abort one. The body of `start` is the version to try. This module must not
//! know how a canary is carried out.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use vmhost_core::{Effect, ObjectKey};

use super::desk::{Desk, Refused};
use crate::canary::end::Abort;
use crate::canary::order::Start;
use crate::canary::report::Written;
use crate::canary::rules::Tuning;
use crate::canary::steps::Steps;
use crate::canary::told::{CanaryObject, CanaryReport, CanaryState};
use crate::canary::{Canary, Stage};
use crate::deploy::loaded::Loaded;
use crate::deploy::orders::{Order, OrderError};
use crate::deploy::slot::Slot;
use crate::journal::record::TurnRecord;
use crate::journal::redact::PluginSecrets;
use crate::journal::story::Turn;
use crate::journal::tell;

/// How long an abort waits until the candidate's keys are put back.
const PUT_BACK: Duration = Duration::from_secs(5);

/// The number of objects on a page of a report.
const LISTED: usize = 1000;

/// The parameters of a start, like the flags of `vmhost canary start`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StartQuery {
    /// `5`, `0.5`: the first weight in percent.
    weight: Option<String>,
    /// `5,25,100`: the weights of the steps.
    step: Option<String>,
    /// Milliseconds of a step.
    every: Option<u64>,
}

/// The parameters of a report.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReportQuery {
    /// The place in the list of objects at which the page begins.
    from: usize,
}

pub(super) fn reports() -> Router<Desk> {
    Router::new().route("/plugins/{plugin}/canary", get(report))
}

pub(super) fn orders() -> Router<Desk> {
    Router::new()
        .route("/plugins/{plugin}/canary/start", post(start))
        .route("/plugins/{plugin}/canary/promote", post(promote))
        .route("/plugins/{plugin}/canary/abort", post(abort))
}

async fn report(
    State(desk): State<Desk>,
    Path(plugin): Path<String>,
    Query(query): Query<ReportQuery>,
) -> Response {
    answer(reported(desk, &plugin, query.from).await)
}

async fn start(
    State(desk): State<Desk>,
    Path(plugin): Path<String>,
    Query(query): Query<StartQuery>,
    component: Bytes,
) -> Response {
    answer(started(&desk, &plugin, &query, component).await)
}

async fn promote(State(desk): State<Desk>, Path(plugin): Path<String>) -> Response {
    answer(promoted(&desk, &plugin).await)
}

async fn abort(State(desk): State<Desk>, Path(plugin): Path<String>) -> Response {
    answer(aborted(desk, &plugin).await)
}

fn answer<T: serde::Serialize>(done: Result<T, Refused>) -> Response {
    match done {
        Ok(document) => Json(document).into_response(),
        Err(refused) => refused.into_response(),
    }
}

/// Loads a version, and orders a canary of it from the task that swaps the plugin.
async fn started(
    desk: &Desk,
    plugin: &str,
    query: &StartQuery,
    component: Bytes,
) -> Result<CanaryState, Refused> {
    let slot = desk.slot(plugin)?;
    let steps = steps(query)?;
    let bytes = Vec::from(component);
    let terms = slot.current().terms.clone();
    let loaded = desk.loader.load_under(&bytes, &terms).await;
    let (loaded, compile) = loaded.map_err(|error| OrderError::Unfit(Box::new(error)))?;
    let start = Box::new(Start {
        loaded: Loaded {
            plugin: loaded,
            bytes,
            build: None,
            compile,
        },
        steps,
        tuning: Tuning::default(),
        warned: desk.warned.clone(),
        terms,
    });
    let order = |answer| Order::StartCanary { start, answer };
    slot.orders.ask(order).await?;
    state(&slot)
}

fn steps(query: &StartQuery) -> Result<Steps, OrderError> {
    let every = query.every.map(Duration::from_millis);
    let steps = Steps::parse(query.weight.as_deref(), query.step.as_deref(), every);
    steps.map_err(|error| OrderError::Unfit(Box::new(error)))
}

async fn promoted(desk: &Desk, plugin: &str) -> Result<CanaryState, Refused> {
    let slot = desk.slot(plugin)?;
    let generation = Some(running(&slot)?.about.generation);
    let order = |answer| Order::Promote { generation, answer };
    slot.orders.ask(order).await?;
    state(&slot)
}

/// Aborts the canary, and reports what its candidate wrote.
async fn aborted(desk: Desk, plugin: &str) -> Result<CanaryReport, Refused> {
    let slot = desk.slot(plugin)?;
    let canary = running(&slot)?;
    if !slot.abort(&canary, Abort::Operator) {
        return Err(ended(&canary).into());
    }
    // If it takes longer, the report says that the canary is not over yet.
    let _ = tokio::time::timeout(PUT_BACK, canary.until(Stage::Over)).await;
    told(desk, &slot, canary, 0).await
}

/// Returns the canary that runs.
fn running(slot: &Slot) -> Result<Arc<Canary>, OrderError> {
    let canary = slot.canary.load_full().ok_or_else(|| none(slot))?;
    match canary.ended() {
        None => Ok(canary),
        Some(_) => Err(ended(&canary)),
    }
}

fn none(slot: &Slot) -> OrderError {
    OrderError::Refused(format!("no canary of {} runs", slot.name))
}

fn ended(canary: &Canary) -> OrderError {
    let how = canary.ended().map(|ended| ended.how.to_string());
    OrderError::Refused(format!(
        "the last canary of {} has ended: {}",
        canary.about.plugin,
        how.unwrap_or_default()
    ))
}

fn state(slot: &Slot) -> Result<CanaryState, Refused> {
    let canary = slot.canary.load_full().ok_or_else(|| none(slot))?;
    Ok(CanaryState::of(&canary))
}

async fn reported(desk: Desk, plugin: &str, from: usize) -> Result<CanaryReport, Refused> {
    let slot = desk.slot(plugin)?;
    let canary = slot.canary.load_full();
    let canary = canary.ok_or_else(|| Refused::NoCanary(slot.name.clone()))?;
    told(desk, &slot, canary, from).await
}

/// Describes a canary, on a thread of its own, because the only thread for I/O must not wait for
/// documents.
async fn told(
    desk: Desk,
    slot: &Slot,
    canary: Arc<Canary>,
    from: usize,
) -> Result<CanaryReport, Refused> {
    let name = slot.name.clone();
    let told = tokio::task::spawn_blocking(move || tell_report(&desk, &name, &canary, from));
    told.await.map_err(|_| Refused::Order(OrderError::Dropped))
}

fn tell_report(desk: &Desk, plugin: &str, canary: &Canary, from: usize) -> CanaryReport {
    let settings = desk.loader.settings.hidden_of(plugin);
    let secrets = PluginSecrets {
        settings: &settings,
        reads_sensitive: true,
    };
    // One more than a page has, to know whether there is another page.
    let (written, unlisted) = canary.written(from, LISTED + 1);
    let objects = written.iter().take(LISTED);
    CanaryReport {
        canary: CanaryState::of(canary),
        objects: objects
            .map(|written| tell_object(desk, written, secrets))
            .collect(),
        next: (written.len() > LISTED).then_some(from.saturating_add(LISTED)),
        unlisted,
    }
}

/// Describes an object, with sensitive values hidden as in turns.
fn tell_object(
    desk: &Desk,
    written: &Written<TurnRecord>,
    secrets: PluginSecrets<'_>,
) -> CanaryObject {
    let object = &written.object;
    let mut told = CanaryObject {
        object: format!("{} {}", object.kind.kind, object.name),
        turns: written.turns,
        cut: true,
        ..CanaryObject::default()
    };
    if let Some(record) = &written.first {
        let time = |at| desk.loader.journal.time(at);
        let turn = tell::turn(record, &[], time, &desk.redact, secrets);
        told.cut = record.cut.is_some() || record.effects.is_empty();
        if !told.cut {
            add_effects(&mut told, object, record, turn);
        }
    }
    told
}

/// Adds the effects of a turn that concern the object, and takes the object's name from the turn.
fn add_effects(told: &mut CanaryObject, object: &ObjectKey, record: &TurnRecord, turn: Turn) {
    for (index, effect) in turn.effects.into_iter().enumerate() {
        let mut answers = record.answers.iter();
        if !answers.any(|answer| answer.effect as usize == index && answer.object == *object) {
            continue;
        }
        let subresource = record.effects.get(index).and_then(Effect::subresource);
        let suffix = subresource.map_or_else(String::new, |name| format!("/{name}"));
        let name = effect.object.strip_suffix(&suffix);
        told.object = name.unwrap_or(&effect.object).to_owned();
        told.verbs.push(effect.verb);
        told.fields.extend(effect.fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_start_are_the_flags() {
        let query = |text: &str| {
            let uri = format!("/plugins/vm/canary/start?{text}").parse().unwrap();
            Query::<StartQuery>::try_from_uri(&uri).map(|query| query.0)
        };
        let good = query("step=5%2C25,100&every=600000").unwrap();
        let parsed = steps(&good).unwrap();
        assert_eq!(parsed.weights(), [50, 250, 1000]);
        assert_eq!(parsed.every(), Some(Duration::from_secs(600)));
        assert!(steps(&query("weight=101").unwrap()).is_err());
        assert!(steps(&query("").unwrap()).is_err());
        assert!(query("wieght=5").is_err());
    }

    #[test]
    fn a_report_begins_with_its_first_object() {
        let from = |text: &str| {
            let uri = format!("/plugins/vm/canary{text}").parse().unwrap();
            let query = Query::<ReportQuery>::try_from_uri(&uri);
            query.map(|query| query.0.from)
        };
        assert_eq!((from("").unwrap(), from("?from=1000").unwrap()), (0, 1000));
        assert!(from("?form=1").is_err() && from("?from=-1").is_err());
    }
}
