//! The log format on a terminal: time of day (UTC), label, message. The label is the level of a
//! warning or an error, else the part of the host that logs. `10:00:00 swap         swapped vm:
//! generation 2 (...)`.
//!
//! The columns match the lines of `vmhost dev`, which [`said`] formats. Nothing is repeated: a
//! field is left out if the message already contains its value as a word. Texts of plugins and
//! servers cannot control the terminal. This module must not know what is logged.

use std::fmt;

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::line::colour;
use super::reconcile::Reconcile;

/// The log format on a terminal.
pub(super) struct Pretty;

impl<S, N> FormatEvent<S, N> for Pretty
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let label = label(*metadata.level(), metadata.target());
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut text = String::new();
        let turn = |turn: &Reconcile| text = format!("{} {}: ", turn.controller, turn.object);
        Reconcile::with_current(turn);
        text.push_str(&fields.message);
        for (name, value) in &fields.others {
            if !has_word(&text, value.trim_matches('"')) {
                text.push_str(&format!(" {name}={value}"));
            }
        }
        let text = text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), " ");
        let colour = writer.has_ansi_escapes().then(|| colour(*metadata.level()));
        writeln!(writer, "{}", line(label, &text, colour))
    }
}

/// Formats a line of `vmhost dev`. On a terminal it looks like a log line.
pub fn said(label: &str, text: &str, on_terminal: bool) -> String {
    if on_terminal {
        line(label, text, Some(colour(Level::INFO)))
    } else {
        format!("{label:<12} {text}")
    }
}

fn line(label: &str, text: &str, colour: Option<&str>) -> String {
    let second = Timestamp::now().as_second().rem_euclid(24 * 60 * 60);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let (dim, colour, off) = match colour {
        Some(colour) => ("\x1b[2m", colour, "\x1b[0m"),
        None => ("", "", ""),
    };
    format!("{dim}{hour:02}:{minute:02}:{second:02}{off} {colour}{label:<12}{off} {text}")
}

/// Returns whether a text contains a word, not as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, word)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

/// Returns the label: the level of a warning or an error, else the last segment of the target.
fn label(level: Level, target: &str) -> &str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        _ => target.rsplit("::").next().unwrap_or(target),
    }
}

/// An event's message and its other fields, formatted.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, String)>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = format!("{value:?}");
        match field.name() {
            "message" => self.message = value,
            name => self.others.push((name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::ObjectName;

    use super::super::line::tests::Lines;
    use super::*;

    #[tokio::test]
    async fn a_line_says_nothing_twice() {
        let lines = Lines::default();
        let builder = tracing_subscriber::fmt().with_writer(lines.clone());
        let subscriber = builder.with_ansi(false).event_format(Pretty).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        tracing::info!(target: "vmhost::deploy::swap", plugin = "vm", keys = 2, "swapped vm");
        let turn = Reconcile::new("vm".into(), 3, ObjectName::new(Some("a"), "x"));
        turn.scope(async { tracing::warn!(controller = "vm", "cannot patch it") })
            .await;
        tracing::warn!(controller = "vm", "run `vmhost rbac`\x1b]0;x\x07");
        let text = lines.text();
        let seen: Vec<&str> = text.lines().map(|line| &line[9..]).collect();
        assert_eq!(
            seen,
            [
                "swap         swapped vm keys=2",
                "warning      vm a/x: cannot patch it",
                r#"warning      run `vmhost rbac` ]0;x  controller="vm""#,
            ]
        );
        assert_eq!(&text[2..3], ":");
        assert_eq!(said("applied", "Pod a/x", false), "applied      Pod a/x");
    }
}
