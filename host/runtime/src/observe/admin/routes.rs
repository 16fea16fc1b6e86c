//! The page, and the routes about the whole host and about turns. They only read, and serve nothing
//! but GET; [`super::orders`] has the routes about one plugin. This module must not know how an
//! answer is made.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Instant;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use vmhost_cluster::KindNames;
use vmhost_core::description::{admission_kind, conversion_kind};
use vmhost_core::{Description, Gvk, ObjectName};

use super::asked::{Refused, wanted, wanted_of};
use super::follow::{Source, follow};
use super::keys::{KEYS_PATH, KeysQuery, pick};
use super::page::{self, PAGE_PATH};
use super::questions::{
    CASES_PATH, CasesQuery, SHADOW_PATH, STATE_PATH, StateQuery, TURNS_PATH, TurnsQuery,
    WARNINGS_PATH, WHY_PATH, WhyQuery,
};
use super::room::Room;
use super::running::{Aliases, Keyed, Running};
use super::shadowed::story;
use super::state::HostState;
use super::turns::{Turns, leave_objects_out};
use super::wanted::{Record, Wanted};
use super::{snapshot, states};
use crate::deploy::plugins::Plugins;
use crate::journal::story::Turn;
use crate::journal::watch::Warnings;
use crate::observe::metrics::controller::controller_label;
use crate::rights::names::{self, Name};
use crate::shadow::door::Shadowing;

/// What the answers are made from.
#[derive(Clone)]
struct Host {
    plugins: Weak<Plugins>,
    warnings: Arc<Warnings>,
    turns: Arc<Turns>,
    shadows: Arc<dyn Shadowing>,
    /// The threads on which all documents are made.
    room: Room,
}

/// The turns that a client follows.
struct Tail {
    host: Host,
    wanted: Wanted,
    /// Whether the documents contain the objects.
    whole: bool,
}

/// The routes of a host.
pub(super) fn router(
    plugins: &Arc<Plugins>,
    warned: &Arc<Warnings>,
    shadows: Arc<dyn Shadowing>,
) -> Router {
    let settings = plugins.loader.settings.clone();
    let turns_of = Turns::new(plugins.journal.clone(), warned.redact.clone(), settings);
    let host = Host {
        plugins: Arc::downgrade(plugins),
        warnings: warned.clone(),
        turns: Arc::new(turns_of),
        shadows,
        room: Room::default(),
    };
    Router::new()
        .route(PAGE_PATH, get(page::serve))
        .route(STATE_PATH, get(state))
        .route(KEYS_PATH, get(keys))
        .route(TURNS_PATH, get(turns))
        .route(WHY_PATH, get(why))
        .route(SHADOW_PATH, get(shadow))
        .route(WARNINGS_PATH, get(warnings))
        .route(CASES_PATH, get(cases))
        .with_state(host)
}

async fn state(State(host): State<Host>, Query(query): Query<StateQuery>) -> Response {
    if query.follow {
        let room = host.room.clone();
        return states::follow(move || host.counts(), room);
    }
    apart(host.room.clone(), move || {
        let state = host.state()?;
        Ok(Json(state).into_response())
    })
    .await
}

async fn keys(State(host): State<Host>, Query(query): Query<KeysQuery>) -> Response {
    apart(host.room.clone(), move || {
        let running = host.running()?;
        let plugins = host.plugins.upgrade().ok_or(Refused::Stopping)?;
        let warnings = host.warnings.all();
        let why =
            |label: &str, keys: &HashSet<ObjectName>| host.turns.failures(label, keys, &running);
        let keys = pick::keys(&plugins, warnings, &query, why);
        Ok(Json(keys).into_response())
    })
    .await
}

async fn turns(State(host): State<Host>, Query(query): Query<TurnsQuery>) -> Response {
    apart(host.room.clone(), move || {
        let running = host.running()?;
        if query.follow {
            let wanted = wanted(&query, &running)?;
            return Ok(host.follow(wanted, false, query.limit));
        }
        Ok(Json(host.turns.list(&query, &running)?).into_response())
    })
    .await
}

async fn why(State(host): State<Host>, Query(query): Query<WhyQuery>) -> Response {
    apart(host.room.clone(), move || {
        let running = host.running()?;
        if query.follow {
            let wanted = wanted_of(&query, &running)?;
            return Ok(host.follow(wanted, !query.brief, query.limit));
        }
        Ok(Json(host.turns.why(&query, &running)?).into_response())
    })
    .await
}

