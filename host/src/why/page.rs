//! Lines of text in columns: a time, a name and a text, and on the right how long something took.
//! Control characters are removed from every text here. This module must not know turns.

use vmhost_core::one_line;

use crate::paint::{Paint, Tone};

/// Width of the column of times.
const TIME: usize = 14;

/// Width of the column of names.
const NAME: usize = 9;

/// The column of durations.
const RIGHT: usize = 85;

/// The lines that were written.
pub(super) struct Page {
    paint: Paint,
    lines: Vec<String>,
}

/// A line in columns. Without a name, the text begins in the column of names.
#[derive(Default)]
pub(super) struct Line<'a> {
    pub(super) time: &'a str,
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) right: &'a str,
    pub(super) tone: Tone,
}

impl Page {
    /// Creates a page without lines.
    pub(super) fn new(paint: Paint) -> Self {
        Self {
            paint,
            lines: Vec::new(),
        }
    }

    /// Returns the lines that were written since the last call, and forgets them.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.lines).join("\n")
    }

    /// Writes an empty line.
    pub(super) fn blank(&mut self) {
        self.lines.push(String::new());
    }

    /// Writes the parts of a line without columns.
    pub(super) fn parts(&mut self, parts: &[(Tone, &str)]) {
        let parts: Vec<String> = parts
            .iter()
            .map(|(tone, text)| self.paint.text(*tone, &one_line(text)))
            .collect();
        self.lines.push(parts.join("   "));
    }

    /// Writes a text under a name.
    pub(super) fn named(&mut self, name: &str, text: &str) {
        self.line(Line {
            name,
            text,
            ..Line::default()
        });
    }

    /// Writes a failure under a name.
    pub(super) fn bad(&mut self, name: &str, text: &str) {
        self.line(Line {
            name,
            text,
            tone: Tone::Bad,
            ..Line::default()
        });
    }

    /// Continues the text of the line before.
    pub(super) fn more(&mut self, text: &str) {
        // A name of one space leaves the column empty.
        self.named(" ", text);
    }

    /// Writes a line in columns.
    pub(super) fn line(&mut self, line: Line<'_>) {
        let parts = [line.time, line.name, line.text, line.right];
        let [time, name, text, right] = parts.map(|part| one_line(part).into_owned());
        let time = format!("{time:<TIME$}");
        let name = match name.is_empty() {
            true => name,
            false => format!("{name:<NAME$}"),
        };
        let widths = [&time, &name, &text].map(|part| part.chars().count());
        let gap = match right.is_empty() {
            true => 0,
            false => RIGHT.saturating_sub(widths.iter().sum()).max(3),
        };
        let time_tone = match line.tone {
            Tone::Warning => Tone::Warning,
            _ => Tone::Dim,
        };
        let painted = [
            self.paint.text(time_tone, &time),
            self.paint.text(Tone::Dim, &name),
            self.paint.text(line.tone, &text),
            " ".repeat(gap),
            self.paint.text(Tone::Dim, &right),
        ];
        self.lines.push(painted.concat().trim_end().to_owned());
    }
}
