//! The log lines of a guest, as they reach the host's log.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// The level and the text of a line.
pub type Line = (Level, String);

/// Records the lines of plugins.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<Line>>>);

impl Lines {
    /// Returns a dispatcher for [`tracing::instrument::WithSubscriber`].
    pub fn dispatch(&self) -> Dispatch {
        Dispatch::new(self.clone())
    }

    /// Takes the lines since the last call.
    pub fn take(&self) -> Vec<Line> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "plugin"
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push((*event.metadata().level(), message.0));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