async fn shadow(State(host): State<Host>, Query(query): Query<WhyQuery>) -> Response {
    apart(host.room.clone(), move || {
        let running = host.running()?;
        Ok(Json(story(&*host.shadows, &query, &running)?).into_response())
    })
    .await
}

async fn cases(State(host): State<Host>, Query(query): Query<CasesQuery>) -> Response {
    apart(host.room.clone(), move || {
        let running = host.running()?;
        Ok(Json(host.turns.cases(&query, &running)?).into_response())
    })
    .await
}

async fn warnings(State(host): State<Host>) -> Response {
    apart(host.room.clone(), move || {
        let warnings = host.warnings.all();
        Ok(Json(warnings).into_response())
    })
    .await
}

/// Makes an answer on one of the threads for documents.
async fn apart(
    room: Room,
    answer: impl FnOnce() -> Result<Response, Refused> + Send + 'static,
) -> Response {
    let made = room.make(answer).await;
    made.unwrap_or(Err(Refused::Broken)).into_response()
}

impl Host {
    /// The present state. Returns an error if the host shuts down.
    fn state(&self) -> Result<HostState, Refused> {
        let running = self.running()?;
        let plugins = self.plugins.upgrade().ok_or(Refused::Stopping)?;
        let warnings = self.warnings.all();
        let why =
            |label: &str, keys: &HashSet<ObjectName>| self.turns.failures(label, keys, &running);
        Ok(snapshot::state(&plugins, warnings, Some(&why)))
    }

    /// The present state without the names of keys, which cost more than everything else. `None` if
    /// the host shuts down.
    fn counts(&self) -> Option<HostState> {
        let plugins = self.plugins.upgrade()?;
        let warnings = self.warnings.all();
        Some(snapshot::state(&plugins, warnings, None))
    }

    fn running(&self) -> Result<Running, Refused> {
        let plugins = self.plugins.upgrade().ok_or(Refused::Stopping)?;
        let mut controllers = Vec::new();
        for slot in plugins.slots() {
            let generation = slot.current();
            let handled = generation.share.handled.lock();
            let redact = &self.warnings.redact;
            let reads_sensitive = handled.iter().any(|kind| redact.concerns(kind));
            drop(handled);
            let description = generation.description();
            let review = |name: &str, kind: Gvk, plural: &str, namespaced| Keyed {
                controller: controller_label(&description.name, name).into(),
                started: true,
                kind,
                plural: plural.to_owned(),
                aliases: Aliases::default(),
                namespaced,
                reads_sensitive,
            };
            let webhooks = description.webhooks.iter();
            controllers
                .extend(webhooks.map(|of| review(&of.name, admission_kind(), "admissions", true)));
            let conversions = description.conversions.iter();
            controllers.extend(
                conversions.map(|of| review(&of.name, conversion_kind(), "conversions", false)),
            );
            for (wired, _) in generation.everywhere() {
                let controller = &wired.controller;
                let kind = &controller.kind;
                let known = wired.sources.names_of(kind);
                let (name, aliases) = called(known.as_deref(), generation.description(), kind);
                controllers.push(Keyed {
                    controller: controller.label.clone(),
                    started: controller.has_started(),
                    kind: kind.clone(),
                    plural: name.plural,
                    aliases,
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

    fn follow(self, wanted: Wanted, whole: bool, most: Option<usize>) -> Response {
        let room = self.room.clone();
        let tail = Tail {
            host: self,
            wanted,
            whole,
        };
        follow(tail, most, room)
    }
}

/// The names of a kind: those that the API server has told when the kind was first watched, else
/// what is known without a cluster. Sends no request.
fn called(known: Option<&KindNames>, description: &Description, kind: &Gvk) -> (Name, Aliases) {
    let Some(known) = known else {
        return (names::offline(description, kind), Aliases::default());
    };
    let name = Name {
        plural: known.plural.clone(),
        namespaced: known.namespaced,
    };
    let aliases = Aliases {
        singular: known.singular.clone(),
        short: known.short.clone(),
    };
    (name, aliases)
}

impl Source for Tail {
    fn recent(&self, ended_after: Instant) -> Option<Vec<Record>> {
        let plugins = self.host.plugins.upgrade();
        plugins.filter(|plugins| !plugins.is_stopping())?;
        Some(self.host.turns.records(&self.wanted, ended_after))
    }

    fn tell(&self, records: &[&Record]) -> Option<Vec<Turn>> {
        let running = self.host.running().ok()?;
        let mut turns = self.host.turns.tell(records.iter().copied(), &running);
        if !self.whole {
            turns.iter_mut().for_each(leave_objects_out);
        }
        Some(turns)
    }
}
