//! Reads the events of one watch into the store: the store changes first, then the subscribers are
//! notified.
//!
//! This module owns the meaning of each event. It must not know what follows the watch; `task`
//! does.

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::time::timeout;

use super::failure::Failure;
use super::lines::Lines;
use super::notice::{Notice, NoticeCause};
use super::query::{self, bookmark};
use super::running::Shared;
use super::state::Phase;
use crate::status::Status;
use crate::store::{Older, Shows};
use crate::text::{self, IngestError, Read};
use crate::transport::Body;
use vmhost_core::chain_line;

/// How long a streaming list may be silent; a server that supports it sends objects, or its end, at
/// once.
const LIST_SILENCE: Duration = Duration::from_secs(60);

/// Reads the events of one watch into the store.
pub(super) struct Follower<'a> {
    pub shared: &'a Shared,
    /// Whether objects still belong to the list.
    pub listing: bool,
    pub events: u64,
    /// Whether an event or a bookmark has arrived after the list.
    pub lived: bool,
    /// The `ERROR` event that ended the watch.
    pub refused: Option<Status>,
}

impl Follower<'_> {
    /// Follows the stream until it ends, or has been silent for `silence`. Returns how the stream
    /// ended.
    pub(super) async fn follow(
        &mut self,
        mut body: Body,
        silence: Duration,
    ) -> Result<String, Failure> {
        let mut lines = Lines::default();
        loop {
            let patience = if self.listing { LIST_SILENCE } else { silence };
            let frame = match timeout(patience, body.frame()).await {
                Err(_) if self.listing => {
                    return Err(Failure::NoStreaming(format!("silent for {patience:?}")));
                }
                Err(_) if self.events == 0 => return Err(Failure::Silent(patience)),
                Err(_) => return Ok(format!("silent for {patience:?}")),
                Ok(None) => return Ok("the server closed it".into()),
                Ok(Some(Err(error))) => return Ok(chain_line(error.as_ref())),
                Ok(Some(Ok(frame))) => frame,
            };
            self.shared.hear();
            if let Ok(piece) = frame.into_data() {
                lines.push(&piece, |line| self.line(line))?;
            }
            if self.refused.is_some() {
                return Ok("an error event".into());
            }
        }
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), Failure> {
        if self.refused.is_some() {
            return Ok(());
        }
        self.events += 1;
        let listing = self.listing;
        let _gate = self.shared.gate();
        let parsed = std::str::from_utf8(line)
            .map_err(IngestError::from)
            .and_then(|line| Ok(query::event(line)?));
        let (kind, object) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                skip(self.shared, &error);
                return Ok(());
            }
        };
        match &*kind {
            "ADDED" | "MODIFIED" => {
                put(self.shared, self.shared.ingest.object(object), self.listing);
            }
            "DELETED" => self.deleted(object),
            "BOOKMARK" => self.bookmark(object)?,
            "ERROR" => self.refused = Some(Status::from_event(object)),
            // Newer servers may send other types.
            _ => {}
        }
        self.lived |= !listing && self.refused.is_none();
        Ok(())
    }

    fn deleted(&self, object: &str) {
        match text::head(object) {
            Ok(head) => {
                let (store, moves) = (&self.shared.store, !self.listing);
                if let Some(old) = store.delete(&head.name, &head.uid, head.version, moves) {
                    self.shared.notify(Notice::gone(&old, head.version));
                }
            }
            Err(error) => skip(self.shared, &error),
        }
    }

    fn bookmark(&mut self, object: &str) -> Result<(), Failure> {
        let bookmark = bookmark(object)
            .map_err(|error| Failure::Nonsense(format!("invalid bookmark: {error}")))?;
        let Some(version) = bookmark.version else {
            return Err(Failure::Nonsense("a bookmark has no version".into()));
        };
        if !self.listing {
            self.shared.store.set_position(version);
        } else if bookmark.ends_list {
            end_list(self.shared, version)?;
            self.listing = false;
            self.shared.enter(Phase::Watching);
        } else {
            // A server that supports streaming lists sends no bookmark before the end of the list.
            return Err(Failure::NoStreaming(
                "a bookmark that does not end the list".into(),
            ));
        }
        Ok(())
    }
}

/// Puts an object of a list or an event into the store, then notifies. The caller holds the gate.
/// An object that the store already shows takes no memory and notifies no subscriber.
pub(super) fn put(shared: &Shared, read: Read<'_>, listing: bool) {
    let incoming = match read {
        Ok(incoming) => incoming,
        Err(error) => return skip(shared, &error),
    };
    let (store, moves) = (&shared.store, !listing);
    let name = match store.shows(&incoming.head, moves) {
        Shows::This => return,
        Shows::Another(name) => name,
        Shows::Nothing => incoming.head.name.clone(),
    };
    let cause = match listing {
        false => NoticeCause::Changed,
        true if !store.is_synced() => NoticeCause::Initial,
        true if store.is_rewinding() => NoticeCause::Rewound,
        true => NoticeCause::Relisted,
    };
    if let Some(upserted) = store.upsert(incoming.build(name), moves) {
        shared.notify(Notice {
            managed: incoming.managed.filter(|_| !listing),
            ..Notice::shown(cause, upserted.old.as_ref(), &upserted.new)
        });
    }
}

/// Ends the list: objects that it did not show are deleted.
pub(super) fn end_list(shared: &Shared, version: u64) -> Result<(), Failure> {
    let gone = shared.store.end_list(version);
    for old in &gone.map_err(|Older| Failure::Older(version))? {
        shared.notify(Notice::gone(old, version));
    }
    Ok(())
}

/// Deletes all objects: the cluster no longer serves the kind.
pub(super) fn vanish(shared: &Shared) {
    let version = shared.store.position();
    for old in &shared.store.vanish() {
        shared.notify(Notice::gone(old, version.max(old.version)));
    }
}

fn skip(shared: &Shared, error: &IngestError) {
    shared.count(|progress| progress.skipped += 1);
    shared.observer.skipped(&shared.spec.kind, error);
}
