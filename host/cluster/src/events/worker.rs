//! The task that writes a plugin's events, one request at a time.
//!
//! A request that fails goes back to its lane, and its namespace rests. The task must not wait for
//! anything but the current request.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tokio::time::{Instant, sleep_until};

use super::body;
use super::fence::Events;
use super::lanes::Next;
use super::limit::{Buckets, EventLimit};
use super::record::RecordedEvent;
use super::series::{Key, Series, Step};
use super::waiting::{Item, Of, Shared, What, Write};
use crate::api::{encode, request};
use crate::error::Error;

/// Maximum number of attempts of one request, as in client-go.
const TRIES: u32 = 12;
/// First delay between attempts: 250 ms, doubled up to 10 s, 66 s in total.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// Maximum delay between attempts.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// Interval of checking the series: a sixth of the time after which they end.
const PERIOD: Duration = Duration::from_secs(60);

/// Writes the queued events.
pub(super) struct Worker {
    shared: Arc<Shared>,
    events: Events,
    instance: String,
    series: Series,
    buckets: Buckets,
    /// When the series were last checked.
    looked: Instant,
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Done,
    /// The event or its namespace does not exist.
    Missing,
    /// The server refused the request permanently, for this reason.
    Refused(String),
    /// The request may be retried, at the earliest after this time; with the reason.
    Again(Duration, String),
}

impl Worker {
    /// Creates a worker.
    pub(super) fn new(
        shared: Arc<Shared>,
        events: Events,
        plugin: &str,
        limit: Option<EventLimit>,
    ) -> Self {
        Self {
            shared,
            events,
            instance: body::instance(),
            series: Series::default(),
            buckets: Buckets::new(plugin, limit),
            looked: Instant::now(),
        }
    }

