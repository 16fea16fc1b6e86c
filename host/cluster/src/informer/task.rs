//! **Watch.** One informer's list and watch: a state machine that never ends by itself. It decides
//! what is asked next; `requests` asks.
//!
//! ```text
//! Resolve --served--> List --end of list--> Watch --cut--> Watch (from the last version)
//!    ^                 ^  ^                  |  \--410, or three fruitless attempts--> List
//!    |                 |  |                  \--no answer, or silent--> Check
//!    \---- 404 --------+--+------------------/
//!
//! Check --the server has reached the version--> Watch
//!       \--its versions went back--> List (overrides the store)
//! ```
//!
//! The server's versions go back when etcd is restored from a backup. A watch from a version that
//! the server has not reached stays open and silent, possibly for days. So before the task repeats
//! a watch that got no answer or delivered nothing, it asks the server for its newest version. If
//! that is lower than the store's, the next list overrides the store although the list is older.
//! Each list is consistent: it names no version, so the server reads with quorum, and no list is
//! older only because a server lags behind.
//!
//! The task waits for a kind that is not served. If the kind was served before, its objects are
//! deleted, with notices, as soon as discovery confirms that.
//!
//! A list fills the store as it arrives; at its end, objects that it did not show are deleted. So a
//! relist never empties the store, and the store never holds a list twice.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::failure::Failure;
use super::follow::vanish;
use super::query::From;
use super::running::Shared;
use super::state::Phase;
use crate::backoff::Backoff;
use crate::discovery::Resource;
use crate::error::Error;
use crate::reader::Reader;
use vmhost_core::{Gvk, chain_line};

mod requests;

/// After this many watches in a row with a compacted version, the observer is notified: listing
/// takes longer than the server keeps versions.
const EXPIRED_MANY: u32 = 3;
/// After this many fruitless watches in a row the version is suspect: list again.
const FRUITLESS_MAX: u32 = 3;
/// Maximum delay between two checks for a kind that is not served: a user who has just installed a
/// CRD is waiting.
const MISSING_MAX: Duration = Duration::from_secs(5);

/// A callback that receives a kind and whether it is namespaced.
pub(super) type LearnScope = Box<dyn Fn(&Gvk, bool) + Send + Sync>;

pub(super) struct Task {
    reader: Reader,
    shared: Arc<Shared>,
    /// Receives whether the kind is namespaced.
    learn_scope: LearnScope,
    backoff: Backoff,
    missing: Backoff,
    /// Whether lists are read in pages, because streaming lists are off or not supported by the
    /// server.
    paged: bool,
    fruitless: u32,
    /// Number of watches in a row with a compacted version.
    expired: u32,
    /// Whether the last request was to fill the store, and failed before its end.
    listing: bool,
    /// Whether the server's versions went back, so that the next list overrides the store.
    rewinding: bool,
    /// How long a watch may be silent.
    silence: Duration,
}

enum State {
    /// Ask which resource serves the kind.
    Resolve,
    /// Fill the store, then watch.
    List(Resource),
    /// Follow the cluster from the store's position on.
    Watch(Resource),
    /// Ask whether the server has reached that position: another server may answer by now, or the
    /// same one with older data.
    Check(Resource),
}

impl Task {
    pub(super) fn new(
        reader: Reader,
        shared: Arc<Shared>,
        learn_scope: LearnScope,
        silence: Duration,
    ) -> Self {
        let (backoff, missing) = (Backoff::new(), Backoff::up_to(MISSING_MAX));
        let paged = !reader.streams_lists();
        Self {
            reader,
            shared,
            learn_scope,
            backoff,
            missing,
            paged,
            fruitless: 0,
            expired: 0,
            listing: true,
            rewinding: false,
            silence,
        }
    }

    pub(super) async fn run(mut self) {
        let mut state = State::Resolve;
        loop {
            state = match state {
                State::Resolve => self.resolve().await,
                State::List(resource) if self.paged => {
                    let result = self.list_paged(&resource).await;
                    self.after(resource, "list", result).await
                }
                State::List(resource) => {
                    let result = self.stream(&resource, From::List).await;
                    self.after(resource, "watch", result).await
                }
                State::Watch(resource) => {
                    let result = self
                        .stream(&resource, From::Version(self.shared.store.position()))
                        .await;
                    self.after(resource, "watch", result).await
                }
                State::Check(resource) => self.check(resource).await,
            };
        }
    }

    async fn resolve(&mut self) -> State {
        match self.reader.resolve_named(&self.shared.spec.kind).await {
            Ok(Some((resource, names))) => {
                *self.shared.names.lock() = Some(Arc::new(names));
                (self.learn_scope)(&resource.kind, resource.namespaced);
                // The users of this informer may have moved to another one: then this task ends
                // here.
                tokio::task::yield_now().await;
                return self.relist(resource, "the kind is served");
            }
            Ok(None) => {
                self.shared.enter(Phase::WaitingForKind);
                if self.shared.store.is_synced() {
                    let _gate = self.shared.gate();
                    vanish(&self.shared);
                }
                sleep(self.missing.delay()).await;
            }
            Err(error) => {
                let forbidden = (error.code() == Some(403)).then_some("discover");
                self.wait_out(chain_line(&error), forbidden, error.retry_after())
                    .await;
            }
        }
        State::Resolve
    }

