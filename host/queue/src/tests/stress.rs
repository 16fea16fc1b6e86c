//! Many threads, two runtimes, real time: single flight, and no add is lost.
//!
//! Each key has a version that an adder increments before it adds the key, and that a run copies
//! when it begins. When the queue is drained, every key must have run after its last add.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use super::*;

const KEYS: usize = 64;
const ADDS: usize = 20_000;

#[derive(Default)]
struct Key {
    asked: AtomicU64,
    seen: AtomicU64,
    running: AtomicBool,
}

async fn work(queue: Queue<usize>, keys: Arc<Vec<Key>>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    while let Some(lease) = queue.get().await {
        let key = &keys[*lease.key()];
        assert!(!key.running.swap(true, SeqCst), "two workers have one key");
        let asked = key.asked.load(SeqCst);
        if random.u8(0..4) == 0 {
            tokio::task::yield_now().await;
        }
        let decision = match random.u8(0..8) {
            0 | 2 => Decision::RATE_LIMITED,
            1 => Decision::After(Duration::from_micros(random.u64(0..300))),
            _ => {
                key.seen.fetch_max(asked, SeqCst);
                Decision::Forget
            }
        };
        if random.u8(0..4) == 0 {
            // A getter that is dropped early; if it gets a key nevertheless, the key must run
            // again.
            let other = tokio::time::timeout(Duration::ZERO, queue.get()).await;
            if let Ok(Some(other)) = other {
                other.finish(Decision::Now);
            }
        }
        key.running.store(false, SeqCst);
        lease.finish(decision);
        if random.u8(0..8) == 0 {
            queue.clear_back_offs();
        }
    }
}

#[test]
fn no_key_is_with_two_workers_and_no_add_is_lost() {
    let back_off = crate::BackOff {
        base: Duration::from_micros(50),
        cap: Duration::from_micros(400),
    };
    let queue: Queue<usize> = Queue::new(Config {
        back_off,
        ..Config::default()
    });
    let keys: Arc<Vec<Key>> = Arc::new((0..KEYS).map(|_| Key::default()).collect());
    let runtimes: Vec<_> = (0..2)
        .map(|_| {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_time()
                .build()
                .unwrap()
        })
        .collect();
    let workers: Vec<_> = (0..32)
        .map(|n| runtimes[n % 2].spawn(work(queue.clone(), keys.clone(), n as u64)))
        .collect();
    std::thread::scope(|scope| {
        for adder in 0..3 {
            let (queue, keys) = (&queue, &keys);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(100 + adder);
                for _ in 0..ADDS {
                    let key = random.usize(0..KEYS);
                    keys[key].asked.fetch_add(1, SeqCst);
                    match random.u8(0..4) {
                        0 => queue.add(key),
                        1 => queue.add_low(key),
                        2 => queue.add_unless_backing_off(key),
                        _ => queue.add_low_all([key]),
                    }
                }
            });
        }
    });
    let runtime = &runtimes[0];
    runtime.block_on(async {
        let all_seen = async {
            while keys
                .iter()
                .any(|key| key.seen.load(SeqCst) < key.asked.load(SeqCst))
            {
                tokio::task::yield_now().await;
            }
        };
        assert!(
            tokio::time::timeout(Duration::from_secs(60), all_seen)
                .await
                .is_ok(),
            "{:?}",
            queue.stats()
        );
        queue.shut_down();
        queue.drained().await;
        for worker in workers {
            worker.await.unwrap();
        }
    });
}
