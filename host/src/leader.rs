//! Leader election: of several hosts with the same plugins, one works.
//!
//! ```text
//! elector (when may who lead: no clock, no I/O) <-- stand (a task: requests and waits) --> Leadership --asked by--> workers: may I take a key?
//!                                                                                                    \--asked by--> writes: may this be sent?
//! ```
//! It owns the answer to those two questions. It must not know what the leader does.
//!
//! A standby is as warm as the leader: its informers run, its queues fill, it is ready; its workers take no key. When it leads, they start on the queues as they
//! are. A host that loses the lease **steps down and stands again; it does not exit**, as controller-runtime's manager does: its stores stay warm, and the next
//! one to take over need not list the cluster again. It can afford to because nothing that the old term has left can write: every write asks
//! [`Leadership::fence`] right before its request, and the fence closes by itself, by the clock, at the renew deadline, also for a process that was stopped
//! meanwhile.
//!
//! What stays unfenced:
//! - A request that is on the wire when the fence closes. It has to be answered within the time-out of writes (4 s), which is shorter than what lies between
//!   the renew deadline and the end of the lease (5 s); with other flags a warning says so.
//! - A process that is stopped between the look at the fence and the sending, and goes on after the lease: microseconds, or the handshake of a new connection.
//!   Writes with a version or a `test` fail then; others land.
//! - A machine whose monotonic clock stands still while it sleeps (a suspended laptop, a paused virtual machine): the fence sleeps too. So does client-go's.
//! - A Lease that somebody deletes or edits by hand: its holder finds out with its next renewal.
//! - Events, `SelfSubjectAccessReview`s, the installation of CustomResourceDefinitions at the start: they are no writes of a plugin's turn.

pub mod elector;
mod settings;
mod stand;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vmhost_cluster::{Connection, WRITE_TIMEOUT, WriteError};

use crate::telemetry::Metrics;
pub use settings::{JITTER, Settings};

/// How long a lease may take to be given back.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// Whether this host may work and write. One for the process.
pub struct Leadership {
    /// None: nobody else is expected, and it always leads.
    election: Option<Election>,
}

struct Election {
    standing: watch::Sender<Standing>,
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Until when this host leads, and whether it is ending.
#[derive(Clone, Debug, Default)]
struct Standing {
    until: Option<Instant>,
    /// Who holds the lease, as far as this host has seen; empty: nobody.
    holder: Arc<str>,
    ending: bool,
    ended: Option<Ended>,
}

/// The last word: it leads no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The lease is given back.
    GiveBack,
    /// The lease runs out.
    RunOut,
}

/// Why a write was not sent.
#[derive(Debug, thiserror::Error)]
#[error("this host does not hold the leader lease")]
pub struct NotLeading;

impl Standing {
    /// Looks at the clock: a lease ends without anybody saying so.
    fn leads(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }
}

impl Leadership {
    /// No election.
    pub fn alone() -> Arc<Self> {
        Arc::new(Self { election: None })
    }

    /// Stands for election from now on, on the runtime that this is called on. Guests must never run there.
    pub fn stand(connection: &Connection, settings: Settings, metrics: Arc<Metrics>) -> Arc<Self> {
        let margin = settings.terms.lease - settings.terms.renew;
        if margin <= WRITE_TIMEOUT {
            tracing::warn!(
                "between --leader-election-renew-deadline {:?} and --leader-election-lease-duration {:?} lie {margin:?}, and a write may take {WRITE_TIMEOUT:?}: \
                 one that is on the wire when the lease is lost may land after another host's first",
                settings.terms.renew,
                settings.terms.lease,
            );
        }
        let standing = watch::Sender::new(Standing::default());
        let stop = CancellationToken::new();
        let stand = stand::Stand::new(
            connection.clone().with_observer(metrics.clone()),
            settings,
            metrics,
            standing.clone(),
            stop.clone(),
        );
        let task = Mutex::new(Some(tokio::spawn(stand.run())));
        Arc::new(Self {
            election: Some(Election {
                standing,
                stop,
                task,
            }),
        })
    }

