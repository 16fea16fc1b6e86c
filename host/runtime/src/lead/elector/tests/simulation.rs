//! Simulates candidates with drifting clocks, a naive lease server, and a network that delays,
//! loses and reorders messages. Two candidates must never lead at once.
//!
//! The simulation is seeded, so that a failure can be repeated. True time is in milliseconds, and
//! no candidate knows it.

use std::collections::BTreeMap;

use super::*;

const CANDIDATES: usize = 3;
/// An hour of true time.
const END: u64 = 3_600_000;
/// Clocks drift by up to 4 %. Real clocks drift by less than 0.1 %.
const DRIFT: f64 = 0.04;

#[derive(Debug)]
enum Event {
    /// A candidate begins an attempt.
    Try(usize),
    /// A request reaches the server, possibly after its sender has given it up.
    Arrives(usize, u64, Ask<u64>),
    /// An answer reaches its candidate.
    Answered(usize, u64, Answer<u64>),
    /// A candidate gives a request up.
    TimesOut(usize, u64),
    /// A candidate is stopped by SIGSTOP for this many milliseconds.
    Stops(usize, u64),
    /// A candidate is killed, or ends and gives its lease back if `true`. It starts again with
    /// another identity.
    Restarts(usize, bool),
}

struct Candidate {
    elector: Elector<u64>,
    /// The candidate's clock: `offset + rate * true time`.
    offset: f64,
    rate: f64,
    /// The outstanding request, and when it was sent by the candidate's clock.
    waiting: Option<(u64, Instant)>,
    stopped_until: u64,
    returning: bool,
}

struct World {
    start: Instant,
    random: fastrand::Rng,
    terms: Terms,
    now: u64,
    events: BTreeMap<(u64, u64), Event>,
    next: u64,
    server: Server,
    candidates: Vec<Candidate>,
    faults: bool,
    /// How often a candidate became the leader.
    terms_begun: u32,
    /// How long there was a leader, sampled at each event.
    led: u64,
}

impl World {
    fn new(seed: u64, terms: Terms, faults: bool) -> Self {
        let mut world = Self {
            start: Instant::now(),
            random: fastrand::Rng::with_seed(seed),
            terms,
            now: 0,
            events: BTreeMap::new(),
            next: 0,
            server: Server::default(),
            candidates: Vec::new(),
            faults,
            terms_begun: 0,
            led: 0,
        };
        for number in 0..CANDIDATES {
            let (offset, rate) = (
                world.random.f64() * 1e6,
                1.0 - DRIFT + world.random.f64() * 2.0 * DRIFT,
            );
            world.candidates.push(Candidate {
                elector: Elector::new(format!("{number}-0"), terms),
                offset,
                rate,
                waiting: None,
                stopped_until: 0,
                returning: false,
            });
            world.after(number as u64 * 10, Event::Try(number));
            if faults {
                world.trouble(number);
            }
        }
        world
    }

    fn after(&mut self, wait: u64, event: Event) {
        self.next += 1;
        self.events.insert((self.now + wait, self.next), event);
    }

    /// Schedules the next fault of a candidate's process.
    fn trouble(&mut self, who: usize) {
        let wait = self.random.u64(20_000..200_000);
        let event = match self.random.u8(0..4) {
            0 => Event::Restarts(who, false),
            1 => Event::Restarts(who, true),
            _ => Event::Stops(who, self.random.u64(1_000..60_000)),
        };
        self.after(wait, event);
    }

    /// The candidate's clock at a true time.
    fn clock(&self, who: usize, time: u64) -> Moment {
        let candidate = &self.candidates[who];
        let ms = candidate.offset + candidate.rate * time as f64;
        Moment {
            at: self.start + Duration::from_secs_f64(ms / 1000.0),
            wall: Timestamp::from_microsecond((ms * 1000.0) as i64).unwrap(),
        }
    }

    fn send(&mut self, who: usize, ask: Ask<u64>) {
        self.next += 1;
        let request = self.next;
        self.candidates[who].waiting = Some((request, self.clock(who, self.now).at));
        let timeout = self.terms.renew.as_millis() as u64 / 2;
        self.after(timeout, Event::TimesOut(who, request));
        let lost = self.faults && self.random.u8(0..20) == 0;
        if !lost {
            let wait = self.delay();
            self.after(wait, Event::Arrives(who, request, ask));
        }
    }

    /// A delay that is mostly short, and sometimes longer than any timeout.
    fn delay(&mut self) -> u64 {
        match self.random.u8(0..20) {
            0 if self.faults => self.random.u64(0..30_000),
            1 if self.faults => self.random.u64(0..6_000),
            _ => self.random.u64(1..50),
        }
    }

