//! One informer's list and watch: a state machine that never ends by itself.
//!
//! ```text
//! Resolve --served--> List --end of list--> Watch --cut--> Watch (from the last version)
//!    ^                 ^  ^                  |  \--410, or three fruitless tries--> List
//!    |                 |  |                  \--no answer, or silent--> Check
//!    \---- 404 --------+--+------------------/
//!
//! Check --the server has reached the version--> Watch
//!       \--its versions went back--> List (believed)
//! ```
//!
//! The server's versions go back when etcd is restored from a backup. A watch from a version that
//! the server has still to reach stays open and silent, possibly for days. So before the task
//! repeats a watch that got no answer, or that brought nothing, it asks the server for its newest
//! version. If that is lower than the store's, the next list is believed although it is older than
//! the store. Each list is consistent: it names no version, so that the server reads with quorum,
//! and no list is older only because a server lags behind.
//!
//! A kind that is not served is waited for. If it was served before, its objects are gone, and told as deleted, as soon as discovery says so too.
//!
//! A list fills the store as it comes; what it did not show is deleted at its end, by comparison. So the store is never empty because of a relist, and holds
//! no list twice.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep, timeout};

use super::failure::Failure;
use super::follow::{Follower, end_list, put, vanish};
use super::groups::Inner;
use super::page::{Page, PageMetadata};
use super::query::{
    From, METADATA_LIST, accept_list, accept_watch, list_path, newest_path, watch_path,
};
use super::{Phase, Shared};
use crate::api::{CallError, chain, request};
use crate::backoff::Backoff;
use crate::connect::Connection;
use crate::discovery::{ClusterError, Resource};
use crate::text::Read;

/// How long the server may keep a watch: drawn from 5 to 10 minutes, as client-go, so that not all end at once.
const WATCH_SECONDS: std::ops::RangeInclusive<u64> = 300..=600;
/// How long past its end a watch may be silent before its connection counts as dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// A watch that stayed open for so long has lived, even if it brought nothing. client-go's
/// reflector, too, begins its back-off anew after two minutes.
const LIVED: Duration = Duration::from_secs(120);
/// After so many watches in a row whose version the server had forgotten, the observer is told:
/// listing takes longer than the server remembers.
const EXPIRED_MANY: u32 = 3;
/// How long the head of an answer may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a page of a list may take: the API server's own limit of a request.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// A watch that ended sooner than this without an event was fruitless: the next one waits.
const FRUITLESS: Duration = Duration::from_secs(1);
/// After so many fruitless watches in a row the version is not to be trusted: list again.
const FRUITLESS_MAX: u32 = 3;
/// Longest wait for a kind that is not served: a user who has just installed a CRD is looking at the screen.
const MISSING_MAX: Duration = Duration::from_secs(5);

pub(super) struct Task {
    connection: Connection,
    shared: Arc<Shared>,
    /// Told where the kind's objects live.
    informers: Weak<Inner>,
    backoff: Backoff,
    missing: Backoff,
    /// Lists are read in pages: streaming ones are not wanted, or the server has none.
    paged: bool,
    fruitless: u32,
    /// Watches in a row whose version the server had forgotten.
    expired: u32,
    /// The last request was to fill the store, and did not get to the end of it.
    listing: bool,
    /// The server's versions went back: the next list is believed.
    rewinding: bool,
    /// How long a watch may be silent.
    silence: Duration,
}

enum State {
    /// Ask which resource serves the kind.
    Resolve,
    /// Fill the store, and go on to watch.
    List(Resource),
    /// Follow the cluster from the store's position on.
    Watch(Resource),
    /// Ask whether the server has reached that position: another server may answer by now, or the
    /// same one with older data.
    Check(Resource),
}

