//! The controllers that a swap has replaced or dropped, until their last turns end.
//!
//! This module must not know why a controller is dropped.

use std::sync::Arc;

use super::Slot;
use crate::controller::Controller;

impl Slot {
    /// Shuts down a controller that a swap has replaced or dropped.
    pub(crate) fn retire(&self, controller: &Arc<Controller>) {
        controller.shut_down();
        let mut retired = self.retired.lock();
        retired.push(controller.clone());
        retired.retain(|other| other.queue.stats().processing > 0);
    }

    /// Resolves when no turn of a retired controller of this label runs any more. A new controller
    /// waits for this, because the retired controller's last keys may be its first.
    pub(crate) async fn retired_have_ended(&self, label: &str) {
        loop {
            let next = self
                .retired
                .lock()
                .iter()
                .find(|other| &*other.label == label)
                .cloned();
            let Some(controller) = next else {
                return;
            };
            controller.queue.drained().await;
            self.retired
                .lock()
                .retain(|other| !Arc::ptr_eq(other, &controller));
        }
    }
}
