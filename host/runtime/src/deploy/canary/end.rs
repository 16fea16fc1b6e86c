//! Cleans up after the end of a canary: after an abort, the live version gets the candidate's keys
//! back.
//!
//! This module must not know why a canary ends.

use super::{TARGET, Watch};
use crate::canary::end::End;
use crate::canary::{Ended, Stage};
use crate::deploy::history;
use crate::journal::tag::Cause;

impl Watch {
    /// Cleans up after the end of the canary. After an abort, gives the candidate's keys back to
    /// the live version.
    pub(super) async fn settle(&self) {
        let canary = &self.canary;
        match canary.is_aborted() {
            true => self.put_back().await,
            false => canary.until(Stage::Over).await,
        }
        canary.controllers().for_each(|(_, keys)| drop(keys.end()));
        self.plugins.count_end(canary);
        canary.finish();
        self.keep().await;
    }

    /// Keeps the component of a candidate that was aborted until another one is or another version
    /// runs, so that its turns can be replayed. That of a promoted one is in the history already.
    async fn keep(&self) {
        let canary = &self.canary;
        if let Some(component) = canary.component(&canary.about.digest) {
            let plugin = self.generation.plugin.clone();
            let kept = history::with(&self.plugins.loader.history, move |history| {
                history.keep_aborted(&plugin, &component);
            });
            kept.await;
        }
        drop(canary.take_component());
    }

    /// Gives the keys of an aborted candidate back to the live version, and announces that.
    async fn put_back(&self) {
        let (canary, slot) = (&self.canary, &self.slot);
        // The task that aborted the canary may not have done this yet.
        slot.take_out(canary);
        // After this, no call starts on the candidate any more.
        self.lineup.started().await;
        let mut count = 0;
        for (name, keys) in canary.controllers() {
            if let Some(wired) = self.generation.controllers.get(name) {
                let back = keys.end();
                count += back.len();
                slot.again(&wired.controller, &back, Cause::Canary, |controller| {
                    controller.forgive_these(&back);
                });
            }
        }
        if let Some(Ended {
            how: End::Aborted(why),
            ..
        }) = canary.ended()
        {
            tracing::warn!(
                target: TARGET,
                plugin = slot.name,
                generation = self.generation.number,
                "canary {} aborted: {why}; generation {} runs all objects (keys requeued: {count}, objects that the candidate wrote: {}, see `vmhost canary status {}`)",
                slot.name,
                slot.current().number,
                canary.written_count(),
                slot.name
            );
        }
    }
}
