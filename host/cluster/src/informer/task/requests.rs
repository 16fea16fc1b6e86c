//! The requests of an informer's task: a watch, a list in pages, and a look at the newest version.
//!
//! Watches and lists fill the store as their answers arrive. A request returns how it ended; it
//! must not know what follows from that.

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::time::{Instant, timeout};

use super::Task;
use crate::discovery::Resource;
use crate::error::Error;
use crate::informer::failure::Failure;
use crate::informer::follow::{Follower, end_list, put};
use crate::informer::page::{Page, PageMetadata};
use crate::informer::query::{
    From, METADATA_LIST, accept_list, accept_watch, list_path, newest_path, watch_path,
};
use crate::informer::state::Phase;
use crate::text::Read;

/// The range of watch timeouts in seconds: 5 to 10 minutes, as in client-go, so that watches do not
/// all end at once.
const WATCH_SECONDS: std::ops::RangeInclusive<u64> = 300..=600;
/// How long a watch may be silent past its timeout before its connection counts as dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// A watch that stayed open for this long has worked, even if it delivered nothing. client-go's
/// reflector also resets its backoff after two minutes.
const LIVED: Duration = Duration::from_secs(120);
/// Timeout of the head of an answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a page of a list: the API server's own request timeout.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// A watch that ended sooner than this without an event is fruitless: the next one is delayed.
const FRUITLESS: Duration = Duration::from_secs(1);

impl Task {
    /// Opens a watch and follows it until it ends. With `From::List`, the watch must first send all
    /// objects and the end of the list.
    pub(super) async fn stream(&mut self, resource: &Resource, from: From) -> Result<(), Failure> {
        self.listing = from == From::List;
        let seconds = fastrand::u64(WATCH_SECONDS);
        let spec = &self.shared.spec;
        // Before the request, so that no change of the address is missed.
        let moves = self.reader.moves();
        let open = {
            let path = watch_path(spec, resource, from, seconds);
            let opening = self.reader.open(&path, accept_watch(spec));
            timeout(OPEN_TIMEOUT, opening).await
        };
        let answer = open.unwrap_or(Err(Error::Timeout(OPEN_TIMEOUT)))?;
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
        let following = follower.follow(answer.into_body(), silence);
        let end = match moves {
            None => following.await,
            Some(mut moves) => tokio::select! {
                biased;
                end = following => end,
                // The watch goes on at the new address.
                _ = moves.changed() => Ok("the server has another address".to_owned()),
            },
        };
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
            return Err(Failure::Call(Error::Network(
                format!("the list was cut off: {reason}").into(),
            )));
        }
        self.fruitless = if fruitless { self.fruitless + 1 } else { 0 };
        Ok(())
    }

    /// Lists in pages.
    pub(super) async fn list_paged(&mut self, resource: &Resource) -> Result<(), Failure> {
        self.listing = true;
        let (shared, mut next, mut whole) = (self.shared.clone(), None::<String>, false);
        self.begin_list();
        loop {
            let path = list_path(&shared.spec, resource, next.as_deref(), whole);
            let page = timeout(PAGE_TIMEOUT, self.read_page(&path)).await;
            let page = page.unwrap_or_else(|_| Err(Error::Timeout(PAGE_TIMEOUT).into()));
            let mut page = match page {
                // The pages are too old to continue: request all in one, as in client-go.
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

    /// Returns the server's newest version: that of a consistent list of one object.
    pub(super) async fn newest_version(&self, resource: &Resource) -> Result<u64, Failure> {
        let spec = &self.shared.spec;
        let path = newest_path(spec, resource);
        let asking = self.reader.fetch(&path, Some(METADATA_LIST), PAGE_TIMEOUT);
        let body = asking.await?;
        PageMetadata::of_list(&body)?.version()
    }

    /// Reads one page into the store as it arrives.
    async fn read_page(&self, path: &str) -> Result<PageMetadata, Failure> {
        let shared = &*self.shared;
        let accept = accept_list(&shared.spec);
        let mut body = self.reader.open(path, accept).await?.into_body();
        shared.hear();
        shared.enter(Phase::Listing);
        let (mut page, put) = (Page::default(), |read: Read<'_>| put(shared, read, true));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(Error::Network)?;
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
