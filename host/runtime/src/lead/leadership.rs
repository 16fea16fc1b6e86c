//! Answers whether this host may work and write, with or without an election.
//!
//! It answers two questions: may a worker take a key, and may a write be sent. It must not know how
//! an election works.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vmhost_cluster::Error;

use super::standing::{Ended, Standing};

/// The time limit for giving a lease back.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// Whether this host may work and write. There is one per process.
pub struct Leadership {
    /// `None` if there is no election. Then this host always leads.
    pub(super) election: Option<Election>,
}

/// The state that the election task shares with its readers.
pub(super) struct Election {
    pub(super) standing: watch::Sender<Standing>,
    /// Stops the task.
    pub(super) stop: CancellationToken,
    pub(super) task: Mutex<Option<JoinHandle<()>>>,
}

/// The reason why a write was not sent.
#[derive(Debug, thiserror::Error)]
#[error("this host does not hold the leader lease")]
pub(crate) struct NotLeading;

impl Leadership {
    /// A leadership without an election: this host always leads.
    pub fn alone() -> Arc<Self> {
        Arc::new(Self { election: None })
    }

    /// A leadership that follows this election.
    pub(super) fn of(election: Election) -> Arc<Self> {
        Arc::new(Self {
            election: Some(election),
        })
    }

    /// Returns whether there is an election at all.
    pub(crate) fn is_elected(&self) -> bool {
        self.election.is_some()
    }

    /// Returns whether this host leads at this moment.
    pub(crate) fn is_leading(&self) -> bool {
        self.election
            .as_ref()
            .is_none_or(|election| election.standing.borrow().leads())
    }

    /// Returns an error if this host does not lead. Called right before each write is sent, so that
    /// a process that was stopped until its lease ended does not write.
    pub(crate) fn fence(&self) -> Result<(), Error> {
        if self.is_leading() {
            Ok(())
        } else {
            Err(Error::NotSent(Box::new(NotLeading)))
        }
    }

    /// Waits until this host leads, or until it is ending, so that a waiting worker finds its queue
    /// closed.
    pub(crate) async fn leads(&self) {
        let Some(election) = &self.election else {
            return;
        };
        let mut standing = election.standing.subscribe();
        // The sender lives as long as this value.
        let _ = standing
            .wait_for(|standing| standing.leads() || standing.ending)
            .await;
    }

    /// Waits until this host leads, if it did not, or does not lead any more, if it did.
    pub(crate) async fn changes_from(&self, was_leading: bool) {
        let Some(election) = &self.election else {
            return std::future::pending().await;
        };
        let mut standing = election.standing.subscribe();
        // The sender lives as long as this value.
        let _ = standing
            .wait_for(|standing| standing.leads() != was_leading)
            .await;
    }

    /// Marks the host as ending. It keeps renewing the lease for the writes in flight.
    pub(crate) fn ending(&self) {
        if let Some(election) = &self.election {
            election
                .standing
                .send_modify(|standing| standing.ending = true);
        }
    }

    /// Ends the leadership: no more writes are sent. `give_back` means that all writes were
    /// answered, so that another host may take over at once. Otherwise the lease expires.
    pub(crate) async fn end(&self, give_back: bool) {
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
        let task = election.task.lock().take();
        if let Some(task) = task
            && tokio::time::timeout(GIVE_BACK, task).await.is_err()
        {
            tracing::warn!(
                "the leader election did not end within {GIVE_BACK:?}; a lease that this host holds will expire"
            );
        }
    }
}

/// Returns whether this host refused to send the write because it does not lead.
pub(crate) fn is_fenced(error: &Error) -> bool {
    matches!(error, Error::NotSent(source) if source.is::<NotLeading>())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Instant;

    use vmhost_cluster::WRITE_TIMEOUT;

    use super::*;

    /// The leadership of a candidate that does not lead.
    pub(crate) fn election() -> Leadership {
        Leadership {
            election: Some(Election {
                standing: watch::Sender::default(),
                stop: CancellationToken::new(),
                task: Mutex::default(),
            }),
        }
    }

    /// Sets the time until which the host leads.
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
        // The task has said nothing yet, but the time is over.
        set(&leadership, Some(Instant::now()));
        assert!(is_fenced(&leadership.fence().unwrap_err()));
        let other = Error::Timeout(WRITE_TIMEOUT);
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
