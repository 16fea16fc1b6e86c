//! One test for each promise and each rule.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::{Bucket, LOW_LANE_EVERY, Metrics};

#[tokio::test(start_paused = true)]
async fn a_key_added_twice_is_handed_out_once_and_in_order() {
    let queue = queue();
    for key in ["a", "b", "a", "c", "b"] {
        queue.add(key);
    }
    assert_eq!((queue.len(), queue.is_empty()), (3, false));
    assert_eq!(take_all(&queue), ["a", "b", "c"]);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_key_in_processing_is_not_handed_out_and_an_add_is_not_lost() {
    let queue = queue();
    queue.add("a");
    let lease = queue.try_get().unwrap();
    queue.add("a");
    queue.add("a");
    assert_eq!((queue.len(), queue.stats().processing), (0, 1));
    assert!(queue.try_get().is_none());
    lease.finish(Decision::Forget);
    assert_eq!(take_all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn high_goes_first_and_low_does_not_starve() {
    let queue = queue();
    queue.add_low_all(["low-1", "low-2"]);
    let high: Vec<&'static str> = (0..40).map(|n| &*format!("high-{n}").leak()).collect();
    high.iter().for_each(|key| queue.add(key));
    let taken = take_all(&queue);
    let every = LOW_LANE_EVERY as usize;
    let low: Vec<usize> = (0..taken.len())
        .filter(|&n| taken[n].starts_with("low"))
        .collect();
    assert_eq!(low, [every - 1, 2 * every - 1]);
    assert!(
        taken
            .iter()
            .filter(|key| key.starts_with("high"))
            .eq(high.iter())
    );
}

#[tokio::test(start_paused = true)]
async fn a_fresh_change_promotes_and_a_resync_never_demotes() {
    let queue = queue();
    queue.add_low("a");
    queue.add_low("b");
    queue.add("c");
    queue.add_low("c");
    queue.add("b");
    assert_eq!((queue.stats().high, queue.stats().low), (2, 1));
    assert_eq!(take_all(&queue), ["c", "b", "a"]);
    // While the key runs, the highest lane of all adds counts.
    queue.add("a");
    let lease = queue.try_get().unwrap();
    queue.add_low("a");
    queue.add("a");
    queue.add_low("a");
    lease.finish(Decision::Forget);
    assert_eq!(lane_of(&queue), Some(Lane::High));
}

#[tokio::test(start_paused = true)]
async fn of_several_delays_the_earliest_wins() {
    let queue = queue();
    queue.add_after("a", ms(50));
    queue.add_after("a", ms(20));
    queue.add_after("a", ms(90));
    queue.add_after("b", Duration::ZERO);
    queue.add_after("c", Duration::MAX);
    assert_eq!(take_all(&queue), ["b"]);
    assert_eq!(queue.stats().delayed, 2);
    assert!(after(&queue, 19).await.is_empty());
    assert_eq!(after(&queue, 1).await, ["a"]);
    assert!(after(&queue, 1000).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_add_replaces_a_delayed_add_but_keeps_the_failures() {
    let queue = queue();
    queue.add("a");
    fail(&queue, "a");
    queue.add("a");
    assert_eq!((queue.num_requeues(&"a"), queue.stats().delayed), (1, 0));
    assert_eq!(take_all(&queue), ["a"]);
    assert!(after(&queue, 1000).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_and_forget_resets() {
    let queue = queue();
    queue.add("a");
    for (attempt, wait) in [5, 10, 20, 40].into_iter().enumerate() {
        let lease = queue.try_get().unwrap();
        assert_eq!(lease.attempt(), attempt as u32);
        lease.finish(Decision::RATE_LIMITED);
        advance(ms(wait - 1)).await;
        assert_eq!((queue.len(), queue.stats().backing_off), (0, 1));
        advance(ms(1)).await;
        assert_eq!(queue.len(), 1);
    }
    assert_eq!(queue.num_requeues(&"a"), 4);
    queue.forget(&"a");
    assert_eq!((queue.num_requeues(&"a"), queue.stats().failing), (0, 0));
    fail(&queue, "a");
    assert_eq!(after(&queue, 5).await, ["a"]);
}

/// kubernetes/kubernetes#132805
#[tokio::test(start_paused = true)]
async fn failures_of_runs_that_cut_a_back_off_short_are_not_counted() {
    let queue = queue();
    queue.add("a");
    fail(&queue, "a");
    advance(ms(5)).await;
    fail(&queue, "a"); // Due again 10 ms from now.
    for _ in 0..3 {
        advance(ms(3)).await;
        queue.add("a");
        fail(&queue, "a");
        assert_eq!(
            (queue.num_requeues(&"a"), queue.stats().backing_off),
            (2, 1)
        );
    }
    advance(ms(1)).await;
    fail(&queue, "a");
    assert_eq!(queue.num_requeues(&"a"), 3);
    // A resync during the backoff behaves alike, and a slow run is retried as soon as it ends.
    queue.add_low("a");
    let lease = queue.try_get().unwrap();
    advance(ms(100)).await;
    lease.finish(Decision::RATE_LIMITED);
    assert_eq!(queue.num_requeues(&"a"), 3);
    fail(&queue, "a");
    assert_eq!(queue.num_requeues(&"a"), 4);
    // The previous failures had another cause.
    queue.add("a");
    let lease = queue.try_get().unwrap();
    lease.finish(Decision::RateLimited {
        at_least: Duration::ZERO,
        not_before: Duration::ZERO,
        anew: true,
    });
    assert_eq!(
        (queue.num_requeues(&"a"), after(&queue, 5).await),
        (1, vec!["a"])
    );
}

#[tokio::test(start_paused = true)]
async fn an_own_write_does_not_shorten_a_back_off_but_other_delays() {
    let queue = queue();
    queue.add("a");
    fail(&queue, "a");
    queue.add_unless_backing_off("a");
    assert!(after(&queue, 4).await.is_empty());
    assert_eq!(after(&queue, 1).await, ["a"]);
    queue.add_after("b", ms(100));
    queue.add_unless_backing_off("b");
    assert_eq!(take_all(&queue), ["b"]);
    assert!(after(&queue, 100).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_own_write_during_a_run_is_covered_by_its_retry_or_runs_again() {
    let queue = queue();
    queue.add("a");
    let lease = queue.try_get().unwrap();
    queue.add_unless_backing_off("a");
    lease.finish(Decision::RATE_LIMITED);
    queue.add_unless_backing_off("a");
    assert!(after(&queue, 4).await.is_empty());
    assert_eq!(after(&queue, 1).await, ["a"]);
    queue.add("b");
    let lease = queue.try_get().unwrap();
    queue.add_unless_backing_off("b");
    lease.finish(Decision::Forget);
    assert_eq!(take_all(&queue), ["b"]);
    // A foreign change in the same run is not covered.
    queue.add("c");
    let lease = queue.try_get().unwrap();
    queue.add_unless_backing_off("c");
    queue.add_low("c");
    lease.finish(Decision::RATE_LIMITED);
    assert_eq!(take_all(&queue), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_respected() {
    let queue = queue();
    queue.add("a");
    fail_for(&queue, "a", ms(300), Duration::ZERO);
    assert!(after(&queue, 200).await.is_empty());
    queue.add_low("a");
    fail_for(&queue, "a", ms(300), Duration::ZERO);
    assert!(after(&queue, 299).await.is_empty());
    assert_eq!(queue.num_requeues(&"a"), 1);
    assert_eq!(after(&queue, 1).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_up_before_its_floor() {
    type Add = fn(&Queue<&'static str>);
    let adds: [(&str, Add); 5] = [
        ("a fresh change", |queue| queue.add("a")),
        ("a resync", |queue| queue.add_low("a")),
        ("a delay", |queue| queue.add_after("a", ms(1))),
        ("another failure", |queue| {
            rate_limit(queue, "a", Duration::ZERO, Duration::ZERO);
        }),
        ("a swap", |queue| queue.clear_back_offs()),
    ];
    for during in [false, true] {
        for (what, add) in adds {
            let queue = queue();
            // Five failures first, so that the backoff alone is longer than the floor.
            for _ in 0..5 {
                rate_limit(&queue, "a", Duration::ZERO, Duration::ZERO);
            }
            advance(ms(1000)).await;
            let lease = queue.try_get().unwrap();
            if during {
                add(&queue);
            }
            lease.finish(Decision::RateLimited {
                at_least: Duration::ZERO,
                not_before: ms(100),
                anew: false,
            });
            assert!(after(&queue, 40).await.is_empty(), "{what}");
            add(&queue);
            assert!(after(&queue, 59).await.is_empty(), "{what}");
            let comes_up = after(&queue, 1).await;
            if what == "another failure" {
                // A failure is not a change: the backoff continues.
                assert!(comes_up.is_empty(), "{what}");
                assert_eq!(after(&queue, 60).await, ["a"], "{what}");
            } else {
                assert_eq!(comes_up, ["a"], "{what}");
            }
            // The run clears the floor.
            queue.add("a");
            assert_eq!(take_all(&queue), ["a"], "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_floor_takes_a_queued_key_out_of_its_lane() {
    let queue = queue();
    queue.add_low("a");
    queue.add("b");
    rate_limit(&queue, "a", Duration::ZERO, ms(100));
    assert_eq!(take_all(&queue), ["b"]);
    assert!(after(&queue, 99).await.is_empty());
    assert_eq!(after(&queue, 1).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_goes_back_to_the_lane_of_its_run() {
    let queue = queue();
    queue.add_low("a");
    fail(&queue, "a");
    advance(ms(5)).await;
    assert_eq!(lane_of(&queue), Some(Lane::Low));
    queue.add("a");
    fail(&queue, "a");
    advance(ms(10)).await;
    assert_eq!(lane_of(&queue), Some(Lane::High));
}

#[tokio::test(start_paused = true)]
async fn the_bucket_is_shared_by_all_keys() {
    let bucket = Some(Bucket {
        rate_per_second: 10.0,
        burst: 1,
    });
    let queue = Queue::new(Config {
        bucket,
        ..Config::default()
    });
    for key in ["a", "b", "c"] {
        rate_limit(&queue, key, Duration::ZERO, Duration::ZERO);
    }
    assert_eq!(after(&queue, 5).await, ["a"]);
    assert_eq!(after(&queue, 95).await, ["b"]);
    assert_eq!(after(&queue, 100).await, ["c"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_swap_no_key_backs_off_but_plain_delays_stay() {
    let queue = queue();
    queue.add("a");
    fail(&queue, "a");
    rate_limit(&queue, "both", Duration::ZERO, Duration::ZERO);
    queue.add_after("both", ms(1));
    queue.add_after("later", ms(50));
    queue.clear_back_offs();
    let stats = queue.stats();
    assert_eq!(
        (
            stats.low,
            stats.high,
            stats.delayed,
            stats.backing_off,
            stats.failing
        ),
        (2, 0, 2, 0, 0)
    );
    let mut taken = take_all(&queue);
    taken.sort_unstable();
    assert_eq!(taken, ["a", "both"]);
    assert_eq!(
        (after(&queue, 1).await, after(&queue, 49).await),
        (vec!["both"], vec!["later"])
    );
}

#[tokio::test(start_paused = true)]
async fn one_key_stops_backing_off_and_the_others_go_on() {
    let queue = queue();
    for key in ["a", "b"] {
        for _ in 0..5 {
            rate_limit(&queue, key, Duration::ZERO, Duration::ZERO);
        }
    }
    queue.clear_back_off(&"a");
    queue.clear_back_off(&"unknown");
    assert_eq!(take_all(&queue), ["a"]);
    let stats = queue.stats();
    assert_eq!((stats.backing_off, stats.failing), (1, 1));
    assert_eq!((queue.num_requeues(&"a"), queue.num_requeues(&"b")), (0, 5));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_keys_that_are_gone() {
    let queue = queue();
    let live = || queue.shared.with(|state| state.slots.live());
    queue.add("a");
    fail(&queue, "a");
    queue.add_after("b", ms(1));
    queue.forget(&"unknown");
    assert_eq!(live(), 2);
    assert_eq!((after(&queue, 5).await, live()), (vec!["b", "a"], 0));
    queue.add("a");
    fail(&queue, "a");
    advance(ms(5)).await;
    queue.try_get().unwrap().finish(Decision::Postpone(ms(1)));
    queue.forget(&"a");
    assert_eq!((after(&queue, 1).await, live()), (vec!["a"], 0));
    rate_limit(&queue, "c", Duration::ZERO, Duration::ZERO);
    queue.add("c");
    queue.clear_back_offs();
    assert_eq!((take_all(&queue), live()), (vec!["c"], 0));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_drains_and_a_hard_one_does_not() {
    for hard in [false, true] {
        let queue = queue();
        queue.add("running");
        queue.add_after("later", ms(1));
        let lease = queue.get().await;
        queue.add("running");
        queue.add("queued");
        if hard {
            queue.shut_down_now()
        } else {
            queue.shut_down()
        }
        for _ in 0..2 {
            queue.add("late");
            rate_limit(&queue, "late", Duration::ZERO, Duration::ZERO);
            queue.add_after("late", ms(1));
        }
        // A delayed retry is dropped.
        lease.unwrap().finish(Decision::RATE_LIMITED);
        let expected = if hard {
            vec![]
        } else {
            vec!["queued", "running"]
        };
        assert_eq!(after(&queue, 10).await, expected, "hard: {hard}");
        assert!(queue.get().await.is_none());
        queue.drained().await;
        assert_eq!(queue.stats().delayed, 0);
    }
}

#[derive(Default)]
struct Counts {
    adds: AtomicUsize,
    retries: AtomicUsize,
}

impl Metrics for Counts {
    fn add(&self, _: Lane) {
        self.adds.fetch_add(1, Relaxed);
    }
    fn retry(&self) {
        self.retries.fetch_add(1, Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_are_those_of_client_go() {
    let metrics = Arc::new(Counts::default());
    let queue = Queue::new(Config {
        metrics: metrics.clone(),
        ..Config::default()
    });
    let all = |m: &Counts| [&m.adds, &m.retries].map(|n| n.load(Relaxed));
    let depths = |queue: &Queue<&'static str>| (queue.stats().high, queue.stats().low);
    queue.add("a");
    queue.add("a");
    queue.add_low("b");
    assert_eq!(all(&metrics), [2, 0]);
    assert_eq!(depths(&queue), (1, 1));
    advance(ms(3)).await;
    let lease = queue.try_get();
    assert_eq!(lease.as_ref().map(|lease| lease.wait()), Some(ms(3)));
    advance(ms(4)).await;
    queue.add("a");
    queue.add("a");
    queue.add_after("c", ms(50));
    queue.add_after("d", Duration::ZERO);
    let second = queue.try_get();
    assert_eq!(
        second.as_ref().map(|lease| lease.wait()),
        Some(Duration::ZERO)
    );
    assert_eq!(depths(&queue), (0, 1));
    advance(ms(1)).await;
    let stats = queue.stats();
    assert_eq!(
        (stats.longest_running, stats.unfinished, stats.processing),
        (ms(5), ms(6), 2)
    );
    for lease in [lease, second] {
        lease.unwrap().finish(Decision::Forget);
    }
    assert_eq!(all(&metrics), [4, 2]);
    assert_eq!(depths(&queue), (1, 1));
    let lease = queue.try_get();
    assert_eq!(
        lease.map(|lease| (*lease.key(), lease.wait())),
        Some(("a", ms(1)))
    );
}

/// A queue's successor takes over all keys that are not finished.
#[tokio::test(start_paused = true)]
async fn keys_are_all_that_it_knows() {
    let queue = queue();
    queue.add("running");
    let lease = queue.get().await;
    for key in ["queued", "done"] {
        queue.add(key);
    }
    queue.add_low("low");
    queue.add_after("delayed", Duration::from_secs(5));
    rate_limit(&queue, "failed", Duration::ZERO, Duration::ZERO);
    let mut keys = queue.keys();
    keys.sort_unstable();
    assert_eq!(
        keys,
        ["delayed", "done", "failed", "low", "queued", "running"]
    );
    lease.unwrap().finish(Decision::Forget);
    for _ in 0..3 {
        queue.get().await.unwrap().finish(Decision::Forget);
    }
    let mut keys = queue.keys();
    keys.sort_unstable();
    assert_eq!(keys, ["delayed", "failed"]);
    let many: Vec<u32> = (0..1000).collect();
    let large: Queue<u32> = Queue::new(Config::default());
    large.add_low_all(many.iter().copied());
    let mut keys = large.keys();
    keys.sort_unstable();
    assert_eq!(keys, many);
}

/// An attacker who knows the bucket of each name in one queue can fill one bucket there. In any
/// other queue, the seed spreads these names as chance would.
///
/// 256 names fall into 256 buckets. By chance, the number of names in a bucket is binomial with the
/// mean 1, and is 16 or more once in 8e13 cases. That any bucket of the 64 queues has 16 happens
/// once in 5e9 runs of this test, whichever the seeds are. The attack would leave all 256 in one.
///
/// The keys are names, as in a host. The hash of a name multiplies its first bytes, XORed with the
/// seed, with its last bytes, so that even two seeds that differ in one bit spread names
/// independently. An integer would only be XORed with the seed and multiplied with a constant: one
/// pair of queues in fifty has seeds that hardly differ in the bits that distinguish consecutive
/// integers, and keeps a part of the collisions.
#[tokio::test(start_paused = true)]
async fn keys_that_collide_in_one_queue_do_not_in_another() {
    const BUCKETS: usize = 256;
    let new = || -> Queue<String> { Queue::new(Config::default()) };
    let bucket = |queue: &Queue<String>, key: &String| queue.shared.hash(key) as usize % BUCKETS;
    let known = new();
    let names = (0..).map(|number: u32| format!("team/vm-{number:06}"));
    let chosen = names.filter(|name| bucket(&known, name) == 0);
    let chosen: Vec<String> = chosen.take(BUCKETS).collect();
    for _ in 0..64 {
        let other = new();
        let mut lengths = [0; BUCKETS];
        for name in &chosen {
            lengths[bucket(&other, name)] += 1;
        }
        let longest = lengths.into_iter().max();
        assert!(longest < Some(16), "{longest:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_object_of_the_name_inherits_no_back_off() {
    let queue = queue();
    queue.add("a");
    let lease = queue.try_get().unwrap();
    lease.finish(Decision::RateLimited {
        at_least: ms(1_000_000),
        not_before: Duration::ZERO,
        anew: false,
    });
    // The deletion cuts the backoff short; the run finds another object in its place.
    queue.add("a");
    queue.try_get().unwrap().finish(Decision::ANEW);
    fail(&queue, "a");
    assert!(queue.try_get().is_none());
    advance(ms(5)).await;
    assert!(queue.try_get().is_some(), "the first step of the backoff");
}

#[tokio::test(start_paused = true)]
async fn each_decision_has_its_way_back() {
    let failed = |queue: &Queue<&'static str>| queue.num_requeues(&"a");
    let rate_limited = |at_least, not_before, anew| Decision::RateLimited {
        at_least,
        not_before,
        anew,
    };
    let none = Duration::ZERO;
    for (decision, comes_after, lane, failures) in [
        (Decision::Forget, None, Lane::Low, 0),
        (Decision::Now, Some(0), Lane::High, 2),
        (Decision::ANEW, Some(0), Lane::High, 0),
        (Decision::After(ms(70)), Some(70), Lane::High, 0),
        (Decision::Postpone(none), Some(0), Lane::Low, 2),
        (Decision::Postpone(ms(70)), Some(70), Lane::Low, 2),
        (Decision::RATE_LIMITED, Some(20), Lane::Low, 3),
        (rate_limited(ms(70), none, false), Some(70), Lane::Low, 3),
        (rate_limited(none, ms(70), false), Some(70), Lane::Low, 3),
        (rate_limited(none, none, true), Some(5), Lane::Low, 1),
    ] {
        let queue = queue();
        // A run in the low lane, after two failures.
        queue.add_low("a");
        for pause in [5, 10] {
            fail(&queue, "a");
            advance(ms(pause)).await;
        }
        assert_eq!(failed(&queue), 2, "{decision:?}");
        let lease = queue.try_get().unwrap();
        assert_eq!(lease.lane(), Lane::Low);
        lease.finish(decision);
        assert_eq!(failed(&queue), failures, "{decision:?}");
        let mut waited = 0;
        while queue.is_empty() && waited < 1000 {
            advance(ms(1)).await;
            waited += 1;
        }
        assert_eq!(
            (waited < 1000).then_some(waited),
            comes_after,
            "{decision:?}"
        );
        assert_eq!(lane_of(&queue), comes_after.map(|_| lane), "{decision:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nobody_ends_has_failed() {
    let queue = queue();
    queue.add("a");
    drop(queue.try_get());
    assert_eq!((queue.num_requeues(&"a"), queue.len()), (1, 0));
    assert_eq!(after(&queue, 5).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_wanted_at_once_says_anew_when_the_next_one_is() {
    let queue = queue();
    queue.add("a");
    let lease = queue.try_get().unwrap();
    queue.add_unless_backing_off("a");
    lease.finish(Decision::After(ms(50)));
    assert_eq!(take_all(&queue), ["a"]);
    assert!(after(&queue, 50).await.is_empty());
}
