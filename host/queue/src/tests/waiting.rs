//! Sleeping getters: what wakes them, and what happens if they are dropped.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use super::*;
use crate::Lease;

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn key(lease: Poll<Option<Lease<&'static str>>>) -> Option<&'static str> {
    match lease {
        Poll::Ready(lease) => lease.map(ended),
        Poll::Pending => None,
    }
}

/// The key of a run that ends well.
fn ended(lease: Lease<&'static str>) -> &'static str {
    let key = *lease.key();
    lease.finish(Decision::Forget);
    key
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_getter_is_woken_by_an_add_and_by_a_delay() {
    let queue = queue();
    let getter = tokio::spawn({
        let queue = queue.clone();
        async move { [queue.get().await, queue.get().await].map(|lease| lease.map(ended)) }
    });
    tokio::task::yield_now().await;
    queue.add("a");
    queue.add_after("b", Duration::from_secs(7200));
    assert_eq!(getter.await.ok(), Some([Some("a"), Some("b")]));
}

#[tokio::test(start_paused = true)]
async fn an_earlier_delay_wakes_the_leader_and_only_one_getter_leads() {
    let queue = queue();
    queue.add_after("late", Duration::from_secs(60));
    let start = tokio::time::Instant::now();
    let getters: Vec<_> = (0..100)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                queue
                    .get()
                    .await
                    .map(|lease| (ended(lease), start.elapsed()))
            })
        })
        .collect();
    tokio::time::sleep(ms(1)).await;
    assert_eq!(
        queue
            .shared
            .with(|state| (state.waiting, state.leader.is_some())),
        (100, true)
    );
    queue.add_after("early", ms(999));
    tokio::time::sleep(Duration::from_secs(100)).await;
    queue.shut_down();
    let mut got = Vec::new();
    for getter in getters {
        got.extend(getter.await.unwrap());
    }
    got.sort_unstable();
    assert_eq!(
        got.iter()
            .map(|(key, at)| (*key, at.as_secs()))
            .collect::<Vec<_>>(),
        [("early", 1), ("late", 60)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_getter_dropped_after_its_wake_up_passes_it_on() {
    let queue = queue();
    let mut first = Box::pin(queue.get());
    let mut second = pin!(queue.get());
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    queue.add("a"); // Wakes the first, which is never polled.
    drop(first);
    assert_eq!(key(poll(second)), Some("a"));
    assert_eq!(
        queue.shared.with(|state| (state.waiting, state.leader)),
        (0, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_leader_hands_the_timers_over() {
    let queue = queue();
    queue.add_after("a", ms(10));
    let mut leader = Box::pin(queue.get());
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(ended) }
    });
    assert!(poll(leader.as_mut()).is_pending());
    tokio::task::yield_now().await;
    drop(leader);
    assert_eq!(other.await.ok(), Some(Some("a")));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_leaves_with_a_key_hands_the_timers_over() {
    let queue = queue();
    queue.add_after("later", ms(10));
    let getters: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await.map(ended) })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.add("now");
    let mut got = Vec::new();
    for getter in getters {
        got.push(getter.await.unwrap());
    }
    assert_eq!(got, [Some("now"), Some("later")]);
}

/// Getters are created, polled when woken, and dropped in random order: while a key is ready and a
/// getter waits, some getter has a wake-up that it has not handled yet.
#[tokio::test(start_paused = true)]
async fn random_drops_lose_no_wake_up() {
    for seed in 0..500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let queue: Queue<u32> = Queue::new(Config::default());
        let mut getters: Vec<Hand> = Vec::new();
        for n in 0..80 {
            match random.u32(0..7) {
                0 | 1 => {
                    let mut getter = Hand::new(&queue);
                    if getter.poll().is_pending() {
                        getters.push(getter);
                    }
                }
                2 if !getters.is_empty() => {
                    drop(getters.swap_remove(random.usize(0..getters.len())))
                }
                3 => queue.add(n),
                4 => queue.add_after(n, ms(random.u64(1..20))),
                5 => advance(ms(random.u64(0..10))).await,
                _ => {
                    random.shuffle(&mut getters);
                    if let Some(at) = getters.iter().position(Hand::woken)
                        && getters[at].poll().is_ready()
                    {
                        getters.swap_remove(at);
                    }
                }
            }
            let ready = queue.shared.with(|state| {
                state.high.len() > 0
                    || state
                        .timers
                        .first()
                        .is_some_and(|(due, _)| due + 1_000_000 <= state.clock.now())
            });
            assert!(
                !ready || getters.is_empty() || getters.iter().any(Hand::woken),
                "seed {seed}, step {n}"
            );
        }
    }
}

/// A getter polled by hand, with a waker that records whether it was called.
struct Hand {
    future: Pin<Box<dyn Future<Output = ()>>>,
    flag: std::sync::Arc<Flag>,
}

#[derive(Default)]
struct Flag(std::sync::atomic::AtomicBool);

impl std::task::Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Hand {
    fn new(queue: &Queue<u32>) -> Self {
        let queue = queue.clone();
        let future = Box::pin(async move {
            if let Some(lease) = queue.get().await {
                lease.finish(Decision::Forget);
            }
        });
        Self {
            future,
            flag: std::sync::Arc::default(),
        }
    }

    fn woken(&self) -> bool {
        self.flag.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn poll(&mut self) -> Poll<()> {
        self.flag
            .0
            .store(false, std::sync::atomic::Ordering::SeqCst);
        let waker = Waker::from(self.flag.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

#[tokio::test(start_paused = true)]
async fn drained_waits_for_the_last_run() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    let first = queue.try_get();
    let mut drained = pin!(queue.drained());
    assert!(poll(drained.as_mut()).is_pending());
    queue.shut_down();
    first.unwrap().finish(Decision::Forget);
    assert!(poll(drained.as_mut()).is_pending());
    queue.try_get().unwrap().finish(Decision::Forget);
    assert!(poll(drained).is_ready());
    // A hard shutdown does not wait for queued keys.
    let queue = super::queue();
    queue.add("a");
    queue.shut_down();
    let mut drained = pin!(queue.drained());
    assert!(poll(drained.as_mut()).is_pending());
    queue.shut_down_now();
    assert!(poll(drained).is_ready());
}
