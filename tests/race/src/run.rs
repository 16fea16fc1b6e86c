//! One process of an entrant: started, synced, measured, killed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::sync::watch;

use crate::entrant::Entrant;
use crate::guard::Guard;
use crate::process::{self, Group, Memory};

/// 20,000 objects take the slowest entrant a few seconds.
const SYNCED: Duration = Duration::from_secs(120);

/// A running entrant, killed on drop.
pub struct Run {
    guard: Guard,
    /// Dropped after the process has ended.
    group: Option<Group>,
    /// When the process was started.
    pub started: Instant,
    synced: watch::Receiver<Option<Instant>>,
}

impl Run {
    /// Starts the entrant, with its output in `log`.
    pub fn start(entrant: &Entrant, kubeconfig: &Path, namespace: &str, log: &Path) -> Result<Run> {
        let file = File::options().create(true).append(true).open(log);
        let file = file.with_context(|| format!("opening {}", log.display()))?;
        let file = Arc::new(Mutex::new(file));
        let mut command = entrant.command(kubeconfig, namespace);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut guard = Guard::spawn(&mut command, None)?;
        let group = Group::around(guard.id());
        let child = guard.child();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (sender, synced) = watch::channel(None);
        let sender = Arc::new(sender);
        let mark = entrant.synced();
        listen(
            stdout.context("no stdout")?,
            file.clone(),
            mark,
            sender.clone(),
        );
        listen(stderr.context("no stderr")?, file, mark, sender);
        Ok(Run {
            guard,
            group,
            started,
            synced,
        })
    }

    /// Waits until the entrant reports that it is synced, and returns the time since its start.
    pub async fn synced(&self) -> Result<Duration> {
        let mut synced = self.synced.clone();
        let seen = tokio::time::timeout(SYNCED, synced.wait_for(Option::is_some)).await;
        match seen {
            Ok(Ok(at)) => Ok(at.unwrap_or(self.started) - self.started),
            Ok(Err(_)) => bail!("it ended before it was synced"),
            Err(_) => bail!("it was not synced within {SYNCED:?}"),
        }
    }

    /// Returns the CPU seconds so far.
    pub fn cpu(&self) -> Result<f64> {
        process::cpu(self.guard.id())
    }

    /// Returns the CPU seconds once the process is idle.
    pub async fn quiet(&self) -> Result<f64> {
        process::quiet(self.guard.id()).await
    }

    /// Returns the current memory.
    pub fn memory(&self) -> Result<Memory> {
        process::memory(self.guard.id(), self.group.as_ref())
    }

    /// Waits for this time, and returns the used share of one core.
    pub async fn idle(&self, time: Duration) -> Result<f64> {
        let before = self.quiet().await?;
        let start = Instant::now();
        tokio::time::sleep(time).await;
        Ok(100.0 * (self.cpu()? - before) / start.elapsed().as_secs_f64())
    }
}

/// Copies a stream to the log and reports the mark.
fn listen(
    stream: impl Read + Send + 'static,
    log: Arc<Mutex<File>>,
    mark: &'static str,
    synced: Arc<watch::Sender<Option<Instant>>>,
) {
    thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let at = Instant::now();
            if String::from_utf8_lossy(&line).contains(mark) {
                synced.send_if_modified(|first| {
                    let is_first = first.is_none();
                    first.get_or_insert(at);
                    is_first
                });
            }
            if let Ok(mut log) = log.lock() {
                let _ = log.write_all(&[&line[..], b"\n"].concat());
            }
        }
    });
}
