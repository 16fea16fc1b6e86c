//! What Events are sent by: the part of a connection that writes them, and what may hold them back.
//!
//! This module must not know which Events there are.

use std::sync::Arc;

use crate::connect::Connection;
use crate::error::Error;

/// Tells why no Event may be sent now.
pub type EventFence = Arc<dyn Fn() -> Result<(), Error> + Send + Sync>;

/// Writes Events, and nothing else. A [`Recorder`] is built from it. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    pub(super) connection: Connection,
    /// Asked right before each request.
    pub(super) fence: Option<EventFence>,
}

impl Connection {
    /// Returns the part that writes Events.
    pub fn events(&self) -> Events {
        Events {
            connection: self.clone(),
            fence: None,
        }
    }
}

impl Events {
    /// Sends only while the fence lets it. An Event that it holds back is tried again, as if the
    /// server had not answered.
    #[must_use]
    pub fn fenced(mut self, fence: EventFence) -> Self {
        self.fence = Some(fence);
        self
    }
}
