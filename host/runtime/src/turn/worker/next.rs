//! **Get.** The next key of a worker, which only gets keys while this host is the leader.
//!
//! This module must not know what becomes of a key.

use std::time::Duration;

use vmhost_core::ObjectName;
use vmhost_queue::{Decision, Lease};

use super::Worker;
use crate::journal::tag::WakeTag;
use crate::turn::STANDBY_STEP;

impl Worker {
    /// Returns a key if one is ready now and this host leads.
    pub(super) fn ready(&self) -> Option<Lease<ObjectName, WakeTag>> {
        if !self.leadership.is_leading() {
            return None;
        }
        self.controller.queue.try_get()
    }

    /// Waits until this host leads, or ends. Returns `None` if the worker has to end.
    pub(super) async fn leads(&self) -> Option<()> {
        while !self.leadership.is_leading()
            && tokio::time::timeout(STANDBY_STEP, self.leadership.leads())
                .await
                .is_err()
        {
            // A swap may have replaced the controller meanwhile.
            self.slot.current().sources(&self.controller)?;
        }
        Some(())
    }

    /// Waits for the next key while this host leads. Returns `None` if the worker has to end.
    pub(super) async fn next(&self) -> Option<Lease<ObjectName, WakeTag>> {
        loop {
            self.leads().await?;
            let lease = self.controller.queue.get().await?;
            if self.leadership.is_leading() {
                return Some(lease);
            }
            // The host lost the lease while the worker waited for the key.
            lease.finish(Decision::Postpone(Duration::ZERO));
        }
    }
}
