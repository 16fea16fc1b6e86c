//! Observes with the runner's own watch, like any user could, when objects become complete.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::field;

/// The time limit of a drain, far above the slowest.
const DRAINED: Duration = Duration::from_secs(400);
/// The time limit of one object, after which it is lost.
const LOST: Duration = Duration::from_secs(60);
/// The server takes a moment to serve a kind again after a change of its definition.
const PAUSE: Duration = Duration::from_millis(100);

/// The observed state.
#[derive(Default)]
struct Seen {
    complete: HashMap<String, Instant>,
    open: HashSet<String>,
    /// The number of started watches.
    watches: u64,
}

/// Follows until it is dropped.
pub struct Follower {
    seen: Arc<Mutex<Seen>>,
    changes: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    status: String,
}

impl Follower {
    /// Starts to follow, including existing objects.
    pub fn start(client: &Client) -> Follower {
        let seen = Arc::<Mutex<Seen>>::default();
        let (sender, changes) = watch::channel(0);
        let (client, shared) = (client.clone(), seen.clone());
        let task = tokio::spawn(async move {
            loop {
                // Watches end; one scenario does that on purpose.
                let _ = follow(&client, &shared, &sender).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
        Follower {
            seen,
            changes,
            task,
        }
    }

    /// Waits until `n` objects exist and all are complete, and returns when the last became
    /// complete.
    pub async fn all(&self, n: usize) -> Result<Instant> {
        self.until(DRAINED, |seen| {
            let all = seen.open.is_empty() && seen.complete.len() == n;
            all.then(|| seen.complete.values().max().copied())?
        })
        .await
        .with_context(|| {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            format!(
                "{} of {n} complete, {} open",
                seen.complete.len(),
                seen.open.len()
            )
        })
    }

    /// Waits until `n` objects exist, in any state.
    pub async fn there(&self, n: usize) -> Result<()> {
        self.until(DRAINED, |seen| {
            (seen.open.len() + seen.complete.len() == n).then_some(())
        })
        .await
    }

    /// Returns how many watches have started.
    pub fn watches(&self) -> u64 {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.watches
    }

    /// Waits until more watches have started, so that the earlier one has ended.
    pub async fn more_watches(&self, than: u64) -> Result<()> {
        self.until(LOST, |seen| (seen.watches > than).then_some(()))
            .await
    }

    /// Waits until this object is open.
    pub async fn open(&self, name: &str) -> Result<()> {
        self.until(LOST, |seen| seen.open.contains(name).then_some(()))
            .await
    }

    /// Waits until this object is complete, and returns when that was observed.
    pub async fn one(&self, name: &str) -> Result<Instant> {
        self.until(LOST, |seen| seen.complete.get(name).copied())
            .await
            .with_context(|| format!("{name} is not complete"))
    }

    /// Waits until one of these is complete, and returns when that was observed.
    pub async fn any(&self, names: &[String]) -> Result<Instant> {
        self.until(LOST, |seen| {
            let complete = names.iter().filter_map(|name| seen.complete.get(name));
            complete.min().copied()
        })
        .await
    }

    /// Returns how many of these are not complete.
    pub fn undone(&self, names: &[String]) -> usize {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let undone = names.iter();
        undone.filter(|name| seen.open.contains(*name)).count()
    }

    async fn until<T>(&self, deadline: Duration, probe: impl Fn(&Seen) -> Option<T>) -> Result<T> {
        let mut changes = self.changes.clone();
        let wait = async {
            loop {
                let found = probe(&self.seen.lock().unwrap_or_else(PoisonError::into_inner));
                if let Some(value) = found {
                    return Ok(value);
                }
                if changes.changed().await.is_err() {
                    bail!("the follower has ended");
                }
            }
        };
        match tokio::time::timeout(deadline, wait).await {
            Ok(value) => value,
            Err(_) => bail!("not within {deadline:?}"),
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs one watch, including the existing objects.
async fn follow(client: &Client, seen: &Mutex<Seen>, changes: &watch::Sender<u64>) -> Result<()> {
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3600";
    let request = Request::get(format!("{}?{query}", field::path())).body(Body::empty())?;
    let answer = client.send(request).await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let watches = seen.watches + 1;
        *seen = Seen {
            watches,
            ..Seen::default()
        };
    }
    let mut body = answer.into_body();
    let mut buffer = Vec::new();
    while let Some(frame) = body.frame().await {
        let at = Instant::now();
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        let mut start = 0;
        let searched = buffer.len();
        buffer.extend_from_slice(&data);
        let ends = buffer.iter().enumerate().skip(searched);
        for end in ends.filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at) {
            note(&buffer[start..end], at, seen)?;
            start = end + 1;
        }
        buffer.drain(..start);
        changes.send_modify(|count| *count += 1);
    }
    Ok(())
}

fn note(line: &[u8], at: Instant, seen: &Mutex<Seen>) -> Result<()> {
    let line: Line = serde_json::from_slice(line).context("reading a line of the watch")?;
    ensure!(line.kind != "ERROR", "the watch ends");
    let (name, status) = (line.object.metadata.name, line.object.spec.status);
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    match (line.kind.as_str(), status.as_str()) {
        ("BOOKMARK", _) => {}
        ("DELETED", _) => {
            seen.open.remove(&name);
            seen.complete.remove(&name);
        }
        (_, "complete") => {
            seen.open.remove(&name);
            seen.complete.entry(name).or_insert(at);
        }
        _ => {
            seen.complete.remove(&name);
            seen.open.insert(name);
        }
    }
    Ok(())
}
