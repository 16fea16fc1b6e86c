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
mod leadership;
mod settings;
mod stand;
mod standing;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use vmhost_cluster::{Leases, WRITE_TIMEOUT};

use crate::observe::metrics::Metrics;
use leadership::Election;
pub use leadership::Leadership;
#[cfg(test)]
pub(crate) use leadership::NotLeading;
pub(crate) use leadership::is_fenced;
#[cfg(test)]
pub(crate) use leadership::tests;
pub use settings::{JITTER, Settings};
use stand::Stand;
use standing::Standing;

/// Stands for election from now on, on the runtime that this is called on. Guests must never run
/// there.
pub fn stand(leases: Leases, settings: Settings, metrics: Arc<Metrics>) -> Arc<Leadership> {
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
    let stand = Stand::new(leases, settings, metrics, standing.clone(), stop.clone());
    let task = Mutex::new(Some(tokio::spawn(stand.run())));
    Leadership::of(Election {
        standing,
        stop,
        task,
    })
}
