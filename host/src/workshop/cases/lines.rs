//! Captures the lines that a plugin logs during a case, in place of the host's log. This module
//! must not know what a case expects.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::form::{Level, Line};

/// The target of a guest's lines in the engine's log.
const PLUGIN: &str = "plugin";

/// The lines since they were last taken. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<Line>>>);

impl Lines {
    /// Takes the lines.
    pub(crate) fn take(&self) -> Vec<Line> {
        std::mem::take(&mut self.0.lock())
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() != PLUGIN {
            return;
        }
        let mut message = Message::default();
        event.record(&mut message);
        let line = Line {
            level: level(*metadata.level()),
            message: message.0,
        };
        let mut lines = self.0.lock();
        lines.push(line);
    }
}

fn level(level: tracing::Level) -> Level {
    match level {
        tracing::Level::TRACE => Level::Trace,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::INFO => Level::Info,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::ERROR => Level::Error,
    }
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

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn only_what_the_policy_says_is_kept() {
        let lines = Lines::default();
        let log = tracing_subscriber::registry().with(lines.clone());
        tracing::subscriber::with_default(log, || {
            tracing::info!(target: "plugin", "hello \"{}\"", 7);
            tracing::debug!(target: "plugin", "printed");
            tracing::error!("the host's own");
        });
        let line = |level, message: &str| Line {
            level,
            message: message.into(),
        };
        let wanted = [
            line(Level::Info, "hello \"7\""),
            line(Level::Debug, "printed"),
        ];
        assert_eq!(lines.take(), wanted);
        assert_eq!(lines.take(), []);
    }
}
