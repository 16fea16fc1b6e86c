use super::waiting::{OVERHEAD, STATES, TRIES};
use super::*;
use vmhost_core::Object;

/// More bytes than any of these tests needs.
const ROOM: usize = 1 << 30;

fn mapper() -> Mapper {
    Mapper::new(MapBuffer::new(ROOM))
}

fn object(version: u64) -> Option<Snapshot> {
    let name = ObjectName::new(Some("a"), "x");
    Some(Object::with_text(name, "u", version, "{}"))
}

fn id(name: &str) -> Watched {
    (1, ObjectName::new(Some("a"), name))
}

fn push(mapper: &Mapper, name: &str, old: u64, new: u64) {
    let state = |version| if version == 0 { None } else { object(version) };
    mapper.push(
        id(name),
        Change {
            old: state(old),
            new: state(new),
        },
    );
}

fn version(object: &Option<Snapshot>) -> u64 {
    object.as_ref().map_or(0, |object| object.version)
}

fn versions(batch: &Batch) -> Vec<(u64, u64)> {
    batch
        .changes()
        .iter()
        .map(|change| (version(&change.old), version(&change.new)))
        .collect()
}

async fn next(mapper: &Mapper) -> Batch {
    assert!(mapper.ready().await);
    mapper.take()
}

