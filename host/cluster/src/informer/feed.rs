//! An informer without a connection: callers feed it a server's output, and the store and notices
//! behave as usual. For benchmarks only.

use std::sync::Arc;

use super::follow::{self, Follower};
use super::notice::Subscriber;
use super::observer::NoInformerObserver;
use super::page::Page;
use super::running::Shared;
use super::spec::WatchSpec;
use crate::store::Store;
use crate::text::Read;

/// Takes lines and pages, and maintains a store and notices.
pub struct Feed {
    shared: Arc<Shared>,
    listing: bool,
}

impl Feed {
    /// Creates an empty store, which only the methods below fill.
    pub fn new(spec: WatchSpec, subscriber: Option<Arc<dyn Subscriber>>) -> Self {
        let shared = Shared::new(0, spec, Arc::new(NoInformerObserver));
        if let Some(subscriber) = subscriber {
            shared.add(0, subscriber);
        }
        Self {
            shared,
            listing: false,
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Begins a list: of pages, or of lines up to the bookmark that ends the list.
    pub fn begin_list(&mut self) {
        self.listing = true;
        self.shared.store.begin_list();
    }

    /// Feeds a page of the list, in pieces as a connection delivers them. Returns whether the page
    /// was valid.
    pub fn page(&self, body: &[u8]) -> bool {
        let (shared, mut page) = (&*self.shared, Page::default());
        let put = |read: Read<'_>| follow::put(shared, read, true);
        let _gate = shared.gate();
        let mut pieces = body.chunks(16 << 10);
        pieces.all(|piece| page.push(piece, &shared.ingest, put).is_ok())
            && page.end(&shared.ingest, put).is_ok()
    }

    /// Ends the list after its last page. Returns whether the list was valid.
    pub fn end_list(&mut self, version: u64) -> bool {
        self.listing = false;
        let _gate = self.shared.gate();
        follow::end_list(&self.shared, version).is_ok()
    }

    /// Feeds a line of a watch. Returns whether the line was valid.
    pub fn line(&mut self, line: &[u8]) -> bool {
        let mut follower = Follower {
            shared: &self.shared,
            listing: self.listing,
            events: 0,
            lived: false,
            refused: None,
        };
        let sound = follower.line(line).is_ok();
        self.listing = follower.listing;
        sound
    }

    /// Number of objects that could not be kept.
    pub fn skipped(&self) -> u64 {
        self.shared.state().skipped
    }
}
