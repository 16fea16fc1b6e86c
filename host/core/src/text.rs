//! Helpers for texts: those of guests and errors that go to a log or an Event, and patterns.

use std::borrow::Cow;
use std::error::Error;

/// The first `limit` bytes, shortened to a character boundary.
pub fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Replaces control characters by spaces, so that a guest cannot write lines that look like the
/// host's.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .into()
}

/// Returns whether a text fits a pattern, in which `*` stands for any text.
pub fn fits(pattern: &str, text: &str) -> bool {
    let Some((before, mut patterns)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(before) else {
        return false;
    };
    while let Some((part, rest)) = patterns.split_once('*') {
        // The first place will do: what follows may begin anywhere behind it.
        let Some(at) = text.find(part) else {
            return false;
        };
        text = text.get(at + part.len()..).unwrap_or_default();
        patterns = rest;
    }
    text.ends_with(patterns)
}

/// Formats an error and its sources, without sources that the text already contains. Line breaks
/// stay.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let source = error.to_string();
        if !text.contains(&source) {
            text.push_str(": ");
            text.push_str(&source);
        }
        next = error.source();
    }
    text
}

/// As [`chain`], on one line.
pub fn chain_line(error: &(dyn Error + 'static)) -> String {
    one_line(&chain(error)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("h\u{e9}llo", 2), "h");
        assert_eq!(cut("h\u{e9}llo", 3), "h\u{e9}");
        assert_eq!(cut("abc", 9), "abc");
    }

    #[test]
    fn a_star_in_a_pattern_stands_for_any_text() {
        let workflow = "https://git.example/team/*/release.yml@refs/tags/v*";
        for (pattern, text, fit) in [
            ("*", "a", true),
            ("path", "path", true),
            ("path", "paths", false),
            ("r.io/team-*", "r.io/team-a/vm:1", true),
            ("r.io/team-*", "r.io.evil/team-a", false),
            ("r.io/*:1", "r.io/vm:1", true),
            ("r.io/*:1", "r.io/vm:11", false),
            ("r.io/*/vm@*", "r.io/a/b/vm@sha256:1", true),
            ("*@b.c", "a@b.c", true),
            ("*@b.c", "a@b.c.d", false),
            ("ab*ba", "aba", false),
            (
                workflow,
                "https://git.example/team//release.yml@refs/tags/v",
                true,
            ),
            (
                workflow,
                "https://git.example/teams/vm/release.yml@refs/tags/v1",
                false,
            ),
            (
                workflow,
                "https://git.example/team/vm/release.yml@refs/heads/v1",
                false,
            ),
            (
                workflow,
                "x https://git.example/team/vm/release.yml@refs/tags/v1",
                false,
            ),
        ] {
            assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
        }
    }

    #[test]
    fn a_guest_cannot_start_a_new_line() {
        assert_eq!(one_line("a\nERROR b\x1b[0m"), "a ERROR b [0m");
        assert!(matches!(one_line("plain"), Cow::Borrowed("plain")));
    }
}
