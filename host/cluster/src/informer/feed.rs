//! An informer's inside without a connection: what a server would send goes in, the store and its notices are as they would be. For benchmarks only.

use std::sync::Arc;

use super::follow::{self, Follower};
use super::page::Page;
use super::{NoInformerObserver, Shared, Subscriber, WatchSpec};
use crate::store::Store;
use crate::text::Read;

/// Lines and pages in, store and notices out.
pub struct Feed {
    shared: Arc<Shared>,
    listing: bool,
}

impl Feed {
    /// An empty store, which nobody fills but the calls below.
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

    /// What was fed.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// A list begins: of pages, or of lines up to the bookmark that ends it.
    pub fn begin_list(&mut self) {
        self.listing = true;
        self.shared.store.begin_list();
    }

    /// A page of the list, in pieces as a connection brings them. Did it make sense?
    pub fn page(&self, body: &[u8]) -> bool {
        let (shared, mut page) = (&*self.shared, Page::default());
        let put = |read: Read<'_>| follow::put(shared, read, true);
        let _gate = shared.gate();
        let mut pieces = body.chunks(16 << 10);
        pieces.all(|piece| page.push(piece, &shared.ingest, put).is_ok())
            && page.end(&shared.ingest, put).is_ok()
    }

    /// The last page has been. Returns whether the list made sense.
    pub fn end_list(&mut self, version: u64) -> bool {
        self.listing = false;
        let _gate = self.shared.gate();
        follow::end_list(&self.shared, version).is_ok()
    }

    /// A line of a watch. Did it make sense?
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

    /// How many objects could not be kept.
    pub fn skipped(&self) -> u64 {
        self.shared.state().skipped
    }
}
