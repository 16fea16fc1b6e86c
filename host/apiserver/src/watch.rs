//! WATCH: the changes of a kind as lines of JSON, or as frames of protobuf.
//!
//! Owns one watch's position in the history. A watch has no queue: when the reader has consumed the
//! previous lines, the watch reads the history from its position. So a slow reader costs nothing,
//! and is told to list again when the history has moved past its position. What is the same for all
//! watches is in `events`. Must not know how changes are made.

mod line;
mod show;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use line::Lines;
use serde_json::json;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::encode;
use crate::kinds::Target;
use crate::object::{Shown, Stored};
use crate::read::{View, fresh};
use crate::registry::Registry;
use crate::request::Options;
use crate::selector::Selector;
use crate::state::State;
use crate::status::ApiError;

/// The number of changes that are read from the history at once, and so the lines that wait for a
/// reader.
const BATCH: usize = 64;
/// The size of lines after which no more are read, so that large objects do not add up in memory
/// for a client that does not read.
const LINES: usize = 1 << 20;
/// How often an idle watch sends a bookmark.
const BOOKMARK: Duration = Duration::from_secs(60);

struct Watch {
    state: Arc<State>,
    changes: Receiver<()>,
    stop: CancellationToken,
    target: Target,
    namespace: Option<String>,
    selector: Selector,
    view: View,
    /// Everything up to this version was sent.
    position: u64,
    /// Whether there may be changes after it, of which no notification will come any more.
    behind: bool,
    /// Initial objects that were not sent yet.
    initial: VecDeque<Stored>,
    /// Whether a bookmark follows them.
    announce: bool,
    columns_sent: bool,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    ended: bool,
    /// The registry in which the kind was looked up last, and whether it serves the kind.
    registry: Option<Arc<Registry>>,
    served: bool,
}

/// Starts a watch. Errors of the request are returned here; later errors are sent in the stream.
pub(crate) async fn watch(
    state: &Arc<State>,
    target: &Target,
    namespace: Option<&str>,
    options: &Options,
    view: View,
    stop: CancellationToken,
) -> Result<impl Stream<Item = Result<Bytes, std::convert::Infallible>> + use<>, ApiError> {
    options.check_list()?;
    let selector = Selector::parse(target, &options.label_selector, &options.field_selector)?;
    let asked = options
        .version_number()
        .map_err(|why| ApiError::new(500, "", format!("resourceVersion: {why}")))?;
    // A watch without an initial list does not wait for a future version: it stays silent until
    // then, as in kube-apiserver.
    if options.initial_events == Some(true)
        && let Some(version) = asked
    {
        fresh(state, version).await?;
    }
    // Subscribe before the state is read, so that no change is missed in between.
    let changes = state.changes(&target.kind.storage, namespace);
    let initial_events = options.initial_events.unwrap_or(asked.is_none());
    let (initial, position) = state.read(|inner| {
        let now = inner.store.version();
        if initial_events {
            let objects = inner.store.list_stored(&target.kind.storage, namespace);
            (objects.map(|(_, stored)| stored.clone()).collect(), now)
        } else {
            (VecDeque::new(), asked.unwrap_or(now))
        }
    });
    // Watches without a timeout end after 30 to 60 minutes, as in a real server.
    let seconds = options
        .timeout_seconds
        .unwrap_or_else(|| fastrand::u64(1800..3600));
    let now = Instant::now();
    let watch = Watch {
        state: state.clone(),
        changes,
        stop,
        target: target.clone(),
        namespace: namespace.map(str::to_owned),
        selector,
        view,
        position,
        behind: true,
        initial,
        announce: options.initial_events == Some(true),
        columns_sent: false,
        bookmarks: options.bookmarks,
        next_bookmark: now + BOOKMARK,
        deadline: now + Duration::from_secs(seconds.min(86_400)),
        ended: false,
        registry: None,
        served: true,
    };
    Ok(futures_util::stream::unfold(watch, |mut watch| async {
        let lines = watch.next().await?;
        Some((Ok(lines), watch))
    }))
}

