use super::*;

mod simulation;

const TERMS: Terms = Terms {
    lease: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};

/// A host whose wall clock is wrong by `wrong` seconds.
struct Host {
    elector: Elector<u64>,
    wrong: i64,
}

/// The test's clock, in seconds since a beginning that all hosts share.
fn at(start: Instant, seconds: f64, wrong: i64) -> Moment {
    let wall = 1_800_000_000_000_000 + (seconds * 1e6) as i64 + wrong * 1_000_000;
    Moment {
        at: start + Duration::from_secs_f64(seconds),
        wall: Timestamp::from_microsecond(wall).unwrap(),
    }
}

/// A lease server without faults.
#[derive(Default)]
struct Server {
    version: u64,
    record: Option<LeaseRecord>,
}

impl Server {
    fn answer(&mut self, ask: Ask<u64>) -> Answer<u64> {
        let record = match (ask, &self.record) {
            (Ask::Read, None) => return Answer::Absent,
            (Ask::Read, Some(record)) => return Answer::Found(record.clone(), self.version),
            (Ask::Create(record), None) => record,
            (Ask::Replace(version, record), Some(_)) if version == self.version => record,
            _ => return Answer::Failed,
        };
        self.version += 1;
        self.record = Some(record);
        Answer::Written(self.version)
    }

    fn record(&self) -> &LeaseRecord {
        self.record.as_ref().unwrap()
    }
}

impl Host {
    fn new(name: &str, wrong: i64) -> Self {
        Self {
            elector: Elector::new(name.into(), TERMS),
            wrong,
        }
    }

    /// Makes one whole attempt, with immediate answers. Returns whether the host leads then.
    fn tries(&mut self, server: &mut Server, start: Instant, seconds: f64) -> bool {
        let now = at(start, seconds, self.wrong);
        let mut next = Some(self.elector.begin(now));
        while let Some(ask) = next {
            let answer = server.answer(ask);
            next = self.elector.answered(now.at, now, answer);
        }
        self.elector.leads(now.at)
    }

    fn leads(&self, start: Instant, seconds: f64) -> bool {
        self.elector.leads(at(start, seconds, 0).at)
    }
}

#[test]
fn the_first_one_leads_and_the_other_waits_whatever_their_clocks_say() {
    let (start, mut server) = (Instant::now(), Server::default());
    for wrong in [-86_400, 0, 86_400] {
        server.record = None;
        let (mut one, mut two) = (Host::new("one", 0), Host::new("two", wrong));
        assert!(one.tries(&mut server, start, 0.0));
        for second in 1..60 {
            assert!(one.tries(&mut server, start, f64::from(second)));
            assert!(!two.tries(&mut server, start, f64::from(second) + 0.5));
        }
        let record = server.record();
        assert_eq!(record.holder_identity, "one");
        assert_eq!(record.lease_duration_seconds, 15);
        assert_eq!(record.lease_transitions, 0);
        assert_eq!(record.acquire_time, Some(at(start, 0.0, 0).wall));
        assert_eq!(record.renew_time, Some(at(start, 59.0, 0).wall));

        // The first host is gone. The other waits a whole lease duration after the last change that
        // it saw.
        assert!(!two.tries(&mut server, start, 74.4));
        assert!(two.tries(&mut server, start, 74.5));
        let record = server.record();
        assert_eq!(record.lease_transitions, 1);
        assert_eq!(record.acquire_time, Some(at(start, 74.5, wrong).wall));
        assert!(
            !one.tries(&mut server, start, 75.0),
            "the one that was gone does not lead when it is back"
        );
    }
}

#[test]
fn a_term_counts_from_when_the_renewal_was_sent() {
    let (start, mut server) = (Instant::now(), Server::default());
    let mut host = Host::new("one", 0);
    let sent = at(start, 0.0, 0).at;
    let ask = host.elector.begin(at(start, 0.0, 0));
    assert_eq!(ask, Ask::Read);
    let next = host
        .elector
        .answered(sent, at(start, 1.0, 0), server.answer(ask));
    let answer = server.answer(next.unwrap());
    // Sent at 1 s, answered at 7 s.
    let sent = at(start, 1.0, 0).at;
    assert!(
        host.elector
            .answered(sent, at(start, 7.0, 0), answer)
            .is_none()
    );
    assert!(host.leads(start, 10.9));
    assert!(!host.leads(start, 11.0));
}

#[test]
fn an_answer_that_comes_after_the_deadline_makes_no_leader() {
    let (start, mut server) = (Instant::now(), Server::default());
    let mut host = Host::new("one", 0);
    assert!(host.tries(&mut server, start, 0.0));
    let ask = host.elector.begin(at(start, 2.0, 0));
    let answer = server.answer(ask);
    // The process was stopped for half a minute while a renewal was in flight.
    let sent = at(start, 2.0, 0).at;
    assert!(
        host.elector
            .answered(sent, at(start, 32.0, 0), answer)
            .is_none()
    );
    assert!(!host.leads(start, 32.0));
    assert!(
        host.tries(&mut server, start, 33.0),
        "no other host took it"
    );
}

