//! Helpers for text of guests and errors that goes to a log or an Event.

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
    fn a_guest_cannot_start_a_new_line() {
        assert_eq!(one_line("a\nERROR b\x1b[0m"), "a ERROR b [0m");
        assert!(matches!(one_line("plain"), Cow::Borrowed("plain")));
    }
}
