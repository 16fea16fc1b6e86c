//! The routes of the admin address. All of them read; nothing but GET is served.

use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Instant;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use vmhost_core::ControllerDescription;

use super::asked::{Refused, wanted, wanted_of};
use super::follow::{Source, follow};
use super::questions::{STATE_PATH, TURNS_PATH, TurnsQuery, WARNINGS_PATH, WHY_PATH, WhyQuery};
use super::running::{Keyed, Running};
use super::turns::Turns;
use super::wanted::{Record, Wanted};
use super::{guard, snapshot};
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::Generation;
use crate::journal::redact::Redact;
use crate::journal::story::Turn;
use crate::journal::watch::Warnings;
use crate::rights::names;

/// What the questions about turns are asked of.
#[derive(Clone)]
struct Host {
    plugins: Weak<Plugins>,
    warnings: Arc<Warnings>,
    turns: Arc<Turns>,
}

/// The turns that a client follows.
struct Tail {
    host: Host,
    wanted: Wanted,
    /// Whether the documents contain the objects.
    whole: bool,
}

/// The routes of a host that listens on this address.
pub(super) fn router(plugins: &Arc<Plugins>, warned: &Arc<Warnings>, bound: IpAddr) -> Router {
    let settings = plugins.loader.config.settings.clone();
    let turns_of = Turns::new(plugins.journal.clone(), warned.redact.clone(), settings);
    let host = Host {
        plugins: Arc::downgrade(plugins),
        warnings: warned.clone(),
        turns: Arc::new(turns_of),
    };
    Router::new()
        .route(STATE_PATH, get(state))
        .route(TURNS_PATH, get(turns))
        .route(WHY_PATH, get(why))
        .route(WARNINGS_PATH, get(warnings))
        .with_state(host)
        .layer(from_fn_with_state(bound, guard::check))
}

async fn state(State(host): State<Host>) -> Response {
    match host.plugins.upgrade() {
        Some(plugins) => {
            let warnings = host.warnings.watch.lock().warnings();
            Json(snapshot::state(&plugins, warnings)).into_response()
        }
        None => (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response(),
    }
}

async fn turns(State(host): State<Host>, Query(query): Query<TurnsQuery>) -> Response {
    apart(move || {
        let running = host.running()?;
        if query.follow {
            let wanted = wanted(&query, &running)?;
            return Ok(host.follow(wanted, false));
        }
        Ok(Json(host.turns.list(&query, &running)?).into_response())
    })
    .await
}

async fn why(State(host): State<Host>, Query(query): Query<WhyQuery>) -> Response {
    apart(move || {
        let running = host.running()?;
        if query.follow {
            let wanted = wanted_of(&query, &running)?;
            return Ok(host.follow(wanted, true));
        }
        Ok(Json(host.turns.why(&query, &running)?).into_response())
    })
    .await
}

async fn warnings(State(host): State<Host>) -> Response {
    apart(move || {
        let warnings = host.warnings.watch.lock().warnings();
        Ok(Json(warnings).into_response())
    })
    .await
}

/// Makes an answer on a thread of its own: the only thread for I/O renews the lease, and must not
/// wait for documents.
async fn apart(answer: impl FnOnce() -> Result<Response, Refused> + Send + 'static) -> Response {
    let made = tokio::task::spawn_blocking(answer).await;
    made.unwrap_or(Err(Refused::Broken)).into_response()
}

impl Host {
    fn running(&self) -> Result<Running, Refused> {
        let plugins = self.plugins.upgrade().ok_or(Refused::Stopping)?;
        let mut controllers = Vec::new();
        for slot in plugins.slots() {
            let generation = slot.current();
            let reads_sensitive = may_read_sensitive(&generation, &self.warnings.redact);
            for wired in generation.controllers.values() {
                let controller = &wired.controller;
                let name = names::offline(generation.description(), &controller.kind);
                controllers.push(Keyed {
                    controller: controller.label.clone(),
                    started: controller.has_started(),
                    kind: controller.kind.clone(),
                    plural: name.plural,
                    namespaced: name.namespaced,
                    reads_sensitive,
                });
            }
        }
        controllers.sort_by(|a, b| a.controller.cmp(&b.controller));
        Ok(Running {
            leading: plugins.leadership.is_leading(),
            controllers,
        })
    }

    fn follow(self, wanted: Wanted, whole: bool) -> Response {
        follow(Tail {
            host: self,
            wanted,
            whole,
        })
    }
}

impl Source for Tail {
    fn recent(&self, ended_after: Instant) -> Option<Vec<Record>> {
        let plugins = self.host.plugins.upgrade();
        plugins.filter(|plugins| !plugins.is_stopping())?;
        Some(self.host.turns.records(&self.wanted, ended_after))
    }

    fn tell(&self, records: &[&Record]) -> Option<Vec<Turn>> {
        let running = self.host.running().ok()?;
        let tell = |record: &&Record| match self.whole {
            true => self.host.turns.whole(record, &running),
            false => self.host.turns.brief(record, &running),
        };
        Some(records.iter().map(tell).collect())
    }
}

/// Returns whether a generation, or one before it, may have read objects with sensitive values.
fn may_read_sensitive(generation: &Generation, redact: &Redact) -> bool {
    let controllers = generation.description().controllers.iter();
    let mut kinds = controllers.flat_map(ControllerDescription::kinds);
    generation.number > 1 || kinds.any(|(_, watched)| redact.concerns(&watched.gvk()))
}