    /// Returns the next state after a list or a watch.
    async fn after(
        &mut self,
        resource: Resource,
        verb: &'static str,
        result: Result<(), Failure>,
    ) -> State {
        let listing = self.listing;
        let failure = match result {
            Ok(()) if self.fruitless >= FRUITLESS_MAX => {
                self.fruitless = 0;
                return self.relist(resource, "its watches end immediately");
            }
            Ok(()) if self.fruitless > 0 => {
                let delay = self.backoff.delay();
                sleep(delay).await;
                return State::Watch(resource);
            }
            Ok(()) => return State::Watch(resource),
            Err(failure) => failure,
        };
        match failure {
            Failure::NotServed => {
                self.shared.enter(Phase::WaitingForKind);
                sleep(self.missing.delay()).await;
                State::Resolve
            }
            Failure::NoStreaming(reason) => {
                tracing::debug!(kind = %self.shared.spec.kind, reason, "no streaming list; listing in pages");
                self.paged = true;
                State::List(resource)
            }
            Failure::Expired(reason) if listing => {
                self.wait_out(reason, None, Duration::ZERO).await;
                State::List(resource)
            }
            Failure::Expired(reason) => {
                self.wait_out_expiry(&reason).await;
                self.relist(resource, &reason)
            }
            Failure::Older(version) => {
                sleep(self.backoff.delay()).await;
                self.rewind(resource, version)
            }
            Failure::Silent(after) => {
                tracing::debug!(kind = %self.shared.spec.kind, ?after, "a watch delivered nothing");
                self.fruitless = 0;
                State::Check(resource)
            }
            Failure::Call(error) => {
                let forbidden = (error.code() == Some(403)).then_some(verb);
                self.wait_out(error.line(), forbidden, error.retry_after())
                    .await;
                match error.code() {
                    _ if listing => State::List(resource),
                    None | Some(429) => State::Check(resource),
                    Some(_) => self.rewatch(resource),
                }
            }
            Failure::Nonsense(reason) => {
                self.wait_out(reason.clone(), None, Duration::ZERO).await;
                self.relist(resource, &reason)
            }
        }
    }

    /// After a refusal other than 410: repeats the watch from the same version, up to a limit.
    fn rewatch(&mut self, resource: Resource) -> State {
        self.fruitless += 1;
        if self.fruitless < FRUITLESS_MAX {
            return State::Check(resource);
        }
        self.fruitless = 0;
        self.relist(resource, "its watches are refused")
    }

    fn relist(&self, resource: Resource, reason: &str) -> State {
        if self.shared.store.is_synced() {
            self.shared.count(|progress| progress.relists += 1);
            self.shared.observer.relist(&self.shared.spec.kind, reason);
        }
        State::List(resource)
    }

    /// Continues with the watch, unless the server's versions went back.
    async fn check(&mut self, resource: Resource) -> State {
        match self.newest_version(&resource).await {
            Ok(version) if version < self.shared.store.position() => self.rewind(resource, version),
            Ok(_) => State::Watch(resource),
            // A server that is too slow for this request, or forbids it, may still serve the watch.
            Err(Failure::Call(Error::Timeout(_))) => State::Watch(resource),
            Err(Failure::Call(error)) if error.code() == Some(403) => State::Watch(resource),
            Err(failure) => self.after(resource, "list", Err(failure)).await,
        }
    }

    /// Relists because the server has older data than the store: its next list overrides the store.
    fn rewind(&mut self, resource: Resource, version: u64) -> State {
        self.rewinding = true;
        let shared = &self.shared;
        let position = shared.store.position();
        shared
            .observer
            .rewound(&shared.spec.kind, position, version);
        self.relist(resource, "the server's versions went back")
    }

    /// Reports a failure and waits: for the backoff, or as long as the server asks.
    async fn wait_out(
        &mut self,
        reason: String,
        forbidden: Option<&'static str>,
        retry_after: Duration,
    ) {
        self.shared.count(|progress| progress.failures += 1);
        self.shared.observer.failed(&self.shared.spec.kind, &reason);
        self.shared.enter(match forbidden {
            Some(verb) => Phase::Forbidden {
                verb,
                message: reason,
            },
            None => Phase::Failing { reason },
        });
        sleep(self.backoff.delay().max(retry_after)).await;
    }

    /// Waits after a watch with a compacted version. That happens normally; only repeated
    /// occurrences are reported.
    async fn wait_out_expiry(&mut self, reason: &str) {
        self.expired += 1;
        let shared = &self.shared;
        if self.expired == EXPIRED_MANY {
            shared.observer.keeps_expiring(&shared.spec.kind, reason);
        }
        let reason = reason.to_owned();
        shared.count(|progress| progress.phase = Phase::Failing { reason });
        sleep(self.backoff.delay()).await;
    }
}
