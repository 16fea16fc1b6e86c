//! A line-up: the version that runs a plugin's keys, and sometimes a candidate that runs a share of
//! them. Every change of the versions or of the share makes a new line-up, so that a worker only
//! compares one pointer.
//!
//! This module must not know what a version is, or why the versions change.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::canary::weight::Weight;
use crate::deploy::starts::{Starting, Starts};

/// The versions that run at one time. `G` is a version, `C` a canary.
pub struct Lineup<G, C> {
    /// The version that runs all keys, or the keys that the candidate does not run.
    pub(crate) live: Arc<G>,
    /// The version that is tried.
    pub(crate) candidate: Option<Candidate<G, C>>,
    /// The calls that are about to start.
    starts: Arc<Starts>,
    /// The calls that were about to start under earlier line-ups, as far as they may not have
    /// started yet: a line-up can be replaced before any task has waited for its calls.
    older: Vec<Arc<Starts>>,
}

/// A version that runs a share of the keys.
pub struct Candidate<G, C> {
    /// The version.
    pub(crate) generation: Arc<G>,
    /// The candidate's share of the objects.
    pub(crate) weight: Weight,
    /// The canary, which all line-ups with the same candidate share.
    pub(crate) canary: Arc<C>,
}

impl<G, C> Lineup<G, C> {
    /// Creates a line-up of one version alone.
    pub(crate) fn alone(live: Arc<G>) -> Self {
        Self {
            live,
            candidate: None,
            starts: Arc::default(),
            older: Vec::new(),
        }
    }

    /// Creates a line-up of a version and a candidate.
    pub(crate) fn with(live: Arc<G>, candidate: Candidate<G, C>) -> Self {
        Self {
            candidate: Some(candidate),
            ..Self::alone(live)
        }
    }

    /// Copies this line-up, as the successor of `before`.
    fn after(&self, before: &Self) -> Arc<Self> {
        let older = before.older.iter().filter(|starts| !starts.is_none());
        Arc::new(Self {
            live: self.live.clone(),
            candidate: self.candidate.clone(),
            starts: self.starts.clone(),
            // Calls can still begin under `before`, since it is not replaced yet.
            older: older.chain([&before.starts]).cloned().collect(),
        })
    }

    /// The versions, the live one first.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Arc<G>> {
        let candidate = self.candidate.as_ref();
        let candidate = candidate.map(|candidate| &candidate.generation);
        std::iter::once(&self.live).chain(candidate)
    }

    /// Returns whether this version is one of them.
    pub(crate) fn has(&self, generation: &Arc<G>) -> bool {
        let mut members = self.members();
        members.any(|member| Arc::ptr_eq(member, generation))
    }

    /// Resolves when no call is about to start under this line-up or an earlier one. Once the
    /// line-up has been replaced, no further call can be about to start.
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

/// The present line-up of a plugin. A change replaces it in one step.
pub(crate) struct Lineups<G, C>(ArcSwap<Lineup<G, C>>);

impl<G, C> Lineups<G, C> {
    /// Creates the first line-up, of one version.
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

    /// Replaces the line-up, and returns the one before. No call starts under that any more.
    pub(crate) fn replace(&self, lineup: Lineup<G, C>) -> Arc<Lineup<G, C>> {
        self.0.rcu(|present| lineup.after(present))
    }

    /// Replaces the line-up if it is still `present`. Returns the new line-up, or `None` if another
    /// one was there.
    pub(crate) fn replace_if(
        &self,
        present: &Arc<Lineup<G, C>>,
        lineup: &Lineup<G, C>,
    ) -> Option<Arc<Lineup<G, C>>> {
        let lineup = lineup.after(present);
        let before = self.0.compare_and_swap(present, lineup.clone());
        Arc::ptr_eq(present, &before).then_some(lineup)
    }

    /// Takes the candidate of this canary out of the line-up, if it is there. No call starts on it
    /// any more.
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
mod tests;
