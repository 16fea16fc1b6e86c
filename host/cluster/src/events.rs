//! Events for people (`events.k8s.io/v1`), recorded in the background.
//!
//! It owns a bounded queue, the folding of repeated events into series, as client-go's `tools/events`, and how many Normal ones a plugin may write ([`limit`]). It
//! must not hold up or fail a turn: an event that finds the queue full is dropped and counted.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use vmhost_core::{EventType, Gvk, ObjectName};

use crate::api::{CallError, encode, request};
use crate::connect::Connection;

mod body;
mod limit;
mod series;

pub use limit::EventLimit;

use limit::Buckets;
use series::{Key, Series, Step};

/// Events that wait, as client-go. At 1 KiB each, 1 MiB.
const QUEUE: usize = 1000;
/// Tries of one request, as client-go.
const TRIES: u32 = 12;
/// Delays between them: 250 ms doubled up to 10 s, 63 s in all.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// See `FIRST_DELAY`.
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// How often series are looked through: a sixth of the time after which they end.
const PERIOD: Duration = Duration::from_secs(60);

/// An object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Gvk,
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its uid, if known.
    pub uid: Option<String>,
    /// Its version, if known. Not part of what makes two events the same.
    pub version: Option<u64>,
}

/// An event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Whose it is: who shares a limit. Not part of the event.
    pub plugin: String,
    /// What it is about.
    pub regarding: ObjectRef,
    /// What else has to do with it.
    pub related: Option<ObjectRef>,
    /// Severity.
    pub kind: EventType,
    /// Why, CamelCase.
    pub reason: String,
    /// What was done, CamelCase.
    pub action: String,
    /// For people; cut at 1,024 bytes. Of a series the first one stays.
    pub note: String,
    /// `vmhost/<plugin>/<controller>`. The API takes one slash: further ones become dots.
    pub reporting_controller: String,
}

/// Who counts what becomes of events. Must be quick.
pub trait EventObserver: Send + Sync {
    /// The queue was full.
    fn dropped(&self) {}
    /// More Normal Events than the plugin may write.
    fn limited(&self) {}
    /// Written, as a new event or as a series.
    fn recorded(&self) {}
    /// Given up; why.
    fn failed(&self, _reason: &str) {}
}

/// Nobody counts.
#[derive(Debug)]
pub struct NoEventObserver;

impl EventObserver for NoEventObserver {}

enum Command {
    Record(Box<RecordedEvent>),
    Flush(oneshot::Sender<()>),
}

/// Takes events and never waits. Cheap to clone; its task ends with the last clone.
#[derive(Clone)]
pub struct Recorder {
    commands: mpsc::Sender<Command>,
    observer: Arc<dyn EventObserver>,
}

impl Recorder {
    /// Starts the recorder's task on the tokio runtime that this is called on. `limit`: how many Normal Events each plugin may write; none: all.
    pub fn start(
        connection: Connection,
        observer: Arc<dyn EventObserver>,
        limit: Option<EventLimit>,
    ) -> Self {
        let (commands, queue) = mpsc::channel(QUEUE);
        let worker = Worker {
            connection,
            observer: observer.clone(),
            instance: body::instance(),
            series: Series::default(),
            buckets: Buckets::new(limit),
        };
        tokio::spawn(worker.run(queue));
        Self { commands, observer }
    }

    /// Queues an event. With a full queue it is dropped and counted.
    pub fn record(&self, event: RecordedEvent) {
        if self
            .commands
            .try_send(Command::Record(Box::new(event)))
            .is_err()
        {
            self.observer.dropped();
        }
    }

    /// Waits until what was recorded before is written, but no longer than `deadline`. Says whether it is.
    pub async fn flush(&self, deadline: Duration) -> bool {
        let flushed = async {
            let (done, wait) = oneshot::channel();
            self.commands.send(Command::Flush(done)).await.is_ok() && wait.await.is_ok()
        };
        timeout(deadline, flushed).await.unwrap_or(false)
    }
}

struct Worker {
    connection: Connection,
    observer: Arc<dyn EventObserver>,
    instance: String,
    series: Series,
    buckets: Buckets,
}

/// How a request ended.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Done,
    /// There is no such event, or no such namespace.
    Missing,
    GivenUp,
}

impl Worker {
    async fn run(mut self, mut queue: mpsc::Receiver<Command>) {
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                command = queue.recv() => match command {
                    Some(Command::Record(event)) => self.record(&event).await,
                    Some(Command::Flush(done)) => {
                        self.write_series(true).await;
                        // Whoever asked may have gone.
                        let _ = done.send(());
                    }
                    None => return self.write_series(true).await,
                },
                _ = period.tick() => {
                    self.buckets.tell();
                    self.write_series(false).await;
                }
            }
        }
    }

    async fn record(&mut self, event: &RecordedEvent) {
        let key = Key::of(event);
        match self.series.observe(&key) {
            Step::Nothing => {}
            Step::Patch {
                namespace,
                name,
                body,
            } => {
                if self.patch(&namespace, &name, &body).await == Sent::Missing {
                    self.series.forget(&key);
                    self.post(event, key).await;
                }
            }
            Step::Post if self.buckets.admit(event) => self.post(event, key).await,
            Step::Post => self.observer.limited(),
        }
    }

    async fn post(&mut self, event: &RecordedEvent, key: Key) {
        let (namespace, name, body) = body::event(event, &self.instance);
        let sent = self
            .send(Method::POST, &path(&namespace, None), &body)
            .await;
        self.count(&sent);
        if sent == Sent::Done {
            self.series.begin(key, namespace, name);
        }
    }

    async fn patch(&self, namespace: &str, name: &str, body: &Value) -> Sent {
        let sent = self
            .send(Method::PATCH, &path(namespace, Some(name)), body)
            .await;
        self.count(&sent);
        sent
    }

    /// Writes the counts of series that are due; `all`: of every one that has more to say.
    async fn write_series(&mut self, all: bool) {
        for (namespace, name, body) in self.series.due(all) {
            self.patch(&namespace, &name, &body).await;
        }
    }

    fn count(&self, sent: &Sent) {
        if *sent == Sent::Done {
            self.observer.recorded();
        }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Sent {
        let content_type = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let mut delay = FIRST_DELAY;
        let mut last = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                sleep(delay).await;
                delay = (delay * 2).min(LONGEST_DELAY);
            }
            let sent = match request(
                method.clone(),
                path,
                Some(content_type),
                body.to_string().into(),
            ) {
                Ok(request) => {
                    self.connection
                        .call(request, self.connection.write_timeout())
                        .await
                }
                Err(error) => Err(error),
            };
            match sent {
                Ok(_) => return Sent::Done,
                Err(CallError::Refused(refused)) if refused.code < 500 && refused.code != 429 => {
                    match refused.code {
                        404 => return Sent::Missing,
                        // An earlier try came through although its answer was lost.
                        409 if method == Method::POST => return Sent::Done,
                        // A namespace that is being deleted takes no events: nobody is left to read them.
                        403 if refused
                            .causes
                            .iter()
                            .any(|cause| cause.reason == "NamespaceTerminating") =>
                        {
                            return Sent::Missing;
                        }
                        _ => {
                            self.observer.failed(&CallError::Refused(refused).line());
                            return Sent::GivenUp;
                        }
                    }
                }
                Err(error) => {
                    if let CallError::Refused(refused) = &error {
                        delay = delay.max(refused.retry_after.unwrap_or_default());
                    }
                    last = error.line();
                }
            }
        }
        self.observer.failed(&last);
        Sent::GivenUp
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

#[cfg(test)]
mod tests;
