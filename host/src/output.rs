//! Prints results of commands to stdout. Log lines go to stderr. This module must not know what is
//! printed.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::Result;
use serde::Serialize;

pub(crate) fn print(text: &str) {
    // An error means that the reader closed the pipe (`| head`) and wants no more.
    let _ = still_read(text);
}

/// Prints, and returns whether the reader may want more: when it does not, it closes the pipe.
pub(crate) fn still_read(text: &str) -> bool {
    writeln!(std::io::stdout(), "{text}").is_ok()
}

/// Formats JSON over several lines.
pub(crate) fn json(document: &impl Serialize) -> Result<String> {
    Ok(harmless(serde_json::to_string_pretty(document)?))
}

/// Formats JSON on one line.
pub(crate) fn json_line(document: &impl Serialize) -> Result<String> {
    Ok(harmless(serde_json::to_string(document)?))
}

/// Escapes the control characters that JSON allows in a string, because a terminal would obey them.
fn harmless(json: String) -> String {
    // Line breaks outside strings stay. JSON allows none inside a string.
    let obeyed = |c: char| c.is_control() && c != '\n';
    if !json.contains(obeyed) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if obeyed(c) {
            let _ = write!(escaped, "\\u{:04x}", c as u32);
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_holds_no_character_that_a_terminal_obeys() {
        let text = "a\u{9b}2J\u{1b}\u{7f}\n\u{e9}".to_owned();
        for printed in [json(&[&text]).unwrap(), json_line(&[&text]).unwrap()] {
            let controls = printed.chars().filter(|c| c.is_control() && *c != '\n');
            assert_eq!(controls.count(), 0, "{printed:?}");
            let parsed: Vec<String> = serde_json::from_str(&printed).unwrap();
            assert_eq!(parsed, std::slice::from_ref(&text));
        }
    }
}