impl Task {
    pub(super) fn new(
        connection: Connection,
        shared: Arc<Shared>,
        informers: Weak<Inner>,
        silence: Duration,
    ) -> Self {
        let (backoff, missing) = (Backoff::new(), Backoff::up_to(MISSING_MAX));
        let paged = !connection.streams_lists();
        Self {
            connection,
            shared,
            informers,
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
        match self.connection.resolve(&self.shared.spec.kind).await {
            Ok(Some(resource)) => {
                if let Some(informers) = self.informers.upgrade() {
                    informers.learn_scope(&resource.kind, resource.namespaced);
                }
                // Whoever used this informer may use another one now: then it ends here.
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
                let (forbidden, retry_after) = match &error {
                    ClusterError::Refused {
                        code, retry_after, ..
                    } => (*code == 403, *retry_after),
                    _ => (false, None),
                };
                self.wait_out(chain(&error), forbidden.then_some("discover"), retry_after)
                    .await;
            }
        }
        State::Resolve
    }

    /// What comes after a list or a watch.
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
                return self.relist(resource, "its watches end at once");
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
                tracing::debug!(kind = %self.shared.spec.kind, reason, "no streaming list: listing pages");
                self.paged = true;
                State::List(resource)
            }
            Failure::Expired(reason) if listing => {
                self.wait_out(reason, None, None).await;
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
                tracing::debug!(kind = %self.shared.spec.kind, ?after, "a watch brought nothing");
                self.fruitless = 0;
                State::Check(resource)
            }
            Failure::Call(CallError::Refused(refused)) => {
                let forbidden = (refused.code == 403).then_some(verb);
                let (wait, busy) = (refused.retry_after, refused.code == 429);
                self.wait_out(CallError::Refused(refused).line(), forbidden, wait)
                    .await;
                match (listing, busy) {
                    (true, _) => State::List(resource),
                    (false, true) => State::Check(resource),
                    (false, false) => self.rewatch(resource),
                }
            }
            Failure::Call(error) => {
                self.wait_out(error.line(), None, None).await;
                if listing {
                    State::List(resource)
                } else {
                    State::Check(resource)
                }
            }
            Failure::Nonsense(reason) => {
                self.wait_out(reason.clone(), None, None).await;
                self.relist(resource, &reason)
            }
        }
    }

    /// After a refusal that is no 410: the same version again, but not for ever.
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

    /// Goes on with the watch, unless the server's versions have gone back.
    async fn check(&mut self, resource: Resource) -> State {
        match self.newest_version(&resource).await {
            Ok(version) if version < self.shared.store.position() => self.rewind(resource, version),
            Ok(_) => State::Watch(resource),
            // A server that is too slow for this, or does not allow it, may still serve the watch.
            Err(Failure::Call(CallError::Timeout(_))) => State::Watch(resource),
            Err(Failure::Call(CallError::Refused(refused))) if refused.code == 403 => {
                State::Watch(resource)
            }
            Err(failure) => self.after(resource, "list", Err(failure)).await,
        }
    }

    /// The server has older data than the store: from here on what it lists is believed.
    fn rewind(&mut self, resource: Resource, version: u64) -> State {
        self.rewinding = true;
        let shared = &self.shared;
        let position = shared.store.position();
        shared
            .observer
            .rewound(&shared.spec.kind, position, version);
        self.relist(resource, "the server's versions went back")
    }

    /// Reports a failure and waits: the back-off, or as long as the server asks.
    async fn wait_out(
        &mut self,
        reason: String,
        forbidden: Option<&'static str>,
        retry_after: Option<Duration>,
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
        sleep(self.backoff.delay().max(retry_after.unwrap_or_default())).await;
    }

    /// Waits after a watch whose version the server had forgotten. That happens; only when it keeps
    /// happening is it told.
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

    /// Opens a watch and follows it until it ends. From the list on, it must first show all objects and their end.
    async fn stream(&mut self, resource: &Resource, from: From) -> Result<(), Failure> {
        self.listing = from == From::List;
        let seconds = fastrand::u64(WATCH_SECONDS);
        let spec = &self.shared.spec;
        let request = get(
            &watch_path(spec, resource, from, seconds),
            accept_watch(spec),
        )?;
        let open = timeout(OPEN_TIMEOUT, self.connection.open(request)).await;
        let answer = open.unwrap_or(Err(CallError::Timeout(OPEN_TIMEOUT)))?;
        let mut follower = Follower {
            shared: &self.shared,
            listing: from == From::List,
            events: 0,
            lived: false,
            refused: None,
        };
        self.shared.hear();
        if follower.listing {
            self.shared.enter(Phase::Listing);
            self.begin_list();
        } else {
            self.shared.enter(Phase::Watching);
        }
        let opened = Instant::now();
        let silence = self.silence.min(Duration::from_secs(seconds) + WATCH_GRACE);
        let end = follower.follow(answer.into_body(), silence).await;
        let Follower {
            listing,
            events,
            lived,
            refused,
            ..
        } = follower;
        let fruitless = events == 0 && opened.elapsed() < FRUITLESS;
        self.listing = listing;
        self.rewinding &= listing;
        if lived || (!listing && opened.elapsed() >= LIVED) {
            self.backoff.reset();
            self.missing.reset();
            self.expired = 0;
        }
        let reason = end?;
        tracing::debug!(kind = %self.shared.spec.kind, reason, events, "a watch ended");
        if let Some(refused) = refused {
            return Err(refused.into());
        }
        if listing {
            return Err(Failure::Call(CallError::Network(
                format!("the list ended before its end: {reason}").into(),
            )));
        }
        self.fruitless = if fruitless { self.fruitless + 1 } else { 0 };
        Ok(())
    }

    /// Lists page by page.
    async fn list_paged(&mut self, resource: &Resource) -> Result<(), Failure> {
        self.listing = true;
        let (shared, mut next, mut whole) = (self.shared.clone(), None::<String>, false);
        self.begin_list();
        loop {
            let path = list_path(&shared.spec, resource, next.as_deref(), whole);
            let page = timeout(PAGE_TIMEOUT, self.read_page(&path)).await;
            let page = page.unwrap_or_else(|_| Err(CallError::Timeout(PAGE_TIMEOUT).into()));
            let mut page = match page {
                // The pages are too old to go on: all in one, as client-go.
                Err(Failure::Expired(_)) if next.is_some() && !whole => {
                    (next, whole) = (None, true);
                    self.begin_list();
                    continue;
                }
                other => other?,
            };
            next = page.next.take().filter(|next| !next.is_empty());
            if next.is_none() {
                let version = page.version()?;
                let _gate = shared.gate();
                end_list(&shared, version)?;
                self.fruitless = 0;
                self.rewinding = false;
                return Ok(());
            }
        }
    }

    fn begin_list(&self) {
        let store = &self.shared.store;
        if self.rewinding {
            store.begin_rewind();
        } else {
            store.begin_list();
        }
    }

    /// How far the server's data goes: the version of a consistent list, of which one object is
    /// read.
    async fn newest_version(&self, resource: &Resource) -> Result<u64, Failure> {
        let spec = &self.shared.spec;
        let request = get(&newest_path(spec, resource), Some(METADATA_LIST))?;
        let (_, body) = self.connection.call(request, PAGE_TIMEOUT).await?;
        PageMetadata::of_list(&body)?.version()
    }

    /// Reads one page into the store, as it comes.
    async fn read_page(&self, path: &str) -> Result<PageMetadata, Failure> {
        let shared = &*self.shared;
        let request = get(path, accept_list(&shared.spec))?;
        let mut body = self.connection.open(request).await?.into_body();
        shared.hear();
        shared.enter(Phase::Listing);
        let (mut page, put) = (Page::default(), |read: Read<'_>| put(shared, read, true));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(CallError::Network)?;
            shared.hear();
            if let Ok(piece) = frame.into_data() {
                let _gate = shared.gate();
                page.push(&piece, &shared.ingest, put)?;
            }
        }
        let _gate = shared.gate();
        page.end(&shared.ingest, put)
    }
}

fn get(path: &str, accept: Option<&'static str>) -> Result<Request<Bytes>, CallError> {
    let mut request = request(Method::GET, path, None, Bytes::new())?;
    if let Some(accept) = accept {
        let accept = HeaderValue::from_static(accept);
        request.headers_mut().insert(header::ACCEPT, accept);
    }
    Ok(request)
}
