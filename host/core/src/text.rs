//! Text that comes from a guest, on its way to a log or an Event.

use std::borrow::Cow;

/// The first `limit` bytes, or a little less: never half a character.
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

/// Without control characters: a guest must not write lines that look like the host's.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .into()
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
