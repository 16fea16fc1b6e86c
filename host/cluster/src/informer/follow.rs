//! The events of one watch, read into the store: the store changes first, then the subscribers are told.
//!
//! It owns what each event means. It must not know what comes after the watch: `task` does.

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::time::timeout;

use super::failure::Failure;
use super::lines::Lines;
use super::query::{self, bookmark};
use super::{Cause, Notice, Phase, Shared};
use crate::api::{Refused, chain};
use crate::store::{Older, Shows};
use crate::text::{self, IngestError, Read};
use crate::transport::Body;

/// How long a streaming list may be silent; a server that knows it sends objects, or its end, at once.
const LIST_SILENCE: Duration = Duration::from_secs(60);

/// Reads the events of one watch into the store.
pub(super) struct Follower<'a> {
    pub shared: &'a Shared,
    /// Objects still come as a list.
    pub listing: bool,
    pub events: u64,
    /// An event or a bookmark has come, besides the list.
    pub lived: bool,
    /// The `ERROR` event that ended it.
    pub refused: Option<Refused>,
}

impl Follower<'_> {
    /// Until the stream ends, or has been silent for so long; says how it ended.
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
                Ok(None) => return Ok("the server ended it".into()),
                Ok(Some(Err(error))) => return Ok(chain(error.as_ref())),
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
            "ERROR" => self.refused = Some(Refused::from_event(object)),
            // Newer servers may have more to say.
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
            .map_err(|error| Failure::Nonsense(format!("a bookmark is not valid: {error}")))?;
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
            // A server that knows streaming lists sends no bookmark before the list's end.
            return Err(Failure::NoStreaming(
                "a bookmark that does not end the list".into(),
            ));
        }
        Ok(())
    }
}

/// Puts an object of a list or an event into the store, then tells. The gate is held. What the store shows already takes no room and wakes nobody.
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
        false => Cause::Changed,
        true if !store.is_synced() => Cause::Initial,
        true if store.is_rewinding() => Cause::Rewound,
        true => Cause::Relisted,
    };
    if let Some(upserted) = store.upsert(incoming.build(name), moves) {
        shared.notify(Notice::shown(cause, upserted.old.as_ref(), &upserted.new));
    }
}

/// The list has ended: what it did not show is gone.
pub(super) fn end_list(shared: &Shared, version: u64) -> Result<(), Failure> {
    let gone = shared.store.end_list(version);
    for old in &gone.map_err(|Older| Failure::Older(version))? {
        shared.notify(Notice::gone(old, version));
    }
    Ok(())
}

/// The cluster does not serve the kind any more: all objects are gone.
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