impl Watch {
    /// Returns the next lines; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.ended {
                return None;
            }
            let mut lines = Lines::default();
            if !self.initial.is_empty() {
                self.take_initial(&mut lines).await;
            } else if std::mem::take(&mut self.announce) {
                self.bookmark(&mut lines, true);
            } else if self.behind {
                self.take_changes(&mut lines).await;
                if lines.is_empty() && self.behind {
                    // A selector may pass over the whole history; others go on meanwhile.
                    tokio::task::yield_now().await;
                }
            } else {
                self.wait(&mut lines).await;
            }
            if !lines.is_empty() {
                return Some(lines.joined());
            }
        }
    }

    async fn take_initial(&mut self, lines: &mut Lines) {
        let some: Vec<Stored> = self.initial.iter().take(BATCH).cloned().collect();
        match self.shown(some).await {
            Ok(shown) => {
                let told = self.added(lines, &shown);
                drop(self.initial.drain(..told));
            }
            Err(error) => self.fail(lines, &error),
        }
        if self.initial.is_empty() {
            // Its room is not needed any more.
            self.initial = VecDeque::new();
        }
    }

    /// Writes initial objects, which are in the version of the request. Returns how many: not more
    /// than lines have room for.
    fn added(&mut self, lines: &mut Lines, shown: &[Shown]) -> usize {
        for (at, shown) in shown.iter().enumerate() {
            if lines.size() >= LINES {
                return at;
            }
            if self.selector.accepts(shown) {
                self.line(lines, "ADDED", shown);
            }
        }
        shown.len()
    }

    /// Ends the watch with an error.
    fn fail(&mut self, lines: &mut Lines, error: &ApiError) {
        let status = error.to_value();
        let line = encode::event_as(self.view.wire, "ERROR", &status, false);
        lines.push(line.into());
        self.ended = true;
    }

    async fn take_changes(&mut self, lines: &mut Lines) {
        self.changes.mark_unchanged();
        let (taken, version, registry) = self.state.read(|inner| {
            let (storage, namespace) = (&self.target.kind.storage, self.namespace.as_deref());
            let taken = inner.store.since(storage, namespace, self.position, BATCH);
            let known = self.registry.as_ref();
            let is_new = known.is_none_or(|known| !Arc::ptr_eq(known, &inner.registry));
            let registry = is_new.then(|| inner.registry.clone());
            (taken, inner.store.version(), registry)
        });
        if self.state.has_failed() {
            // What was read may be lost.
            self.ended = true;
            return;
        }
        if let Some(registry) = registry {
            self.follow(registry);
        }
        match taken {
            Ok((changes, position)) => {
                self.position = position;
                // Changes that are left, and that the kind is gone, are not notified again.
                self.behind = position < version || !self.served;
                self.ended = changes.is_empty() && !self.served;
                let mut converted = match self.convert(&changes).await {
                    Ok(converted) => converted.into_iter(),
                    Err(error) => return self.fail(lines, &error),
                };
                for change in &changes {
                    match converted.next() {
                        Some(objects) => self.converted(lines, change, objects),
                        None => self.change(lines, change),
                    }
                    if lines.size() >= LINES {
                        self.position = change.version;
                        self.behind = true;
                        break;
                    }
                }
            }
            Err(compacted) => {
                let error = ApiError::too_old(self.position, compacted.oldest);
                self.fail(lines, &error);
            }
        }
    }

    /// Looks the kind up in a new registry.
    fn follow(&mut self, registry: Arc<Registry>) {
        let kind = &self.target.kind;
        let now = registry.find(&kind.group, &self.target.version().name, &kind.plural);
        let uid = |mark: &str| mark.split('/').next().unwrap_or_default().to_owned();
        let now = now.filter(|now| uid(&now.kind.definition) == uid(&kind.definition));
        self.served = now.is_some();
        // A webhook may have moved, or has another certificate.
        if let Some(now) = now.filter(|now| now.kind.conversion.is_some()) {
            self.target = now;
        }
        self.registry = Some(registry);
    }

    async fn wait(&mut self, lines: &mut Lines) {
        let until = match self.bookmarks {
            true => self.next_bookmark.min(self.deadline),
            false => self.deadline,
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => self.ended = true,
            () = tokio::time::sleep_until(until) => {
                if self.bookmarks {
                    // Writes elsewhere do not wake this watch, but move the version on.
                    self.take_changes(lines).await;
                    if !self.ended {
                        self.bookmark(lines, false);
                    }
                }
                self.ended |= until == self.deadline;
            }
            changed = self.changes.changed() => {
                self.behind = true;
                self.ended = changed.is_err();
            }
        }
    }

    fn bookmark(&mut self, lines: &mut Lines, initial: bool) {
        self.next_bookmark = Instant::now() + BOOKMARK;
        let ahead = self.state.read(|inner| inner.store.version()) < self.position;
        if !self.bookmarks || ahead {
            return;
        }
        let mut metadata = json!({ "resourceVersion": self.position.to_string() });
        if initial {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object = json!({
            "apiVersion": self.target.api_version(),
            "kind": self.target.kind.kind,
            "metadata": metadata,
        });
        self.line(lines, "BOOKMARK", &Shown::Made(object.into()));
    }
}
