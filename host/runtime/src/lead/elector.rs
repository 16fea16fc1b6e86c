//! Client-go's leader election (`tools/leaderelection`) as a synchronous state machine: time and
//! answers go in, requests and a deadline come out.
//!
//! It decides when the lease may be taken and until when it is held. It must not read a clock, send
//! a request, or know what a leader does.
//!
//! Two rules make it safe, whatever the hosts' clocks show:
//! - A candidate takes another host's lease only after the record has not *changed* for the lease
//!   duration, measured by the candidate's own clock. It never compares the times in the record.
//! - The holder leads from the time at which its last successful renewal was *sent*, and only up to
//!   the renew deadline, which is shorter than the lease. A host that takes over has seen that
//!   renewal after it was sent, so the old holder's deadline has passed by then, as long as no
//!   clock runs faster than another by the ratio of lease to deadline (3:2).

use std::time::{Duration, Instant};

use jiff::Timestamp;
use vmhost_cluster::LeaseRecord;

/// The durations of the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a candidate waits after the last change of the record.
    pub lease: Duration,
    /// How long the holder leads after sending its last successful renewal.
    pub renew: Duration,
    /// The pause between two attempts.
    pub retry: Duration,
}

/// A point in time on this host's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The monotonic time, which decisions use.
    pub(crate) at: Instant,
    /// The wall-clock time, which is written into the record for people.
    pub(crate) wall: Timestamp,
}

impl Moment {
    pub(crate) fn now() -> Self {
        // Rounded to the record's precision, so that a record compares equal after it is read back.
        let wall = Timestamp::now();
        Self {
            at: Instant::now(),
            wall: Timestamp::from_microsecond(wall.as_microsecond()).unwrap_or(wall),
        }
    }
}

/// A request for the lease. `L` is the part of a read lease that a later replace needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask<L> {
    /// Read the lease.
    Read,
    /// Create the lease.
    Create(LeaseRecord),
    /// Replace the record, if the lease is unchanged since it was read.
    Replace(L, LeaseRecord),
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer<L> {
    /// A read found this record.
    Found(LeaseRecord, L),
    /// A read found no lease.
    Absent,
    /// A create or replace succeeded.
    Written(L),
    /// The request was refused, or not answered in time. It may have been carried out nevertheless.
    Failed,
}

/// The state machine of one candidate.
#[derive(Debug)]
pub(crate) struct Elector<L> {
    identity: String,
    terms: Terms,
    seen: Option<Seen<L>>,
    /// When the renewal that this host leads by was sent. `None` if it does not lead.
    held: Option<Instant>,
    phase: Phase,
    slow: u64,
}

/// The record as it was last read or written, and since when it is unchanged by this host's clock.
#[derive(Debug)]
struct Seen<L> {
    record: LeaseRecord,
    lease: L,
    since: Instant,
}

/// The purpose of the outstanding request.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// A renewal that is sent without a read before it.
    Renewing(LeaseRecord),
    Reading,
    Writing(LeaseRecord),
    Returning,
    ReadingToReturn,
}

impl<L: Clone> Elector<L> {
    /// A candidate that has not read the lease yet. No other candidate may have this identity.
    pub(crate) fn new(identity: String, terms: Terms) -> Self {
        Self {
            identity,
            terms,
            seen: None,
            held: None,
            phase: Phase::Idle,
            slow: 0,
        }
    }

    /// Begins an attempt to take or renew the lease. Returns its first request.
    pub(crate) fn begin(&mut self, now: Moment) -> Ask<L> {
        if let Some(seen) = &self.seen
            && self.is_mine(&seen.record)
            && is_valid(seen, now.at)
        {
            let record = self.renewed(&seen.record, now);
            let ask = Ask::Replace(seen.lease.clone(), record.clone());
            self.phase = Phase::Renewing(record);
            return ask;
        }
        self.phase = Phase::Reading;
        Ask::Read
    }