#[tokio::test(start_paused = true)]
async fn changes_of_an_object_stay_together_and_in_order_also_after_a_failure() {
    let mapper = mapper();
    push(&mapper, "x", 0, 1);
    push(&mapper, "y", 5, 6);
    push(&mapper, "x", 1, 2);
    let batch = next(&mapper).await;
    assert_eq!(versions(&batch), [(0, 1), (1, 2), (5, 6)]);
    push(&mapper, "x", 2, 0);
    push(&mapper, "z", 0, 9);
    mapper.put_back(batch);
    let start = tokio::time::Instant::now();
    let batch = next(&mapper).await;
    assert_eq!(start.elapsed(), FIRST);
    assert_eq!(versions(&batch).len(), 1, "half of two");
    mapper.succeeded();
    let mut all = versions(&batch);
    while !mapper.is_empty() {
        all.extend(versions(&next(&mapper).await));
    }
    assert_eq!(all.len(), 5);
    assert!(
        all.windows(3).any(|part| part == [(0, 1), (1, 2), (2, 0)]),
        "{all:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_mapped_holds_up_no_other() {
    let mapper = mapper();
    for name in ["a", "bad", "c", "d"] {
        push(&mapper, name, 0, 1);
    }
    let mut mapped = Vec::new();
    let start = tokio::time::Instant::now();
    while mapped.len() < 3 {
        let batch = next(&mapper).await;
        if batch
            .objects
            .iter()
            .any(|((_, name), _)| name.name() == "bad")
        {
            mapper.put_back(batch);
        } else {
            mapped.extend(batch.objects);
            mapper.succeeded();
        }
    }
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(mapper.missed(), None);
    // After enough failures its changes are dropped and every key is enqueued.
    while !mapper.is_empty() {
        let batch = next(&mapper).await;
        mapper.put_back(batch);
    }
    assert_eq!(mapper.missed(), Some(Missed::Dropped));
}

#[tokio::test(start_paused = true)]
async fn a_swap_tries_again_at_once() {
    let mapper = mapper();
    push(&mapper, "x", 0, 1);
    for _ in 1..TRIES {
        let batch = next(&mapper).await;
        mapper.put_back(batch);
    }
    mapper.renew(false);
    let start = tokio::time::Instant::now();
    assert!(mapper.ready().await);
    assert_eq!(start.elapsed(), Duration::ZERO);
    mapper.close();
    assert!(!mapper.ready().await);
    push(&mapper, "y", 0, 1);
    assert!(mapper.is_empty(), "a closed buffer keeps nothing");
}

#[tokio::test(start_paused = true)]
async fn too_much_becomes_a_look_at_every_key() {
    let mapper = mapper();
    for version in 0..=STATES as u64 {
        push(&mapper, "x", version, version + 1);
    }
    push(&mapper, "y", 0, 1);
    assert_eq!(versions(&next(&mapper).await), [(0, 1)]);
    assert_eq!(mapper.missed(), Some(Missed::Dropped));
    assert_eq!(mapper.missed(), None, "once");
}

#[tokio::test(start_paused = true)]
async fn a_call_gets_no_more_than_it_can_hold() {
    let mapper = mapper();
    for number in 0..BATCH + 10 {
        push(&mapper, &number.to_string(), 0, 1);
    }
    assert_eq!(next(&mapper).await.changes().len(), BATCH);
    assert_eq!(next(&mapper).await.changes().len(), 10);
    for number in 0..10 {
        let name = ObjectName::new(Some("a"), "x");
        let large = Object::with_text(name, "u", 1, &"x".repeat(1 << 20));
        mapper.push(
            id(&number.to_string()),
            Change {
                old: None,
                new: Some(large),
            },
        );
    }
    assert_eq!(next(&mapper).await.changes().len(), 4);
}

#[test]
fn what_waits_is_bounded_in_bytes_over_all_controllers_of_a_plugin() {
    let buffer = MapBuffer::new(10_000);
    let (one, two) = (Mapper::new(buffer.clone()), Mapper::new(buffer.clone()));
    let large = |mapper: &Mapper, name: &str| {
        let object = Object::with_text(ObjectName::new(Some("a"), name), "u", 1, &"x".repeat(3000));
        let change = Change {
            old: None,
            new: Some(object),
        };
        mapper.push(id(name), change);
    };
    large(&one, "a");
    large(&two, "b");
    assert_eq!((one.len(), two.len()), (1, 1));
    large(&one, "c");
    assert_eq!(one.missed(), Some(Missed::Dropped));
    assert_eq!((one.len(), two.len()), (0, 1));
    assert_eq!(buffer.used(), 3000 + 2 * OVERHEAD);
    // A batch that is being mapped counts until it is dropped.
    let batch = two.take();
    large(&one, "d");
    large(&one, "e");
    assert_eq!(one.missed(), Some(Missed::Dropped));
    two.put_back(batch);
    assert_eq!(two.len(), 1);
    drop((one, two));
    assert_eq!(buffer.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_standby_keeps_no_more_than_the_fact() {
    let buffer = MapBuffer::new(ROOM);
    let mapper = Mapper::new(buffer.clone());
    mapper.stand_by();
    assert_eq!(mapper.missed(), None, "nothing has changed");
    push(&mapper, "x", 0, 1);
    mapper.lead();
    push(&mapper, "y", 0, 1);
    assert!(mapper.ready().await);
    assert_eq!(mapper.missed(), Some(Missed::StoodBy));
    let batch = mapper.take();
    assert_eq!(versions(&batch), [(0, 1)]);
    push(&mapper, "z", 0, 1);
    mapper.stand_by();
    assert_eq!(mapper.missed(), Some(Missed::StoodBy));
    mapper.put_back(batch);
    assert_eq!((mapper.len(), buffer.used()), (0, 0));
    assert!(mapper.missed().is_some());
}

/// A naive model that remembers every change forever.
#[derive(Default)]
struct Twin {
    /// In order: the object, its version before and after the change, and whether the change may be
    /// missing because every key was enqueued since.
    changes: Vec<(String, u64, u64, bool)>,
    versions: HashMap<String, u64>,
}

impl Twin {
    fn push(&mut self, mapper: &Mapper, name: &str, size: usize) {
        let old = self.versions.get(name).copied().unwrap_or_default();
        let state = |version: u64| {
            let name = ObjectName::new(Some("a"), name);
            (version > 0).then(|| Object::with_text(name, "u", version, &"x".repeat(size)))
        };
        let change = Change {
            old: state(old),
            new: state(old + 1),
        };
        mapper.push(id(name), change);
        self.versions.insert(name.to_owned(), old + 1);
        self.changes.push((name.to_owned(), old, old + 1, false));
    }

    /// Every key was enqueued: all earlier changes may be missing.
    fn forgive(&mut self) {
        for (.., forgiven) in &mut self.changes {
            *forgiven = true;
        }
    }

    /// Checks a mapped batch: it holds the oldest changes of each object, in order. Only forgiven
    /// changes may be missing or begin at another state.
    fn mapped(&mut self, batch: &Batch) {
        for change in batch.changes() {
            let name = change.new.as_ref().unwrap().name.name().to_owned();
            let (old, new) = (version(&change.old), version(&change.new));
            let at = self
                .changes
                .iter()
                .position(|(of, before, after, forgiven)| {
                    *of == name && *after == new && (*before == old || *forgiven)
                });
            let at = at.unwrap_or_else(|| panic!("{name} {old} to {new} is mapped twice"));
            let skipped = self.changes[..at]
                .iter()
                .find(|(of, .., forgiven)| *of == name && !forgiven);
            assert_eq!(skipped, None, "before {old} to {new}");
            self.changes.remove(at);
        }
    }
}

/// A mapper, its model, and the call in flight.
struct Run {
    mapper: Mapper,
    twin: Twin,
    call: Option<Batch>,
}

impl Run {
    /// The mapping task's step between two calls.
    fn begin(&mut self) {
        if self.mapper.missed().is_some() {
            self.twin.forgive();
        }
        let batch = self.mapper.take();
        self.call = (batch.objects().0 > 0).then_some(batch);
    }

    fn end(&mut self, batch: Batch, success: bool) {
        if success {
            self.twin.mapped(&batch);
            self.mapper.succeeded();
        } else {
            self.mapper.put_back(batch);
        }
    }

    fn step(&mut self, random: &mut fastrand::Rng) {
        match random.u8(..20) {
            0..12 => {
                let name = format!("x{}", random.u8(..6));
                self.twin.push(&self.mapper, &name, random.usize(..2_000));
            }
            12 if random.u8(..10) == 0 => {
                // A swap enqueues every key, however the call in flight ends.
                self.mapper.renew(true);
                self.twin.forgive();
            }
            12 => self.mapper.renew(false),
            13 => match random.bool() {
                true => self.mapper.stand_by(),
                false => self.mapper.lead(),
            },
            _ => match self.call.take() {
                Some(batch) => self.end(batch, random.bool()),
                None => self.begin(),
            },
        }
    }
}

#[test]
fn no_change_is_lost_without_a_look_at_every_key() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let limit = 20_000;
        let buffer = MapBuffer::new(limit);
        let mut runs = [(); 2].map(|()| Run {
            mapper: Mapper::new(buffer.clone()),
            twin: Twin::default(),
            call: None,
        });
        for _ in 0..600 {
            runs[random.usize(..2)].step(&mut random);
            assert!(buffer.used() <= limit, "{}", buffer.used());
        }
        for run in &mut runs {
            loop {
                match run.call.take() {
                    Some(batch) => run.end(batch, true),
                    None if run.mapper.is_empty() => break,
                    None => run.begin(),
                }
            }
            run.begin();
            let lost: Vec<_> = run.twin.changes.iter().filter(|change| !change.3).collect();
            assert!(lost.is_empty(), "seed {seed}: {lost:?}");
        }
        drop(runs);
        assert_eq!(buffer.used(), 0, "seed {seed}");
    }
}
