//! The election task: sends the elector's requests, waits, and publishes whether this host leads.
//!
//! It owns pauses, timeouts, log lines, Events and metrics. It must not decide which host leads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use vmhost_cluster::{Error, Lease, Leases, Recorder};

use super::elector::{Answer, Ask, Elector, Moment};
use super::settings::{JITTER, Settings};
use super::standing::{Ended, Standing};
use super::told::Told;
use crate::observe::metrics::Metrics;
use vmhost_core::{ObjectName, chain};

/// The longest timeout of one lease request, whatever the flags say.
const LONGEST_REQUEST: Duration = Duration::from_secs(5);

pub(super) struct Stand {
    leases: Leases,
    settings: Settings,
    namespace: String,
    identity: String,
    metrics: Arc<Metrics>,
    standing: watch::Sender<Standing>,
    stop: CancellationToken,
    told: Told,
    elector: Elector<Lease>,
    /// Whether this host leads, as last logged and set in the metric.
    leading: bool,
    holder: Arc<str>,
    failure: Option<String>,
    slow: u64,
}

impl Stand {
    pub(super) fn new(
        leases: Leases,
        recorder: Recorder,
        settings: Settings,
        metrics: Arc<Metrics>,
        standing: watch::Sender<Standing>,
        stop: CancellationToken,
    ) -> Self {
        let identity = format!("{}_{}", host_name(), uuid::Uuid::new_v4());
        let namespace = settings
            .namespace
            .clone()
            .unwrap_or_else(|| leases.default_namespace().to_owned());
        let lease = ObjectName::new(Some(&namespace), &settings.id);
        Self {
            told: Told::new(recorder, lease, &identity),
            elector: Elector::new(identity.clone(), settings.terms),
            leases,
            settings,
            namespace,
            identity,
            metrics,
            standing,
            stop,
            leading: false,
            holder: Arc::default(),
            failure: None,
            slow: 0,
        }
    }

