//! Who leads: client-go's algorithm (`tools/leaderelection`) as a synchronous state machine. Time and answers come in, requests and a deadline go out.
//!
//! It owns when the lease may be taken and until when it is held. It must not look at a clock, send anything, or know what a leader does.
//!
//! Two rules make it safe, whatever the clocks of the hosts say:
//! - A candidate takes the lease of another only when its record has not *changed* for the lease's duration by the candidate's own clock. The times in the
//!   record are never compared.
//! - The holder counts from when its last successful renewal was *sent*, and only up to the renew deadline, which is shorter than the lease. Whoever takes over
//!   has seen that renewal later than it was sent, so that the deadline is over by then, as long as no clock runs faster than another by lease to deadline (3:2).

use std::time::{Duration, Instant};

use jiff::Timestamp;
use vmhost_cluster::LeaseRecord;

/// How long what lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long candidates wait after the last change of the record.
    pub lease: Duration,
    /// How long the holder leads after it has sent its last successful renewal.
    pub renew: Duration,
    /// The pause between two tries.
    pub retry: Duration,
}

/// One moment by this host's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// What is decided by.
    pub(crate) at: Instant,
    /// What is written into the record, for people.
    pub(crate) wall: Timestamp,
}

impl Moment {
    pub(crate) fn now() -> Self {
        // As exact as it is written, so that what is read again is equal.
        let wall = Timestamp::now();
        Self {
            at: Instant::now(),
            wall: Timestamp::from_microsecond(wall.as_microsecond()).unwrap_or(wall),
        }
    }
}

/// A request about the lease. `L` is what a later replace needs of the lease that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask<L> {
    /// Read it.
    Read,
    /// Make it.
    Create(LeaseRecord),
    /// Replace what it says, if it is still the one that was read.
    Replace(L, LeaseRecord),
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer<L> {
    /// Of a read: what it says.
    Found(LeaseRecord, L),
    /// Of a read: there is none.
    Absent,
    /// Of a create or replace: done.
    Written(L),
    /// Refused, or not answered in time. It may have been carried out all the same.
    Failed,
}

/// One candidate.
#[derive(Debug)]
pub(crate) struct Elector<L> {
    identity: String,
    terms: Terms,
    seen: Option<Seen<L>>,
    /// When the renewal that this host leads by was sent.
    held: Option<Instant>,
    phase: Phase,
    slow: u64,
}

/// The record as it was last read or written, and since when it has not changed, by this host's clock.
#[derive(Debug)]
struct Seen<L> {
    record: LeaseRecord,
    lease: L,
    since: Instant,
}

/// What the outstanding request is for.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// A renewal without reading first.
    Renewing(LeaseRecord),
    Reading,
    Writing(LeaseRecord),
    Returning,
    ReadingToReturn,
}

impl<L: Clone> Elector<L> {
    /// A candidate that has seen nothing yet. No other candidate has this identity.
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

    /// Begins a try to take or to renew the lease: its first request.
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

    /// Takes the answer of a request that was sent at `sent`; the next request of this try, or none: the try is over.
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
            // Somebody has it, or has taken it away: no write from here on.
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

    /// Gives the lease back: from now on this host does not lead. The first request, if there is something to give back. Answers go to
    /// [`Elector::answered`].
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

    /// Until when this host leads, if nothing else comes; none: it does not. May lie in the past.
    pub(crate) fn leads_until(&self) -> Option<Instant> {
        Some(self.held? + self.terms.renew)
    }

    /// Does it lead at that time?
    pub(crate) fn leads(&self, now: Instant) -> bool {
        self.leads_until().is_some_and(|until| now < until)
    }

    /// Who holds the lease, as far as this host has seen; empty: nobody.
    pub(crate) fn holder(&self) -> &str {
        self.seen
            .as_ref()
            .map_or("", |seen| &seen.record.holder_identity)
    }

    /// How many renewals had to read the lease first.
    pub(crate) fn slow(&self) -> u64 {
        self.slow
    }

    fn is_mine(&self, record: &LeaseRecord) -> bool {
        record.holder_identity == self.identity
    }

    fn taken(&self, transitions: u32, now: Moment) -> LeaseRecord {
        LeaseRecord {
            holder_identity: self.identity.clone(),
            // Rounded up: a candidate that counts by the record must not be early.
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

/// What a lease says that was given back: nobody's, and over at once.
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