#[test]
fn a_renewal_that_fails_is_tried_again_until_the_deadline() {
    let (start, mut server) = (Instant::now(), Server::default());
    let mut host = Host::new("one", 0);
    assert!(host.tries(&mut server, start, 0.0));
    for second in [2.0, 4.0, 6.0, 8.0] {
        let now = at(start, second, 0);
        assert!(matches!(host.elector.begin(now), Ask::Replace(..)));
        let next = host.elector.answered(now.at, now, Answer::Failed);
        assert_eq!(next, Some(Ask::Read), "the slow way");
        assert_eq!(host.elector.answered(now.at, now, Answer::Failed), None);
        assert!(host.leads(start, second));
    }
    assert!(!host.leads(start, 10.0));
    assert!(
        host.tries(&mut server, start, 10.5),
        "and it is still its own"
    );
    assert_eq!(server.record().lease_transitions, 0);
    assert_eq!(host.elector.slow(), 4);
}

#[test]
fn a_lost_answer_is_found_out() {
    let (start, mut server) = (Instant::now(), Server::default());
    let (mut one, mut two) = (Host::new("one", 0), Host::new("two", 0));
    // The create is carried out, but its answer is lost: the host does not lead, and takes its own
    // lease with the next attempt.
    let now = at(start, 0.0, 0);
    let ask = one.elector.begin(now);
    let create = one.elector.answered(now.at, now, server.answer(ask));
    server.answer(create.unwrap());
    assert_eq!(one.elector.answered(now.at, now, Answer::Failed), None);
    assert!(!one.leads(start, 0.0));
    assert!(!two.tries(&mut server, start, 0.1));
    assert!(one.tries(&mut server, start, 2.0));
    assert_eq!(server.record().lease_transitions, 0);
    assert_eq!(server.record().acquire_time, Some(at(start, 0.0, 0).wall));

    // The same happens to a renewal: the lease has another version than the host knows.
    let ask = one.elector.begin(at(start, 4.0, 0));
    server.answer(ask);
    let now = at(start, 6.0, 0);
    let next = one.elector.answered(now.at, now, Answer::Failed);
    let answer = server.answer(next.unwrap());
    let next = one.elector.answered(now.at, now, answer);
    let answer = server.answer(next.unwrap());
    assert_eq!(one.elector.answered(now.at, now, answer), None);
    assert!(one.leads(start, 15.9));
}

#[test]
fn of_two_that_take_at_once_one_gets_it() {
    let (start, mut server) = (Instant::now(), Server::default());
    let (mut one, mut two) = (Host::new("one", 0), Host::new("two", 0));
    let now = at(start, 0.0, 0);
    let asks = [&mut one, &mut two].map(|host| {
        let ask = host.elector.begin(now);
        host.elector.answered(now.at, now, server.answer(ask))
    });
    let [first, second] = asks.map(|ask| server.answer(ask.unwrap()));
    assert_eq!(one.elector.answered(now.at, now, first), None);
    assert_eq!(two.elector.answered(now.at, now, second), None);
    assert!(one.leads(start, 0.0) && !two.leads(start, 0.0));
}

#[test]
fn a_holder_that_sees_another_holder_stops_at_once() {
    let (start, mut server) = (Instant::now(), Server::default());
    let mut one = Host::new("one", 0);
    assert!(one.tries(&mut server, start, 0.0));
    // Edited by hand, since no candidate would write this.
    let taken = LeaseRecord {
        holder_identity: "two".into(),
        ..server.record().clone()
    };
    let version = server.version;
    server.answer(Ask::Replace(version, taken));
    assert!(one.leads(start, 1.0));
    assert!(!one.tries(&mut server, start, 2.0));
    assert!(!one.leads(start, 2.0));
}

#[test]
fn a_lease_that_is_given_back_is_free_at_once() {
    let (start, mut server) = (Instant::now(), Server::default());
    let (mut one, mut two) = (Host::new("one", 0), Host::new("two", 0));
    assert!(one.tries(&mut server, start, 0.0));
    assert!(!two.tries(&mut server, start, 1.0));
    // The host's own renewal is in flight and unanswered, so the first request to give the lease
    // back fails.
    let ask = one.elector.begin(at(start, 2.0, 0));
    server.answer(ask);
    let now = at(start, 3.0, 0);
    let mut next = one.elector.give_back(now);
    assert!(!one.leads(start, 3.0));
    let mut requests = 0;
    while let Some(ask) = next {
        requests += 1;
        let answer = server.answer(ask);
        next = one.elector.answered(now.at, now, answer);
    }
    assert_eq!(requests, 3);
    let record = server.record();
    assert_eq!(
        (
            record.holder_identity.as_str(),
            record.lease_duration_seconds
        ),
        ("", 1)
    );
    assert!(two.tries(&mut server, start, 3.1));
    assert_eq!(server.record().lease_transitions, 1);
    assert!(
        one.elector.give_back(now).is_some(),
        "it has not read again"
    );
    assert_eq!(two.elector.holder(), "two");
    assert!(
        Elector::<u64>::new("x".into(), TERMS)
            .give_back(now)
            .is_none()
    );
}

#[test]
fn a_lease_that_is_deleted_is_made_again() {
    let (start, mut server) = (Instant::now(), Server::default());
    let mut one = Host::new("one", 0);
    assert!(one.tries(&mut server, start, 0.0));
    server.record = None;
    assert!(one.tries(&mut server, start, 2.0));
    assert_eq!(server.record().holder_identity, "one");
}

#[test]
fn parts_of_a_second_are_rounded_up() {
    let terms = Terms {
        lease: Duration::from_millis(1500),
        ..TERMS
    };
    let elector = Elector::<u64>::new("x".into(), terms);
    let record = elector.taken(0, at(Instant::now(), 0.0, 0));
    assert_eq!(record.lease_duration_seconds, 2);
}