    /// Is there an election at all?
    pub fn is_elected(&self) -> bool {
        self.election.is_some()
    }

    /// Does this host lead at this moment?
    pub fn is_leading(&self) -> bool {
        self.election
            .as_ref()
            .is_none_or(|election| election.standing.borrow().leads())
    }

    /// The identity of the host that holds the lease, as far as this one has seen; none: there is no election, or nobody holds it.
    pub fn holder(&self) -> Option<Arc<str>> {
        let holder = self.election.as_ref()?.standing.borrow().holder.clone();
        (!holder.is_empty()).then_some(holder)
    }

    /// Asked right before each write is sent: a process that was stopped past its lease finds the fence closed.
    pub fn fence(&self) -> Result<(), WriteError> {
        if self.is_leading() {
            Ok(())
        } else {
            Err(WriteError::NotSent(Box::new(NotLeading)))
        }
    }

    /// Resolves when this host leads; or when it is ending, so that whoever waits finds its queue closed.
    pub async fn leads(&self) {
        let Some(election) = &self.election else {
            return;
        };
        let mut standing = election.standing.subscribe();
        // The sender lives as long as this value.
        let _ = standing
            .wait_for(|standing| standing.leads() || standing.ending)
            .await;
    }

    /// The host is ending. It goes on renewing for the writes that are under way.
    pub fn ending(&self) {
        if let Some(election) = &self.election {
            election
                .standing
                .send_modify(|standing| standing.ending = true);
        }
    }

    /// No more writes from here on. `give_back`: all that were sent are answered, so that another host may start at once; else the lease runs out.
    pub async fn end(&self, give_back: bool) {
        let Some(election) = &self.election else {
            return;
        };
        election.standing.send_modify(|standing| {
            standing.until = None;
            standing.ending = true;
            standing.ended = Some(if give_back {
                Ended::GiveBack
            } else {
                Ended::RunOut
            });
        });
        election.stop.cancel();
        let task = election
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task
            && tokio::time::timeout(GIVE_BACK, task).await.is_err()
        {
            tracing::warn!(
                "the election did not end within {GIVE_BACK:?}: a lease that this host holds runs out"
            );
        }
    }
}

/// Was this write refused here, since another host may lead?
pub fn is_fenced(error: &WriteError) -> bool {
    matches!(error, WriteError::NotSent(source) if source.is::<NotLeading>())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// That of a host that stands for election and does not lead.
    pub(crate) fn election() -> Leadership {
        Leadership {
            election: Some(Election {
                standing: watch::Sender::default(),
                stop: CancellationToken::new(),
                task: Mutex::default(),
            }),
        }
    }

    /// It leads until then.
    pub(crate) fn set(leadership: &Leadership, until: Option<Instant>) {
        let election = leadership.election.as_ref().unwrap();
        election
            .standing
            .send_modify(|standing| standing.until = until);
    }

    #[test]
    fn a_fence_closes_by_the_clock() {
        assert!(Leadership::alone().fence().is_ok());
        let leadership = election();
        assert!(is_fenced(&leadership.fence().unwrap_err()));
        set(
            &leadership,
            Some(Instant::now() + Duration::from_secs(3600)),
        );
        assert!(leadership.fence().is_ok() && leadership.is_leading());
        // Nobody has said so, but its time is over.
        set(&leadership, Some(Instant::now()));
        assert!(is_fenced(&leadership.fence().unwrap_err()));
        let other = WriteError::Timeout(WRITE_TIMEOUT);
        assert!(!is_fenced(&other));
    }

    #[tokio::test]
    async fn workers_wait_until_it_leads_or_ends() {
        Leadership::alone().leads().await;
        for end in [false, true] {
            let leadership = Arc::new(election());
            set(&leadership, Some(Instant::now()));
            let waiting = tokio::spawn({
                let leadership = leadership.clone();
                async move { leadership.leads().await }
            });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            if end {
                leadership.ending();
            } else {
                set(
                    &leadership,
                    Some(Instant::now() + Duration::from_secs(3600)),
                );
            }
            waiting.await.unwrap();
            leadership.end(false).await;
            assert!(!leadership.is_leading());
        }
    }
}
