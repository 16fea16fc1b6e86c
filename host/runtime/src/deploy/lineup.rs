//! A line-up: the version that runs a plugin's keys, and at times a candidate that runs a share of
//! them. A change of what runs is a new line-up, so that a worker compares one pointer.
//!
//! This module must not know what a version is, or who decides to change it.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::canary::weight::Weight;
use crate::deploy::starts::{Starting, Starts};

/// The versions that run at one time. `G` is a version, `C` a canary.
pub struct Lineup<G, C> {
    /// Runs all keys, or those that the candidate does not run.
    pub(crate) live: Arc<G>,
    /// The version that is tried.
    pub(crate) candidate: Option<Candidate<G, C>>,
    /// The calls that are about to start.
    starts: Arc<Starts>,
    /// Those under line-ups before, as far as some may not have started when this one came: one may
    /// be replaced while nobody waits for it yet.
    older: Vec<Arc<Starts>>,
}

/// A version that runs a share of the keys.
pub struct Candidate<G, C> {
    /// The version.
    pub(crate) generation: Arc<G>,
    /// Its share.
    pub(crate) weight: Weight,
    /// What is known about it. Line-ups that differ only in the weight have the same.
    pub(crate) canary: Arc<C>,
}

impl<G, C> Lineup<G, C> {
    /// One version alone.
    pub(crate) fn alone(live: Arc<G>) -> Self {
        Self {
            live,
            candidate: None,
            starts: Arc::default(),
            older: Vec::new(),
        }
    }

    /// A version and a candidate.
    pub(crate) fn with(live: Arc<G>, candidate: Candidate<G, C>) -> Self {
        Self {
            candidate: Some(candidate),
            ..Self::alone(live)
        }
    }

    /// This line-up as the one that replaces another.
    fn after(&self, before: &Self) -> Arc<Self> {
        let older = before.older.iter().filter(|starts| !starts.is_none());
        Arc::new(Self {
            live: self.live.clone(),
            candidate: self.candidate.clone(),
            starts: self.starts.clone(),
            // Calls still begin under the one that is being replaced.
            older: older.chain([&before.starts]).cloned().collect(),
        })
    }

    /// The versions, the live one first.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Arc<G>> {
        let candidate = self.candidate.as_ref();
        let candidate = candidate.map(|candidate| &candidate.generation);
        std::iter::once(&self.live).chain(candidate)
    }

    /// Returns whether a version runs keys.
    pub(crate) fn has(&self, generation: &Arc<G>) -> bool {
        let mut members = self.members();
        members.any(|member| Arc::ptr_eq(member, generation))
    }

    /// Resolves when no call is about to start under this line-up, or under one before. After the
    /// line-up was replaced, no further call can be.
    pub async fn started(&self) {
        for starts in self.older.iter().chain([&self.starts]) {
            starts.none().await;
        }
    }
}

impl<G, C> Clone for Candidate<G, C> {
    fn clone(&self) -> Self {
        Self {
            generation: self.generation.clone(),
            weight: self.weight,
            canary: self.canary.clone(),
        }
    }
}

/// The present line-up, which is exchanged in one step.
pub(crate) struct Lineups<G, C>(ArcSwap<Lineup<G, C>>);

impl<G, C> Lineups<G, C> {
    /// Begins with one version.
    pub(crate) fn new(first: Arc<G>) -> Self {
        Self(ArcSwap::from_pointee(Lineup::alone(first)))
    }

    /// The present line-up.
    pub(crate) fn present(&self) -> Arc<Lineup<G, C>> {
        self.0.load_full()
    }

    /// Counts a call that is about to start under this line-up. While the guard lives, a newer
    /// line-up is not announced. Returns `None` if the line-up was already replaced.
    pub(crate) fn begin<'a>(&self, lineup: &'a Arc<Lineup<G, C>>) -> Option<Starting<'a>> {
        let starting = lineup.starts.begin();
        // The call is counted before the line-up is compared: either the change sees the count, or
        // this function sees the change.
        Arc::ptr_eq(lineup, &self.0.load()).then_some(starting)
    }

    /// Exchanges the line-up. Returns the one before: from now on no call starts under it.
    pub(crate) fn replace(&self, lineup: Lineup<G, C>) -> Arc<Lineup<G, C>> {
        self.0.rcu(|present| lineup.after(present))
    }

    /// Exchanges the line-up if it is this one. Returns the new one, or `None` if it was another.
    pub(crate) fn replace_if(
        &self,
        present: &Arc<Lineup<G, C>>,
        lineup: &Lineup<G, C>,
    ) -> Option<Arc<Lineup<G, C>>> {
        let lineup = lineup.after(present);
        let before = self.0.compare_and_swap(present, lineup.clone());
        Arc::ptr_eq(present, &before).then_some(lineup)
    }

    /// Takes a candidate out of the line-up, if it is in it: from now on no call starts on it.
    pub(crate) fn take_out(&self, canary: &Arc<C>) {
        self.0.rcu(|present| match &present.candidate {
            Some(candidate) if Arc::ptr_eq(&candidate.canary, canary) => {
                Lineup::alone(present.live.clone()).after(present)
            }
            _ => present.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
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
        // An abort comes between two steps.
        lineups.take_out(&canary);
        assert!(lineups.replace_if(&first, &step(250)).is_none());
        assert!(lineups.present().candidate.is_none());
    }

    /// A canary is aborted, and a swap follows before anyone has waited for the abort.
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
        // What has started is not kept.
        lineups.replace(Lineup::alone(Arc::new(4)));
        assert_eq!(lineups.present().older.len(), 1);
    }

    /// Threads begin calls while line-ups are exchanged, candidates come and are taken out. No call
    /// begins under an older line-up after a newer one was announced.
    #[test]
    fn no_call_starts_under_an_older_line_up_after_a_newer_one_was_announced() {
        const ROUNDS: u64 = 300;
        let lineups = Numbers::new(Arc::new(0));
        // The newest live version and the newest end of a canary that were announced.
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
                    // The threads may begin late.
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
}
