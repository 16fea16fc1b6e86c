//! Tests that no call starts under an older line-up after a newer one was announced.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::FutureExt;

use super::*;

type Numbers = Lineups<u64, u64>;

fn candidate(generation: u64, canary: &Arc<u64>) -> Candidate<u64, u64> {
    Candidate {
        generation: Arc::new(generation),
        weight: Weight::new(100, 1),
        canary: canary.clone(),
    }
}

#[test]
fn a_line_up_is_announced_when_no_call_is_about_to_start_under_the_one_before() {
    let lineups = Numbers::new(Arc::new(1));
    let first = lineups.present();
    let starting = lineups.begin(&first);
    assert!(starting.is_some());
    let canary = Arc::new(7);
    let second = Lineup::with(first.live.clone(), candidate(2, &canary));
    let before = lineups.replace(second);
    assert!(
        before.started().now_or_never().is_none(),
        "a call is about to start"
    );
    assert!(
        lineups.begin(&first).is_none(),
        "no call starts under it any more"
    );
    let second = lineups.present();
    assert!(lineups.begin(&second).is_some(), "on the same live version");
    drop(starting);
    assert!(before.started().now_or_never().is_some());
}

#[test]
fn a_candidate_is_taken_out_once_and_no_other() {
    let lineups = Numbers::new(Arc::new(1));
    let live = lineups.present().live.clone();
    let (one, other) = (Arc::new(7), Arc::new(7));
    lineups.replace(Lineup::with(live.clone(), candidate(2, &one)));
    let with = lineups.present();
    assert_eq!(
        with.members().map(|member| **member).collect::<Vec<_>>(),
        [1, 2]
    );
    lineups.take_out(&other);
    assert!(Arc::ptr_eq(&with, &lineups.present()), "another canary's");
    lineups.take_out(&one);
    let alone = lineups.present();
    assert!(alone.candidate.is_none() && Arc::ptr_eq(&alone.live, &live));
    assert!(
        lineups.begin(&with).is_none(),
        "no call starts on the candidate"
    );
    lineups.take_out(&one);
    assert!(
        Arc::ptr_eq(&alone, &lineups.present()),
        "nothing changes twice"
    );
}

#[test]
fn a_change_that_comes_too_late_changes_nothing() {
    let lineups = Numbers::new(Arc::new(1));
    let canary = Arc::new(7);
    let live = lineups.present().live.clone();
    let step = |weight| {
        let weight = Weight::new(weight, 1);
        let candidate = Candidate {
            weight,
            ..candidate(2, &canary)
        };
        Lineup::with(live.clone(), candidate)
    };
    let first = lineups.replace_if(&lineups.present(), &step(50)).unwrap();
    assert!(Arc::ptr_eq(&first, &lineups.present()));
    // The canary is aborted between two steps.
    lineups.take_out(&canary);
    assert!(lineups.replace_if(&first, &step(250)).is_none());
    assert!(lineups.present().candidate.is_none());
}

/// A canary is aborted, and a swap follows before any task has waited for the abort.
#[test]
fn a_call_under_a_line_up_before_the_last_one_is_waited_for_too() {
    let lineups = Numbers::new(Arc::new(1));
    let (live, canary) = (lineups.present().live.clone(), Arc::new(7));
    lineups.replace(Lineup::with(live, candidate(2, &canary)));
    let with = lineups.present();
    let starting = lineups.begin(&with);
    assert!(starting.is_some());
    lineups.take_out(&canary);
    let before = lineups.replace(Lineup::alone(Arc::new(3)));
    assert!(before.candidate.is_none(), "the one after the abort");
    assert!(
        before.started().now_or_never().is_none(),
        "a call is about to start on the candidate"
    );
    drop(starting);
    assert!(before.started().now_or_never().is_some());
    // Line-ups without waiting calls are forgotten.
    lineups.replace(Lineup::alone(Arc::new(4)));
    assert_eq!(lineups.present().older.len(), 1);
}

/// Threads begin calls, while line-ups are replaced and candidates come and go. No call begins
/// under an older line-up after a newer one was announced.
#[test]
fn no_call_starts_under_an_older_line_up_after_a_newer_one_was_announced() {
    const ROUNDS: u64 = 300;
    let lineups = Numbers::new(Arc::new(0));
    // The newest live version that was announced, and the newest announced end of a canary.
    let (announced, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    let (began, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        let mut kept = None;
        while !over.load(Ordering::SeqCst) {
            let lineup = kept.get_or_insert_with(|| lineups.present());
            if let Some(starting) = lineups.begin(lineup) {
                let live = announced.load(Ordering::SeqCst);
                assert!(*lineup.live >= live, "{} after {live}", lineup.live);
                if let Some(candidate) = &lineup.candidate {
                    let ended = ended.load(Ordering::SeqCst);
                    assert!(*candidate.canary > ended, "{} is over", candidate.canary);
                }
                began.fetch_add(1, Ordering::Relaxed);
                drop(starting);
            } else {
                kept = None;
            }
        }
    };
    let change = || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            for round in 1.. {
                // Goes on until a call has begun, since the threads may start late.
                if round > ROUNDS && began.load(Ordering::Relaxed) > 0 {
                    break;
                }
                lineups
                    .replace(Lineup::alone(Arc::new(round)))
                    .started()
                    .await;
                announced.store(round, Ordering::SeqCst);
                let (live, canary) = (lineups.present().live.clone(), Arc::new(round));
                lineups
                    .replace(Lineup::with(live, candidate(round, &canary)))
                    .started()
                    .await;
                let with = lineups.present();
                lineups.take_out(&canary);
                with.started().await;
                ended.store(round, Ordering::SeqCst);
            }
        });
        over.store(true, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        change();
        for worker in workers {
            worker.join().unwrap();
        }
    });
}
