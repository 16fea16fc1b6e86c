//! Colours for people. They are left out unless stdout is a terminal, and if `NO_COLOR` is set.
//! This module must not know what is printed.

use std::io::IsTerminal;

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    On,
    Off,
}

/// The purpose of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    /// A title.
    Bold,
    /// Times, and the names of lines.
    Dim,
    /// A failure.
    Bad,
    /// A warning.
    Warning,
}

impl Paint {
    /// On if stdout is a terminal and `NO_COLOR` is not set.
    pub(crate) fn stdout() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none();
        match wanted && std::io::stdout().is_terminal() {
            true => Self::On,
            false => Self::Off,
        }
    }

    /// Colours a text, which must hold no control characters.
    pub(crate) fn text(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Bold => "1",
            Tone::Dim => "2",
            Tone::Bad => "31",
            Tone::Warning => "33",
            Tone::Plain => return text.to_owned(),
        };
        match self {
            Self::On if !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}
