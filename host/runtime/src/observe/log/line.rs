//! The two formats of a log line. Text is `tracing-subscriber`'s format, with the turn in place of
//! a span. JSON is flat and uses controller-runtime's field names. This module must not know what
//! is logged.

use std::fmt;

use serde::Serializer as _;
use serde::ser::SerializeMap;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use vmhost_otlp::Context;

use super::reconcile::Reconcile;

/// `2026-11-21T10:00:00.000000Z  INFO reconcile{controller="vm" ...}: plugin: message field=value`.
pub(super) struct Text;

/// `{"timestamp":...,"level":"INFO","target":"plugin","controller":"vm",...,"message":...}`.
pub(super) struct Json;

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        write!(writer, " {:>5} ", event.metadata().level().as_str())?;
        let turn = Reconcile::with_current(|turn| {
            let Reconcile {
                controller,
                generation,
                object,
                ..
            } = turn;
            write!(
                writer,
                "reconcile{{controller={controller:?} generation={generation} object={object} namespace={:?} name={:?} reconcileID={}",
                object.namespace().unwrap_or_default(),
                object.name(),
                turn.id()
            )?;
            if let Some(Context { trace, span }) = turn.context() {
                write!(writer, " trace_id={trace} span_id={span}")?;
            }
            write!(writer, "}}: ")
        });
        turn.unwrap_or(Ok(()))?;
        write!(writer, "{}: ", event.metadata().target())?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// The escape sequence that begins the colour of a level.
pub(super) fn colour(level: Level) -> &'static str {
    match level {
        Level::TRACE => "\x1b[35m",
        Level::DEBUG => "\x1b[34m",
        Level::INFO => "\x1b[32m",
        Level::WARN => "\x1b[33m",
        Level::ERROR => "\x1b[31m",
    }
}

impl<S, N> FormatEvent<S, N> for Json
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
        let mut bytes = Vec::with_capacity(512);
        json(&mut bytes, event).map_err(|_| fmt::Error)?;
        writer.write_str(&String::from_utf8_lossy(&bytes))?;
        writeln!(writer)
    }
}

fn json(bytes: &mut Vec<u8>, event: &Event<'_>) -> serde_json::Result<()> {
    let mut time = String::with_capacity(32);
    // If the time cannot be formatted, the line has none.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    let mut serializer = serde_json::Serializer::new(bytes);
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("timestamp", &time)?;
    map.serialize_entry("level", event.metadata().level().as_str())?;
    map.serialize_entry("target", event.metadata().target())?;
    let turn = Reconcile::with_current(|turn| {
        let id = turn.id().to_string();
        let names = [
            ("controller", &*turn.controller),
            ("object", turn.object.as_str()),
            ("namespace", turn.object.namespace().unwrap_or_default()),
            ("name", turn.object.name()),
            ("reconcileID", &id),
        ];
        map.serialize_entry("generation", &turn.generation)?;
        if let Some(Context { trace, span }) = turn.context() {
            // The names of OpenTelemetry's specification for logs in other formats.
            map.serialize_entry("trace_id", &trace.to_string())?;
            map.serialize_entry("span_id", &span.to_string())?;
            map.serialize_entry("trace_flags", "01")?;
        }
        // An event's own field of the same name is more specific and wins.
        let own = event.metadata().fields();
        let mut names = names
            .into_iter()
            .filter(|(name, _)| own.field(name).is_none());
        names.try_for_each(|(name, value)| map.serialize_entry(name, value))
    });
    turn.unwrap_or(Ok(()))?;
    let mut fields = Fields {
        map: &mut map,
        result: Ok(()),
    };
    event.record(&mut fields);
    fields.result?;
    map.end()
}

/// Writes an event's fields, up to the first that fails.
struct Fields<'a, M: SerializeMap> {
    map: &'a mut M,
    result: Result<(), M::Error>,
}

impl<M: SerializeMap> Fields<'_, M> {
    fn entry<T: serde::Serialize + ?Sized>(&mut self, field: &Field, value: &T) {
        if self.result.is_ok() {
            self.result = self.map.serialize_entry(field.name(), value);
        }
    }
}

impl<M: SerializeMap> Visit for Fields<'_, M> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.entry(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.entry(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.entry(field, &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.entry(field, &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.entry(field, &value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.entry(field, &value);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing_subscriber::fmt::MakeWriter;
    use vmhost_core::ObjectName;

    use super::*;

    #[derive(Clone, Default)]
    pub(in super::super) struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    impl Lines {
        pub(in super::super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().clone()).unwrap()
        }
    }

    async fn two_lines() {
        let key = ObjectName::new(Some("a"), "x");
        let turn = Reconcile::new("vm".into(), 3, key);
        turn.scope(async {
            tracing::info!(target: "plugin", "one \"quoted\"");
            tracing::warn!(count = 2, name = "y", "two");
        })
        .await;
        tracing::error!("outside");
    }

    #[tokio::test]
    async fn a_turn_stands_on_its_text_lines_and_on_no_others() {
        let lines = Lines::default();
        let builder = tracing_subscriber::fmt().with_writer(lines.clone());
        let _guard =
            tracing::subscriber::set_default(builder.with_ansi(false).event_format(Text).finish());
        two_lines().await;
        let text = lines.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].contains(r#"Z  INFO reconcile{controller="vm" generation=3 object=a/x namespace="a" name="x" reconcileID="#),
            "{text}"
        );
        assert!(lines[0].ends_with(r#"}: plugin: one "quoted""#), "{text}");
        assert!(lines[1].contains("count=2"), "{text}");
        assert!(!lines[2].contains("reconcile{"), "{text}");
    }

    #[tokio::test]
    async fn json_lines_are_flat_and_share_the_turns_id() {
        let lines = Lines::default();
        let builder = tracing_subscriber::fmt().with_writer(lines.clone());
        let _guard = tracing::subscriber::set_default(builder.event_format(Json).finish());
        two_lines().await;
        let text = lines.text();
        let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        let lines: Vec<_> = text.lines().map(read).collect();
        assert_eq!(lines[0]["message"], "one \"quoted\"");
        assert_eq!(lines[0]["controller"], "vm");
        assert_eq!(lines[0]["object"], "a/x");
        assert_eq!(lines[0]["reconcileID"], lines[1]["reconcileID"]);
        assert_eq!(lines[1]["count"], 2);
        assert_eq!(text.matches("\"name\"").count(), 2, "{text}");
        assert!(lines[2].get("controller").is_none(), "{text}");
    }
}