    /// Runs until the plugin is gone.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        tokio::select! {
            biased;
            () = shared.abandoned.cancelled() => {}
            () = self.work() => {}
            () = shared.overdue() => {}
        }
        for _ in 0..shared.waiting.lock().lanes.len() {
            shared.observer.dropped();
        }
    }

    async fn work(&mut self) {
        loop {
            let now = Instant::now();
            if now >= self.looked + PERIOD {
                self.looked = now;
                self.buckets.tell();
                self.write_series(false);
            }
            let next = self.shared.waiting.lock().lanes.next(now);
            match next {
                Next::Item(namespace, item) => self.carry_out(&namespace, item).await,
                Next::Rest(until) => self.rest(Some(until)).await,
                Next::Nothing => {
                    let (flush, closed) = {
                        let waiting = self.shared.waiting.lock();
                        (waiting.flush, waiting.closed)
                    };
                    if (flush || closed) && self.write_series(true) {
                        continue;
                    }
                    if closed {
                        return;
                    }
                    if flush {
                        self.flushed();
                    }
                    self.rest(None).await;
                }
            }
        }
    }

    /// Wakes the callers of a flush, unless new events have arrived.
    fn flushed(&self) {
        let mut waiting = self.shared.waiting.lock();
        if waiting.lanes.len() == 0 {
            waiting.flush = false;
            self.shared.flushed.notify_waiters();
        }
    }

    /// Waits until there may be something to do.
    async fn rest(&self, until: Option<Instant>) {
        let look = (!self.series.is_empty()).then_some(self.looked + PERIOD);
        let next = until.into_iter().chain(look).min();
        let bell = self.shared.bell.notified();
        match next {
            None => bell.await,
            Some(next) => {
                tokio::select! {
                    () = bell => {}
                    () = sleep_until(next) => {}
                }
            }
        }
    }

    async fn carry_out(&mut self, namespace: &str, item: Item) {
        let tries = item.tries + 1;
        let mut write = match item.what {
            What::Write(write) => *write,
            What::Record(event) => match self.fold(event) {
                Some(write) => write,
                None => return,
            },
        };
        loop {
            match self.send(namespace, &write).await {
                Sent::Done => return self.written(namespace, write),
                Sent::Missing => match write.of {
                    Of::Series(Some(event)) => {
                        self.series.forget(&Key::of(&event), &write.name);
                        write = self.new_event(&event);
                    }
                    Of::Series(None) | Of::New(_) => return,
                },
                Sent::Again(at_least, _) if tries < TRIES => {
                    let delay = LONGEST_DELAY.min(FIRST_DELAY * 2_u32.pow(tries - 1));
                    let until = Instant::now() + delay.max(at_least);
                    let what = What::Write(Box::new(write));
                    let mut waiting = self.shared.waiting.lock();
                    return waiting
                        .lanes
                        .put_back(namespace, Item { what, tries }, until);
                }
                Sent::Refused(why) | Sent::Again(_, why) => {
                    return self.shared.observer.failed(&why);
                }
            }
        }
    }

    /// Returns the request for an event; `None` if the event is only counted or over the limit.
    fn fold(&mut self, event: Box<RecordedEvent>) -> Option<Write> {
        match self.series.observe(&Key::of(&event)) {
            Step::Nothing => None,
            Step::Patch { name, body, .. } => Some(Write {
                name,
                body,
                of: Of::Series(Some(event)),
            }),
            Step::Post if self.buckets.admit(event.kind, event.author) => {
                Some(self.new_event(&event))
            }
            Step::Post => {
                self.shared.observer.limited();
                None
            }
        }
    }

    fn new_event(&self, event: &RecordedEvent) -> Write {
        let (name, body) = body::event(event, &self.instance);
        Write {
            name,
            body,
            of: Of::New(Box::new(Key::of(event))),
        }
    }

    fn written(&mut self, namespace: &str, write: Write) {
        self.shared.observer.recorded();
        if let Of::New(key) = write.of {
            self.series.begin(*key, namespace.to_owned(), write.name);
        }
    }

    /// Queues the counts of series that are due, or with `all` of every series with an unwritten
    /// count. Returns whether there were any.
    fn write_series(&mut self, all: bool) -> bool {
        let due = self.series.due(all);
        let any = !due.is_empty();
        for (namespace, name, body) in due {
            let what = What::Write(Box::new(Write {
                name,
                body,
                of: Of::Series(None),
            }));
            let item = Item { what, tries: 0 };
            let has_room = self.shared.waiting.lock().lanes.push(&namespace, item);
            // Without room, the next write carries this count as well.
            if all && !has_room {
                self.shared.observer.dropped();
            }
        }
        any
    }

    async fn send(&self, namespace: &str, write: &Write) -> Sent {
        let Events { connection, fence } = &self.events;
        if let Some(Err(error)) = fence.as_ref().map(|may_send| may_send()) {
            return Sent::Again(Duration::ZERO, error.line());
        }
        let (method, path, content_type) = match &write.of {
            Of::New(_) => (Method::POST, path(namespace, None), "application/json"),
            Of::Series(_) => (
                Method::PATCH,
                path(namespace, Some(&write.name)),
                "application/merge-patch+json",
            ),
        };
        let is_new = method == Method::POST;
        let body = write.body.to_string().into();
        let sent = match request(method, &path, Some(content_type), body) {
            Ok(request) => {
                let timeout = connection.write_timeout();
                connection.call(request, timeout).await
            }
            Err(error) => Err(error),
        };
        match sent {
            Ok(_) => Sent::Done,
            Err(Error::Refused(refused)) if refused.code < 500 && refused.code != 429 => {
                match refused.code {
                    404 => Sent::Missing,
                    // An earlier attempt succeeded although its answer was lost.
                    409 if is_new => Sent::Done,
                    // A namespace that is being deleted accepts no events, and there is no reader
                    // for them.
                    403 if refused
                        .causes
                        .iter()
                        .any(|cause| cause.reason == "NamespaceTerminating") =>
                    {
                        Sent::Missing
                    }
                    _ => Sent::Refused(refused.to_string()),
                }
            }
            Err(error) => Sent::Again(error.retry_after(), error.line()),
        }
    }
}

fn path(namespace: &str, name: Option<&str>) -> String {
    let mut path = "/apis/events.k8s.io/v1/namespaces/".to_owned();
    encode(namespace, &mut path);
    path.push_str("/events");
    if let Some(name) = name {
        path.push('/');
        encode(name, &mut path);
    }
    path
}
