//! The task that writes a plugin's events, one request at a time.
//!
//! A request that fails goes back to its lane, and its namespace rests. It must not wait for
//! anything but the request that is under way.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::lanes::Next;
use super::limit::{Bucket, EventLimit};
use super::series::{Key, Series, Step};
use super::{RecordedEvent, Shared, body};
use crate::api::{CallError, encode, request};
use crate::connect::Connection;

/// Tries of one request, as client-go.
const TRIES: u32 = 12;
/// Delays between them: 250 ms doubled up to 10 s, 66 s in all.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// See `FIRST_DELAY`.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// How often series are looked through: a sixth of the time after which they end.
const PERIOD: Duration = Duration::from_secs(60);

/// What waits in a lane.
pub(super) struct Item {
    what: What,
    /// Requests that failed.
    tries: u32,
}

enum What {
    /// Perhaps the repetition of another one.
    Record(Box<RecordedEvent>),
    Write(Box<Write>),
}

/// One request.
struct Write {
    /// The event's name in the cluster.
    name: String,
    body: Value,
    of: Of,
}

enum Of {
    /// A new event; under this key begins its series.
    New(Box<Key>),
    /// The count of a series. One that is gone from the cluster begins anew with this event.
    Series(Option<Box<RecordedEvent>>),
}

/// Writes what waits.
pub(super) struct Worker {
    shared: Arc<Shared>,
    connection: Connection,
    instance: String,
    series: Series,
    bucket: Bucket,
    /// When the series were looked through.
    looked: Instant,
}

/// How a request ended.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Done,
    /// There is no such event, or no such namespace.
    Missing,
    /// It was refused for good; why.
    Refused(String),
    /// It may be tried again, after this time at least; why.
    Again(Duration, String),
}

impl Item {
    /// An event that was just recorded.
    pub(super) fn of(event: RecordedEvent) -> Self {
        Self {
            what: What::Record(Box::new(event)),
            tries: 0,
        }
    }
}

impl Worker {
    /// It has written nothing yet.
    pub(super) fn new(
        shared: Arc<Shared>,
        connection: Connection,
        plugin: &str,
        limit: Option<EventLimit>,
    ) -> Self {
        Self {
            shared,
            connection,
            instance: body::instance(),
            series: Series::default(),
            bucket: Bucket::new(plugin, limit),
            looked: Instant::now(),
        }
    }

    /// Ends with the plugin.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        tokio::select! {
            () = self.work() => {}
            () = shared.overdue() => {}
        }
        for _ in 0..shared.lock().lanes.len() {
            shared.observer.dropped();
        }
    }

    async fn work(&mut self) {
        loop {
            let now = Instant::now();
            if now >= self.looked + PERIOD {
                self.looked = now;
                self.bucket.tell();
                self.write_series(false);
            }
            let next = self.shared.lock().lanes.next(now);
            match next {
                Next::Item(namespace, item) => self.carry_out(&namespace, item).await,
                Next::Rest(until) => self.rest(Some(until)).await,
                Next::Nothing => {
                    let (flush, closed) = {
                        let waiting = self.shared.lock();
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

    /// Tells the callers that wait for it, unless something has come since.
    fn flushed(&self) {
        let mut waiting = self.shared.lock();
        if waiting.lanes.len() == 0 {
            waiting.flush = false;
            self.shared.flushed.notify_waiters();
        }
    }

    /// Until there may be something to do.
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
                        self.series.forget(&Key::of(&event));
                        write = self.new_event(&event);
                    }
                    Of::Series(None) | Of::New(_) => return,
                },
                Sent::Again(at_least, _) if tries < TRIES => {
                    let delay = LONGEST_DELAY.min(FIRST_DELAY * 2_u32.pow(tries - 1));
                    let until = Instant::now() + delay.max(at_least);
                    let what = What::Write(Box::new(write));
                    let mut waiting = self.shared.lock();
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

    /// What is to be written of an event. Nothing, if it is counted or one too many.
    fn fold(&mut self, event: Box<RecordedEvent>) -> Option<Write> {
        match self.series.observe(&Key::of(&event)) {
            Step::Nothing => None,
            Step::Patch { name, body, .. } => Some(Write {
                name,
                body,
                of: Of::Series(Some(event)),
            }),
            Step::Post if self.bucket.admit(event.kind) => Some(self.new_event(&event)),
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

    /// Queues the counts of series that are due; `all`: of every one that has more to say. Returns
    /// whether there were any.
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
            let has_room = self.shared.lock().lanes.push(&namespace, item);
            // Otherwise the next one tells the same count, and more.
            if all && !has_room {
                self.shared.observer.dropped();
            }
        }
        any
    }

    async fn send(&self, namespace: &str, write: &Write) -> Sent {
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
                let timeout = self.connection.write_timeout();
                self.connection.call(request, timeout).await
            }
            Err(error) => Err(error),
        };
        match sent {
            Ok(_) => Sent::Done,
            Err(CallError::Refused(refused)) if refused.code < 500 && refused.code != 429 => {
                match refused.code {
                    404 => Sent::Missing,
                    // An earlier try came through although its answer was lost.
                    409 if is_new => Sent::Done,
                    // A namespace that is being deleted takes no events: nobody is left to read
                    // them.
                    403 if refused
                        .causes
                        .iter()
                        .any(|cause| cause.reason == "NamespaceTerminating") =>
                    {
                        Sent::Missing
                    }
                    _ => Sent::Refused(CallError::Refused(refused).line()),
                }
            }
            Err(error) => {
                let at_least = match &error {
                    CallError::Refused(refused) => refused.retry_after.unwrap_or_default(),
                    _ => Duration::ZERO,
                };
                Sent::Again(at_least, error.line())
            }
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