    /// Runs until it is stopped. Then it gives the lease back if requested.
    pub(super) async fn run(mut self) {
        tracing::info!(
            identity = self.identity,
            "candidate for the leader lease {}: duration {:?}, renew deadline {:?}, retry period {:?}",
            self.name(),
            self.settings.terms.lease,
            self.settings.terms.renew,
            self.settings.terms.retry
        );
        self.gauge(false);
        let stop = self.stop.clone();
        while !stop.is_cancelled() {
            let first = self.elector.begin(Moment::now());
            self.converse(first).await;
            let pause = self.pause();
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.looking(tokio::time::sleep(pause)) => {}
            }
        }
        // The lease is not lost: the host is ending.
        let led = std::mem::replace(&mut self.leading, false);
        self.gauge(false);
        if led {
            self.told.tell(false);
        }
        if self.standing.borrow().ended == Some(Ended::GiveBack)
            && let Some(first) = self.elector.give_back(Moment::now())
        {
            self.converse(first).await;
            if self.failure.is_none() {
                tracing::info!("released the leader lease {}", self.name());
            }
        }
        if led && self.failure.is_none() {
            self.told.flush().await;
        }
    }

    /// Makes one attempt: a request, and those that follow from its answer.
    async fn converse(&mut self, first: Ask<Lease>) {
        let mut next = Some(first);
        while let Some(ask) = next {
            // Taken before the request is sent, since a term counts from here.
            let sent = Instant::now();
            let sending = send(
                self.leases.clone(),
                self.namespace.clone(),
                self.settings.id.clone(),
                ask,
                self.request_timeout(),
            );
            let answer = self.looking(sending).await;
            let answer = self.note(answer);
            if let Answer::Found(_, lease) | Answer::Written(lease) = &answer {
                self.told.saw(lease.uid());
            }
            next = self.elector.answered(sent, Moment::now(), answer);
            self.publish();
        }
    }

    /// Waits for a future, and publishes meanwhile when a term ends.
    async fn looking<T>(&mut self, waited: impl Future<Output = T>) -> T {
        tokio::pin!(waited);
        loop {
            let until = self.elector.leads_until().filter(|_| self.leading);
            let over = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                done = &mut waited => return done,
                () = over => self.publish(),
            }
        }
    }

    /// Publishes whether this host leads, for waiting tasks, in the log and in an Event. Writes
    /// check the clock as well.
    fn publish(&mut self) {
        let until = self.elector.leads_until();
        self.standing.send_if_modified(|standing| {
            let changed = standing.until != until && standing.ended.is_none();
            if changed {
                standing.until = until;
            }
            changed
        });
        let leads = self.elector.leads(Instant::now());
        if leads != self.leading {
            self.leading = leads;
            self.gauge(leads);
            self.told.tell(leads);
            if leads {
                tracing::info!(
                    identity = self.identity,
                    "acquired the leader lease {}; starting workers",
                    self.name()
                );
            } else {
                tracing::error!(
                    "lost the leader lease {}: {}; pausing workers and refusing writes until it is acquired again",
                    self.name(),
                    self.why_lost()
                );
            }
        }
        if self.elector.holder() != &*self.holder {
            self.holder = self.elector.holder().into();
            if *self.holder != *self.identity && !self.holder.is_empty() {
                tracing::info!("{} holds the leader lease {}", self.holder, self.name());
            }
        }
        let slow = self.elector.slow();
        self.metrics
            .leader_slow
            .with_label_values(&[self.settings.id.as_str()])
            .inc_by(slow - std::mem::replace(&mut self.slow, slow));
    }

    fn why_lost(&self) -> String {
        let holder = self.elector.holder();
        if holder != self.identity {
            return format!("{holder:?} holds it");
        }
        let renew = self.settings.terms.renew;
        match &self.failure {
            Some(failure) => format!("not renewed within {renew:?}: {failure}"),
            None => format!("not renewed within {renew:?}"),
        }
    }

    /// Logs a failed request, once per kind of failure.
    fn note(&mut self, answer: Result<Answer<Lease>, Error>) -> Answer<Lease> {
        match answer {
            Ok(answer) => {
                self.failure = None;
                answer
            }
            Err(error) => {
                let failure = chain(&error);
                let expected = error.code() == Some(409);
                if expected || self.failure.as_ref() == Some(&failure) {
                    tracing::debug!("leader lease {}: {failure}; retrying", self.name());
                } else {
                    let hint = match error.code() {
                        Some(403) => {
                            "; leader election needs get, create and update on leases.coordination.k8s.io in this namespace"
                        }
                        _ => "",
                    };
                    tracing::warn!("leader lease {}: {failure}{hint}; retrying", self.name());
                }
                self.failure = Some(failure);
                Answer::Failed
            }
        }
    }

    /// The timeout of one request. A renewal and the read after it fit into the renew deadline.
    fn request_timeout(&self) -> Duration {
        (self.settings.terms.renew / 2).min(LONGEST_REQUEST)
    }

    fn pause(&self) -> Duration {
        let retry = self.settings.terms.retry;
        if self.leading {
            retry
        } else {
            retry.mul_f64(1.0 + fastrand::f64() * (JITTER - 1.0))
        }
    }

    fn gauge(&self, leads: bool) {
        self.metrics
            .leader
            .with_label_values(&[self.settings.id.as_str()])
            .set(leads.into());
    }

    fn name(&self) -> String {
        format!("{}/{}", self.namespace, self.settings.id)
    }
}

async fn send(
    leases: Leases,
    namespace: String,
    name: String,
    ask: Ask<Lease>,
    limit: Duration,
) -> Result<Answer<Lease>, Error> {
    match ask {
        Ask::Read => {
            let found = leases.get(&namespace, &name, limit).await?;
            Ok(found.map_or(Answer::Absent, |lease| {
                Answer::Found(lease.record.clone(), lease)
            }))
        }
        Ask::Create(record) => leases
            .create(&namespace, &name, &record, limit)
            .await
            .map(Answer::Written),
        Ask::Replace(lease, record) => leases
            .replace(&lease, &record, limit)
            .await
            .map(Answer::Written),
    }
}

/// The name of the node or pod, for people. The uuid after it makes the identity unique.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "vmhost".to_owned())
}