    /// Takes the answer to a request that was sent at `sent`. Returns the next request of this
    /// attempt, or `None` if the attempt is over.
    pub(crate) fn answered(
        &mut self,
        sent: Instant,
        now: Moment,
        answer: Answer<L>,
    ) -> Option<Ask<L>> {
        match (std::mem::replace(&mut self.phase, Phase::Idle), answer) {
            (Phase::Renewing(record) | Phase::Writing(record), Answer::Written(lease)) => {
                self.seen = Some(Seen {
                    record,
                    lease,
                    since: now.at,
                });
                self.held = Some(sent);
                None
            }
            (Phase::Renewing(_), _) => {
                self.slow += 1;
                self.phase = Phase::Reading;
                Some(Ask::Read)
            }
            (Phase::Reading, Answer::Absent) => {
                let record = self.taken(0, now);
                self.phase = Phase::Writing(record.clone());
                Some(Ask::Create(record))
            }
            (Phase::Reading, Answer::Found(record, lease)) => self.found(now, record, lease),
            (Phase::Returning, Answer::Failed) => {
                self.phase = Phase::ReadingToReturn;
                Some(Ask::Read)
            }
            (Phase::ReadingToReturn, Answer::Found(record, lease)) if self.is_mine(&record) => {
                let record = returned(&record, now);
                Some(Ask::Replace(lease, record))
            }
            _ => None,
        }
    }

    fn found(&mut self, now: Moment, record: LeaseRecord, lease: L) -> Option<Ask<L>> {
        let mine = self.is_mine(&record);
        if !mine {
            // Another host holds the lease, or the lease was taken from this host: it must not
            // write any more.
            self.held = None;
        }
        let since = match &self.seen {
            Some(seen) if seen.record == record => seen.since,
            _ => now.at,
        };
        let seen = self.seen.insert(Seen {
            record,
            lease,
            since,
        });
        if !mine && !seen.record.holder_identity.is_empty() && is_valid(seen, now.at) {
            return None;
        }
        let (lease, before) = (seen.lease.clone(), seen.record.clone());
        let record = if mine {
            self.renewed(&before, now)
        } else {
            self.taken(before.lease_transitions.saturating_add(1), now)
        };
        self.phase = Phase::Writing(record.clone());
        Some(Ask::Replace(lease, record))
    }

    /// Gives the lease back: from now on this host does not lead. Returns the first request, if
    /// this host holds the lease. Answers go to [`Elector::answered`].
    pub(crate) fn give_back(&mut self, now: Moment) -> Option<Ask<L>> {
        self.held = None;
        let seen = self.seen.as_ref()?;
        if !self.is_mine(&seen.record) {
            return None;
        }
        self.phase = Phase::Returning;
        Some(Ask::Replace(
            seen.lease.clone(),
            returned(&seen.record, now),
        ))
    }

    /// Until when this host leads if nothing else happens. `None` if it does not lead. The time may
    /// lie in the past.
    pub(crate) fn leads_until(&self) -> Option<Instant> {
        Some(self.held? + self.terms.renew)
    }

    /// Returns whether this host leads at that time.
    pub(crate) fn leads(&self, now: Instant) -> bool {
        self.leads_until().is_some_and(|until| now < until)
    }

    /// The holder of the lease, as far as this host has seen. Empty if there is none.
    pub(crate) fn holder(&self) -> &str {
        self.seen
            .as_ref()
            .map_or("", |seen| &seen.record.holder_identity)
    }

    /// The number of renewals that had to read the lease first.
    pub(crate) fn slow(&self) -> u64 {
        self.slow
    }

    fn is_mine(&self, record: &LeaseRecord) -> bool {
        record.holder_identity == self.identity
    }

    fn taken(&self, transitions: u32, now: Moment) -> LeaseRecord {
        LeaseRecord {
            holder_identity: self.identity.clone(),
            // Rounded up, so that a candidate that waits for the recorded duration is never early.
            lease_duration_seconds: u32::try_from(self.terms.lease.as_millis().div_ceil(1000))
                .unwrap_or(u32::MAX),
            acquire_time: Some(now.wall),
            renew_time: Some(now.wall),
            lease_transitions: transitions,
        }
    }

    fn renewed(&self, before: &LeaseRecord, now: Moment) -> LeaseRecord {
        LeaseRecord {
            acquire_time: before.acquire_time,
            ..self.taken(before.lease_transitions, now)
        }
    }
}

/// The record of a lease that was given back: it has no holder and ends at once.
fn returned(before: &LeaseRecord, now: Moment) -> LeaseRecord {
    LeaseRecord {
        holder_identity: String::new(),
        lease_duration_seconds: 1,
        acquire_time: Some(now.wall),
        renew_time: Some(now.wall),
        lease_transitions: before.lease_transitions,
    }
}

fn is_valid<L>(seen: &Seen<L>, now: Instant) -> bool {
    let duration = Duration::from_secs(seen.record.lease_duration_seconds.into());
    now < seen.since + duration
}

#[cfg(test)]
mod tests;
