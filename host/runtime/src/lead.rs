//! Leader election: of several hosts with the same plugins, one leads and does the work.
//!
//! ```text
//! elector           <-- answers ---   stand             --- state -->   Leadership
//! (state machine:   --- requests -->  (task: sends the                  asked before a worker
//! no clock, no I/O)                   requests, waits)                  takes a key, and before
//!                                                                       each write
//! ```
//! [`Leadership`] answers two questions: may a worker take a key, and may a write be sent. This
//! module must not know what the leader does.
//!
//! A standby is as warm as the leader: its informers run, its queues fill, and it is ready. Only
//! its workers take no key. When it becomes the leader, they start on the queues as they are.
//!
//! A host that loses the lease **becomes a standby again; it does not exit**, unlike a
//! controller-runtime manager. Its stores stay warm, so the next takeover needs no new lists. This
//! is safe because nothing left over from the old term can write: every write asks
//! [`Leadership::fence`] right before its request. The fence closes by the clock at the renew
//! deadline, even if the process was stopped meanwhile.
//!
//! What the fence does not cover:
//! - A request in flight when the fence closes. It is answered within the write timeout (4 s),
//!   which is shorter than the time between the renew deadline and the end of the lease (5 s). With
//!   other flags the host logs a warning.
//! - A process that is stopped between the check of the fence and the send, and continues after the
//!   lease ended. The gap is microseconds, or the handshake of a new connection. Writes with a
//!   version or a `test` then fail; others land.
//! - A machine whose monotonic clock stops while it sleeps (a suspended laptop, a paused virtual
//!   machine): the fence sleeps too, as client-go's does.
//! - A Lease that is deleted or edited by hand: its holder notices at its next renewal.
//! - An HTTP request of a policy in flight when the fence closes: its service may carry it out as
//!   late as it likes. It has an `Idempotency-Key`, and the next leader's has the same one.
//! - Events, `SelfSubjectAccessReview`s, and CustomResourceDefinitions installed at the start:
//!   these are not writes of a turn.

pub mod elector;
mod leadership;
mod settings;
mod stand;
mod standing;
mod told;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use vmhost_cluster::{Events, Leases, Recorder, WRITE_TIMEOUT};

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

/// Takes part in the election from now on, with a task on the current runtime. Guests must never
/// run on that runtime. Events tell when this host begins and stops to lead.
pub fn stand(
    leases: Leases,
    events: Events,
    settings: Settings,
    metrics: Arc<Metrics>,
) -> Arc<Leadership> {
    let margin = settings.terms.lease - settings.terms.renew;
    if margin <= WRITE_TIMEOUT {
        tracing::warn!(
            "--leader-election-renew-deadline {:?} ends {margin:?} before --leader-election-lease-duration {:?}, but a write may take {WRITE_TIMEOUT:?}: a write in flight when the lease is lost may land after the next leader's first write",
            settings.terms.renew,
            settings.terms.lease,
        );
    }
    let standing = watch::Sender::new(Standing::default());
    let stop = CancellationToken::new();
    // One or two Events in a term need no limit.
    let recorder = Recorder::new(events, "vmhost", metrics.clone(), None);
    let (sender, end) = (standing.clone(), stop.clone());
    let stand = Stand::new(leases, recorder, settings, metrics, sender, end);
    let task = Mutex::new(Some(tokio::spawn(stand.run())));
    Leadership::of(Election {
        standing,
        stop,
        task,
    })
}
