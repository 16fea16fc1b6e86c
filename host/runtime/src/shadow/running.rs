//! A plugin's shadow as it loads, runs and ends: its state, its queue and its results.
//!
//! This module must not know how turns are compared.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::deploy::slot::Slot;
use crate::shadow::place::Jobs;
use crate::shadow::queue::Most;
use crate::shadow::report::ShadowReport;
use crate::shadow::results::Results;

/// The most turns that may wait for the thread of a shadow.
const MOST: Most = Most {
    items: 4096,
    bytes: 16 << 20,
};

/// A shadow; see the module.
pub(crate) struct Shadow {
    /// The plugin's name.
    pub(crate) plugin: String,
    /// The turns that are waiting.
    pub(crate) jobs: Arc<Jobs>,
    /// The results of the turns.
    pub(crate) results: Mutex<Results>,
    slot: Weak<Slot>,
    /// How long the shadow runs, if it ends by itself.
    lasts: Option<Duration>,
    life: Mutex<Life>,
    /// Cancelled when the shadow begins to run.
    begun: CancellationToken,
    /// Cancelled when the shadow has ended.
    stop: CancellationToken,
}

struct Life {
    state: State,
    candidate: Candidate,
    /// When the shadow was started; later, when it began to run.
    since: SystemTime,
}

enum State {
    Loading,
    Running,
    Ended { why: String, at: SystemTime },
}

/// The version that is tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidate {
    /// `sha256:` and the digest.
    pub(crate) digest: String,
    /// The candidate's version in its description.
    pub(crate) version: String,
}

impl Shadow {
    /// Creates a shadow of this plugin, which is still loading. This many threads will hand it
    /// turns.
    pub(crate) fn new(slot: &Arc<Slot>, threads: usize, lasts: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            plugin: slot.name.clone(),
            jobs: Arc::new(Jobs::new(MOST, threads)),
            results: Mutex::default(),
            slot: Arc::downgrade(slot),
            lasts,
            life: Mutex::new(Life {
                state: State::Loading,
                candidate: Candidate::default(),
                since: SystemTime::now(),
            }),
            begun: CancellationToken::new(),
            stop: CancellationToken::new(),
        })
    }

    /// The plugin's slot, as long as the plugin runs.
    pub(crate) fn slot(&self) -> Option<Arc<Slot>> {
        self.slot.upgrade()
    }

    /// Takes turns from now on. Returns `false` if the shadow has ended.
    pub(crate) fn run(&self, candidate: Candidate) -> bool {
        let mut life = self.life.lock();
        let Some(slot) = self.slot() else {
            return false;
        };
        if !matches!(life.state, State::Loading) {
            return false;
        }
        *life = Life {
            state: State::Running,
            candidate,
            since: SystemTime::now(),
        };
        slot.shadow.take(&self.jobs);
        self.begun.cancel();
        true
    }

    /// Ends the shadow for this reason, unless it has already ended.
    pub(crate) fn end(&self, why: &str) {
        let mut life = self.life.lock();
        if matches!(life.state, State::Ended { .. }) {
            return;
        }
        life.state = State::Ended {
            why: why.to_owned(),
            at: SystemTime::now(),
        };
        if let Some(slot) = self.slot() {
            slot.shadow.leave(&self.jobs);
        }
        drop(life);
        self.stop.cancel();
        self.jobs.close();
    }

    /// Returns why the shadow has ended, if it has.
    pub(crate) fn ended(&self) -> Option<String> {
        match &self.life.lock().state {
            State::Ended { why, .. } => Some(why.clone()),
            State::Loading | State::Running => None,
        }
    }

    /// Waits for the end of the shadow, and ends it when its time is over.
    pub(crate) async fn over(&self) {
        let its_time = async {
            self.begun.cancelled().await;
            match self.lasts {
                Some(lasts) => tokio::time::sleep(lasts).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stopped() => {}
            () = its_time => self.end("its time is over"),
        }
    }

    /// Resolves when the shadow has ended.
    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// The state and the results.
    pub(crate) fn report(&self) -> ShadowReport {
        let mut report = ShadowReport {
            plugin: self.plugin.clone(),
            ..ShadowReport::default()
        };
        self.results.lock().tell(&mut report);
        report.counts.dropped = self.jobs.dropped();
        report.counts.waiting = self.jobs.waiting() as u64;
        let life = self.life.lock();
        report.candidate.clone_from(&life.candidate.digest);
        report.version.clone_from(&life.candidate.version);
        report.since = time(life.since);
        report.state = match &life.state {
            State::Loading => "loading",
            State::Running => {
                let until = self.lasts.and_then(|lasts| life.since.checked_add(lasts));
                report.until = until.map(time);
                "running"
            }
            State::Ended { why, at } => {
                report.ended = Some(why.clone());
                report.at = Some(time(*at));
                "ended"
            }
        }
        .to_owned();
        report
    }
}

/// Formats RFC 3339 with microseconds.
fn time(at: SystemTime) -> String {
    Timestamp::try_from(at).map_or_else(|_| String::new(), |at| format!("{at:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a shadow whose plugin is gone.
    fn shadow(lasts: Option<Duration>) -> Shadow {
        Shadow {
            plugin: "vm".into(),
            jobs: Arc::new(Jobs::new(MOST, 1)),
            results: Mutex::default(),
            slot: Weak::new(),
            lasts,
            life: Mutex::new(Life {
                state: State::Loading,
                candidate: Candidate::default(),
                since: SystemTime::UNIX_EPOCH,
            }),
            begun: CancellationToken::new(),
            stop: CancellationToken::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_once_and_for_the_first_reason() {
        let shadow = shadow(Some(Duration::from_secs(600)));
        let loading = shadow.report();
        assert_eq!((loading.state.as_str(), loading.until), ("loading", None));
        // The time that the candidate takes to load does not count.
        let day = Duration::from_secs(86_400);
        assert!(tokio::time::timeout(day, shadow.over()).await.is_err());
        shadow.begun.cancel();
        shadow.over().await;
        shadow.end("another reason");
        assert_eq!(shadow.ended().as_deref(), Some("its time is over"));
        shadow.stopped().await;
        let report = shadow.report();
        assert_eq!(
            (report.state.as_str(), report.ended.as_deref()),
            ("ended", Some("its time is over"))
        );
        assert_eq!(report.since, "1970-01-01T00:00:00.000000Z");
        assert!(report.at.is_some());
    }

    #[tokio::test]
    async fn without_a_plugin_it_does_not_run() {
        let shadow = shadow(None);
        assert!(!shadow.run(Candidate::default()));
        shadow.end("stopped");
        shadow.over().await;
        assert_eq!(shadow.ended().as_deref(), Some("stopped"));
    }
}
