//! WATCH: the changes of a kind as lines of JSON, or as frames of protobuf.
//!
//! Owns one watch's position in the history. A watch has no queue: when the reader has consumed the
//! previous lines, the watch reads the history from its position. So a slow reader costs nothing,
//! and is told to list again when the history has moved past its position. Must not know how
//! changes are made.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::conversion;
use crate::encode;
use crate::kinds::Target;
use crate::negotiate::Form;
use crate::object::Object;
use crate::read::{View, fresh};
use crate::request::Options;
use crate::selector::Selector;
use crate::state::State;
use crate::status::ApiError;
use crate::store::Change;
use crate::table::table;

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
    changes: Receiver<u64>,
    stop: CancellationToken,
    target: Target,
    namespace: Option<String>,
    selector: Selector,
    view: View,
    /// Everything up to this version was sent.
    position: u64,
    /// Initial objects that were not sent yet.
    initial: VecDeque<Object>,
    /// Whether a bookmark follows them.
    announce: bool,
    columns_sent: bool,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    ended: bool,
    /// What a webhook made of the objects of the last changes.
    converted: Vec<(Object, Object)>,
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
    let changes = state.changes();
    let initial_events = options.initial_events.unwrap_or(asked.is_none());
    let (initial, position) = state.read(|inner| {
        let now = inner.store.version();
        if initial_events {
            let objects = inner.store.list(&target.kind.storage, namespace);
            (objects.map(|(_, object)| object.clone()).collect(), now)
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
        initial,
        announce: options.initial_events == Some(true),
        columns_sent: false,
        bookmarks: options.bookmarks,
        next_bookmark: now + BOOKMARK,
        deadline: now + Duration::from_secs(seconds.min(86_400)),
        ended: false,
        converted: Vec::new(),
    };
    Ok(futures_util::stream::unfold(watch, |mut watch| async {
        let lines = watch.next().await?;
        Some((Ok(Bytes::from(lines)), watch))
    }))
}

impl Watch {
    /// Returns the next lines; `None` at the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if self.ended {
                return None;
            }
            let mut lines = Vec::new();
            if !self.initial.is_empty() {
                let some = self.initial.iter().take(BATCH).cloned().collect();
                match conversion::shown(&self.state, &self.target, some).await {
                    Ok(shown) => {
                        let told = self.added(&mut lines, &shown);
                        drop(self.initial.drain(..told));
                    }
                    Err(error) => self.fail(&mut lines, &error),
                }
            } else if std::mem::take(&mut self.announce) {
                self.bookmark(&mut lines, true);
            } else {
                self.take_changes(&mut lines).await;
                if lines.is_empty() && !self.ended {
                    self.wait(&mut lines).await;
                }
            }
            if !lines.is_empty() {
                return Some(lines);
            }
        }
    }

    /// Writes initial objects, which are in the version of the request. Returns how many: not more
    /// than lines have room for.
    fn added(&mut self, lines: &mut Vec<u8>, shown: &[Object]) -> usize {
        for (at, object) in shown.iter().enumerate() {
            if lines.len() >= LINES {
                return at;
            }
            if self.selector.matches(object) {
                self.line(lines, "ADDED", object);
            }
        }
        shown.len()
    }

    /// Ends the watch with an error.
    fn fail(&mut self, lines: &mut Vec<u8>, error: &ApiError) {
        let status = error.to_value();
        lines.extend(encode::event_as(self.view.wire, "ERROR", &status, false));
        self.ended = true;
    }

    /// Converts the objects of changes, if a webhook does that for the kind.
    async fn convert(&mut self, changes: &[Arc<Change>]) -> Result<(), ApiError> {
        self.converted.clear();
        if self.target.kind.conversion.is_none() {
            return Ok(());
        }
        let mut stored: Vec<Object> = Vec::new();
        for change in changes {
            let objects = [&change.old, &change.new, &change.last];
            stored.extend(objects.into_iter().flatten().cloned());
        }
        let shown = conversion::shown(&self.state, &self.target, stored.clone()).await?;
        self.converted = stored.into_iter().zip(shown).collect();
        Ok(())
    }

    /// Returns an object of a change in the version of the request.
    fn shown(&self, stored: &Object) -> Object {
        let mut converted = self.converted.iter();
        let known = converted.find(|(of, _)| Arc::ptr_eq(of, stored));
        known.map_or_else(|| self.target.view(stored), |(_, shown)| shown.clone())
    }

    async fn take_changes(&mut self, lines: &mut Vec<u8>) {
        self.changes.mark_unchanged();
        let (taken, now) = self.state.read(|inner| {
            let storage = &self.target.kind.storage;
            let taken = inner
                .store
                .since(storage, self.namespace.as_deref(), self.position, BATCH);
            let kind = &self.target.kind;
            let now = inner
                .registry
                .find(&kind.group, &self.target.version().name, &kind.plural);
            let uid = |mark: &str| mark.split('/').next().unwrap_or_default().to_owned();
            (
                taken,
                now.filter(|now| uid(&now.kind.definition) == uid(&kind.definition)),
            )
        });
        let served = now.is_some();
        // A webhook may have moved, or has another certificate.
        if let Some(now) = now.filter(|now| now.kind.conversion.is_some()) {
            self.target = now;
        }
        match taken {
            Ok((changes, position)) => {
                self.position = position;
                self.ended = changes.is_empty() && !served;
                if let Err(error) = self.convert(&changes).await {
                    return self.fail(lines, &error);
                }
                for change in changes {
                    self.change(lines, &change);
                    if lines.len() >= LINES {
                        self.position = change.version;
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

    /// Writes a change as this watch sees it: an object that no longer matches is deleted, one that
    /// begins to match is added.
    fn change(&mut self, lines: &mut Vec<u8>, change: &Change) {
        let shown = |object: &Option<Object>| object.as_ref().map(|o| self.shown(o));
        let matching = |object: Option<Object>| object.filter(|o| self.selector.matches(o));
        let (old, new) = (matching(shown(&change.old)), matching(shown(&change.new)));
        match (old, new) {
            (None, Some(new)) => self.line(lines, "ADDED", &new),
            (Some(_), Some(new)) => self.line(lines, "MODIFIED", &new),
            (Some(old), None) => {
                let last = shown(&change.last).unwrap_or_else(|| {
                    let mut last = Value::clone(&old);
                    last["metadata"]["resourceVersion"] = json!(change.version.to_string());
                    last.into()
                });
                self.line(lines, "DELETED", &last);
            }
            (None, None) => {}
        }
    }

    async fn wait(&mut self, lines: &mut Vec<u8>) {
        let bookmark = if self.bookmarks {
            self.next_bookmark
        } else {
            self.deadline
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => self.ended = true,
            () = tokio::time::sleep_until(self.deadline) => {
                self.ended = true;
                if self.bookmarks {
                    self.bookmark(lines, false);
                }
            }
            () = tokio::time::sleep_until(bookmark), if self.bookmarks => self.bookmark(lines, false),
            changed = self.changes.changed() => self.ended = changed.is_err(),
        }
    }

    fn bookmark(&mut self, lines: &mut Vec<u8>, initial: bool) {
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
        self.line(lines, "BOOKMARK", &object);
    }

    fn line(&mut self, lines: &mut Vec<u8>, kind: &str, object: &Value) {
        let (custom, wire) = (self.target.kind.custom, self.view.wire);
        match self.view.form {
            Form::Plain => lines.extend(encode::event_as(wire, kind, object, custom)),
            Form::Partial => {
                let partial = encode::partial(object);
                lines.extend(encode::event_as(wire, kind, &partial, false));
            }
            Form::Table => {
                let columns = !std::mem::replace(&mut self.columns_sent, true);
                let metadata =
                    json!({ "resourceVersion": object.pointer("/metadata/resourceVersion") });
                let table = table(&self.target, metadata, [object], self.view.include, columns);
                lines.extend(encode::event_as(wire, kind, &table, false));
            }
        }
    }
}