    fn leaders(&self) -> Vec<usize> {
        let leads = |&who: &usize| {
            self.candidates[who]
                .elector
                .leads(self.clock(who, self.now).at)
        };
        (0..CANDIDATES).filter(leads).collect()
    }

    /// Runs to the end. Returns an error if two candidates lead at once.
    fn run(&mut self) -> Result<(), String> {
        let mut leaders = Vec::new();
        while let Some(((time, _), event)) = self.events.pop_first() {
            if time > END {
                break;
            }
            let past = time - self.now;
            self.now = time;
            if !self.leaders().is_empty() {
                self.led += past;
            }
            self.step(event);
            // A term begins with an event and ends by time, so a check after each event misses no
            // overlap.
            let present = self.leaders();
            if present.len() > 1 {
                return Err(format!("{present:?} lead at {time} ms"));
            }
            if !present.is_empty() && present != leaders {
                self.terms_begun += 1;
                leaders = present;
            }
        }
        Ok(())
    }

    fn step(&mut self, event: Event) {
        let who = match event {
            Event::Arrives(who, request, ask) => {
                let answer = self.server.answer(ask);
                let lost = self.faults && self.random.u8(0..20) == 0;
                if !lost {
                    let wait = self.delay();
                    self.after(wait, Event::Answered(who, request, answer));
                }
                return;
            }
            Event::Try(who)
            | Event::Answered(who, ..)
            | Event::TimesOut(who, _)
            | Event::Stops(who, _)
            | Event::Restarts(who, _) => who,
        };
        let stopped_until = self.candidates[who].stopped_until;
        if stopped_until > self.now {
            // Events for a stopped process wait for it.
            self.after(stopped_until - self.now, event);
            return;
        }
        match event {
            Event::Try(_) => {
                if self.candidates[who].waiting.is_none() && !self.candidates[who].returning {
                    let now = self.clock(who, self.now);
                    let ask = self.candidates[who].elector.begin(now);
                    self.send(who, ask);
                }
            }
            Event::Answered(_, request, answer) => self.answered(who, request, answer),
            Event::TimesOut(_, request) => self.answered(who, request, Answer::Failed),
            Event::Stops(_, long) => {
                self.candidates[who].stopped_until = self.now + long;
                self.trouble(who);
            }
            Event::Restarts(_, orderly) => {
                let now = self.clock(who, self.now);
                let candidate = &mut self.candidates[who];
                let ask = candidate.elector.give_back(now).filter(|_| orderly);
                match ask {
                    Some(ask) if candidate.waiting.is_none() => {
                        candidate.returning = true;
                        self.send(who, ask);
                    }
                    _ => self.restart(who),
                }
                self.trouble(who);
            }
            Event::Arrives(..) => {}
        }
    }

    fn answered(&mut self, who: usize, request: u64, answer: Answer<u64>) {
        let Some((_, sent)) = self.candidates[who]
            .waiting
            .take_if(|(id, _)| *id == request)
        else {
            return;
        };
        let now = self.clock(who, self.now);
        match self.candidates[who].elector.answered(sent, now, answer) {
            Some(ask) => self.send(who, ask),
            None if self.candidates[who].returning => self.restart(who),
            None => {
                let retry = self.terms.retry.as_millis() as u64;
                let wait = retry + self.random.u64(0..=retry / 5);
                self.after(wait, Event::Try(who));
            }
        }
    }

    fn restart(&mut self, who: usize) {
        self.next += 1;
        let identity = format!("{who}-{}", self.next);
        let candidate = &mut self.candidates[who];
        candidate.elector = Elector::new(identity, self.terms);
        candidate.waiting = None;
        candidate.returning = false;
        self.after(500, Event::Try(who));
    }
}

#[test]
fn never_do_two_lead_at_once() {
    for seed in 0..100 {
        let mut world = World::new(seed, TERMS, true);
        world
            .run()
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(
            world.terms_begun > 10,
            "seed {seed}: only {} terms, so nothing was tested",
            world.terms_begun
        );
        assert!(
            world.led > END / 3,
            "seed {seed}: there was a leader for only {} ms",
            world.led
        );
    }
}

#[test]
fn without_faults_one_leads_all_the_time() {
    for seed in 0..10 {
        let mut world = World::new(seed, TERMS, false);
        world.run().unwrap();
        assert_eq!(world.terms_begun, 1, "seed {seed}");
        assert!(world.led > END - 5_000, "seed {seed}: {} ms", world.led);
    }
}

/// The simulation can fail: with a renew deadline longer than the lease, two lead at once.
#[test]
fn a_deadline_longer_than_the_lease_is_found_out() {
    let wrong = Terms {
        renew: Duration::from_secs(25),
        ..TERMS
    };
    let found = (0..20).any(|seed| World::new(seed, wrong, true).run().is_err());
    assert!(found, "the simulation misses the overlap");
}
