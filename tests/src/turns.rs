//! The hot path only: a manager with the VM policy, on a server in this process, for the benchmarks
//! and the instruction counts.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Handle;
use vmhost_core::ObjectName;
use vmhost_runtime::config::Config;
use vmhost_runtime::controller::Controller;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::deploy::slot::{Slot, Wired};
use vmhost_runtime::journal::RECORD_BYTES;
use vmhost_runtime::manager::Manager;
use vmhost_runtime::observe::metrics::Metrics;

use crate::guests;
use crate::in_process::InProcess;

/// A working controller and its server.
pub struct Turns {
    server: InProcess,
    wired: Wired,
    slot: Arc<Slot>,
    manager: Arc<Manager>,
}

/// The buckets of the call times: seconds, and the number of calls that took at most as long.
pub type Calls = Vec<(f64, f64)>;

/// Returns the configuration of a host that keeps records of turns.
pub fn config() -> Config {
    Config {
        record_bytes: RECORD_BYTES,
        ..Config::inspecting()
    }
}

impl Turns {
    /// Starts on this runtime, with guests on `guests`, and waits until all machines had a turn.
    pub async fn start(server: InProcess, guests: Handle) -> Result<Self> {
        Self::configured(server, guests, config()).await
    }

    /// Like [`Turns::start`], with this configuration of the host.
    pub async fn configured(server: InProcess, guests: Handle, config: Config) -> Result<Self> {
        Self::of(server, guests, config, guests::read(guests::EXAMPLE_VM)?).await
    }

    /// Like [`Turns::configured`], with another policy for the machines.
    pub async fn of(
        server: InProcess,
        guests: Handle,
        config: Config,
        bytes: Vec<u8>,
    ) -> Result<Self> {
        let loader = Arc::new(Loader::new(config, guests)?);
        let (plugin, _) = loader.load(&bytes).await?;
        let best = loader
            .engine
            .optimise(bytes.clone(), loader.config.limits.component)
            .await?;
        plugin.install(best);
        let connection = server.connection();
        let manager = Manager::new(loader, connection, Metrics::new()?);
        let slot = manager.add(plugin).await?;
        let wired = slot.current().controllers.values().next().cloned();
        let turns = Self {
            server,
            wired: wired.context("the policy has no controller")?,
            slot,
            manager,
        };
        turns.wired.sources.synced().await;
        turns.until_done().await;
        Ok(turns)
    }

    /// Wakes every key; returns their number.
    pub fn wake_all(&self) -> usize {
        self.controller().renew(self.wired.sources.names())
    }

    /// The names of all machines.
    pub fn names(&self) -> Vec<ObjectName> {
        self.wired.sources.names()
    }

    /// Wakes every key, and waits until each has had its turn.
    pub async fn look_at_all(&self) {
        self.wake_all();
        self.until_done().await;
    }

    /// Waits until other threads have done all work, without taking much of their time.
    pub async fn wait_quietly(&self) {
        while self.is_busy() {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    }

    /// Completes every machine again: a change of each, a turn, a write, the change from that
    /// write, and its Event, which is sent after the turn.
    pub async fn make_all(&self) {
        let all = self.server.patches() + self.len();
        self.server.set_all("creating");
        while self.server.patches() < all {
            tokio::task::yield_now().await;
        }
        self.until_done().await;
        self.until_quiet().await;
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.wired.sources.names().len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The controller.
    pub fn controller(&self) -> &Controller {
        &self.wired.controller
    }

    /// The plugin.
    pub fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// The manager.
    pub fn manager(&self) -> &Arc<Manager> {
        &self.manager
    }

    /// Returns the calls so far, from the metric.
    pub fn calls(&self) -> Calls {
        let text = String::from_utf8(self.manager.plugins.metrics.render()).unwrap_or_default();
        let buckets = text
            .lines()
            .filter(|line| line.starts_with("vmhost_call_duration_seconds_bucket"));
        let read = |line: &str| {
            let (_, bound) = line.split_once("le=\"")?;
            let (bound, rest) = bound.split_once('"')?;
            let count = rest.rsplit(' ').next()?;
            Some((bound.parse().unwrap_or(f64::INFINITY), count.parse().ok()?))
        };
        buckets.filter_map(read).collect()
    }

    /// Wakes one key, and returns the time from then to the end of its turn, as the host counts it.
    /// Sleeps meanwhile: a thread that watched the turn would take a core from it.
    pub async fn time_of_one(&self, name: ObjectName) -> Duration {
        let (before, count) = self.spent();
        self.controller().renew(vec![name]);
        loop {
            tokio::time::sleep(Duration::from_micros(200)).await;
            // A worker hands its sums over before it waits for the next key.
            let (spent, turns) = self.spent();
            if turns > count {
                return Duration::from_secs_f64((spent - before).max(0.0));
            }
        }
    }

    /// Returns the seconds that keys waited and were worked on so far, and the number of turns.
    fn spent(&self) -> (f64, u64) {
        let text = String::from_utf8(self.manager.plugins.metrics.render()).unwrap_or_default();
        let number = |name: &str| -> f64 {
            let mut lines = text.lines().filter(|line| line.starts_with(name));
            let line = lines.next().and_then(|line| line.rsplit(' ').next());
            line.and_then(|number| number.parse().ok()).unwrap_or(0.0)
        };
        let waited = number("workqueue_queue_duration_seconds_sum");
        let worked = number("workqueue_work_duration_seconds_sum");
        let turns = number("workqueue_work_duration_seconds_count");
        (waited + worked, turns as u64)
    }

    /// Waits, and returns the median and the 99th percentile of the calls since `before`,
    /// interpolated in the metric's buckets.
    pub async fn calls_since(&self, before: &Calls, wait: Duration) -> (Duration, Duration) {
        tokio::time::sleep(wait).await;
        let now = self.calls();
        let counts = now.iter().zip(before);
        let calls: Calls = counts
            .map(|(now, before)| (now.0, now.1 - before.1))
            .collect();
        (quantile(&calls, 0.5), quantile(&calls, 0.99))
    }

    /// Stops the controller.
    pub async fn stop(self) {
        self.manager.shut_down().await;
    }

    /// Waits until the queue is empty and no worker is busy.
    pub async fn until_done(&self) {
        while self.is_busy() {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the server gets no more requests.
    async fn until_quiet(&self) {
        let mut before = None;
        while before != Some(self.server.requests()) {
            before = Some(self.server.requests());
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn is_busy(&self) -> bool {
        let queue = &self.controller().queue;
        !queue.is_empty() || queue.stats().processing > 0
    }
}

/// Computes a quantile like Prometheus' `histogram_quantile`.
fn quantile(calls: &Calls, part: f64) -> Duration {
    let all = calls.last().map_or(0.0, |last| last.1);
    let wanted = all * part;
    let (mut low, mut below) = (0.0, 0.0);
    for &(high, upto) in calls {
        if upto >= wanted {
            let inside = if upto > below {
                (wanted - below) / (upto - below)
            } else {
                1.0
            };
            return Duration::try_from_secs_f64(low + (high - low) * inside)
                .unwrap_or(Duration::MAX);
        }
        (low, below) = (high, upto);
    }
    Duration::MAX
}
