//! A strict JSON scanner: it finds where values end and validates them, without decoding any.
//!
//! This module owns the grammar of RFC 8259, as strict as `serde_json`: no control characters in
//! strings, no leading zeros, no trailing commas, only known escapes. Of a `\u` it only requires
//! four digits: decoding the string detects other errors. It must not know the purpose of a value.
//!
//! Strings are scanned eight bytes at a time, and `nest` takes one bit per level, so no text can
//! overflow the stack.

use std::borrow::Cow;

mod nest;

use nest::Nest;

/// The text is not JSON, or a value has an unexpected type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {at}")]
pub struct BadJson {
    expected: &'static str,
    at: usize,
}

/// A position in a text.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// A string as written, without its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    inside: &'a str,
    escaped: bool,
}

impl<'a> Written<'a> {
    /// Decodes the string.
    pub(crate) fn read(self) -> Result<Cow<'a, str>, BadJson> {
        if !self.escaped {
            return Ok(Cow::Borrowed(self.inside));
        }
        let quoted = format!("\"{}\"", self.inside);
        match serde_json::from_str(&quoted) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(_) => Err(BadJson {
                expected: "valid escapes",
                at: 0,
            }),
        }
    }

    /// Returns whether the decoded string equals `text`.
    pub(crate) fn says(self, text: &str) -> bool {
        if self.escaped {
            self.read().is_ok_and(|read| read == text)
        } else {
            self.inside == text
        }
    }
}

/// One member of an object: its start and its key. The scanner is at its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    /// After the previous value, or after the opening brace.
    pub(crate) start: usize,
    /// As `start`, but after the comma if there is one.
    pub(crate) bare: usize,
    pub(crate) key: Written<'a>,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The scanner's position.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn expected<T>(&self, expected: &'static str) -> Result<T, BadJson> {
        Err(BadJson {
            expected,
            at: self.at,
        })
    }

    /// The byte at the scanner's position.
    #[inline]
    fn here(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns the first byte of the next token, without consuming it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let mut here = self.here();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = here {
            self.at += 1;
            here = self.here();
        }
        here
    }

    #[inline]
    fn take(&mut self, byte: u8, expected: &'static str) -> Result<(), BadJson> {
        if self.peek() != Some(byte) {
            return self.expected(expected);
        }
        self.at += 1;
        Ok(())
    }

    /// Checks that only white space is left.
    pub(crate) fn end(&mut self) -> Result<(), BadJson> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.expected("the end"),
        }
    }

    /// Enters an object.
    pub(crate) fn open_object(&mut self) -> Result<(), BadJson> {
        self.take(b'{', "an object")
    }

    /// Returns the next member of the current object; `None` if the object ends, and is left.
    /// `first` is set directly after the brace.
    #[inline]
    pub(crate) fn member(&mut self, first: bool) -> Result<Option<Member<'a>>, BadJson> {
        let start = self.at;
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !first => self.at += 1,
            Some(b'"') if first => {}
            _ => return self.expected("a member or the end of an object"),
        }
        let bare = if first { start } else { self.at };
        let key = self.key()?;
        self.peek();
        Ok(Some(Member { start, bare, key }))
    }

    /// Enters an array.
    pub(crate) fn open_array(&mut self) -> Result<(), BadJson> {
        self.take(b'[', "an array")
    }

    /// Moves to the next item of the current array. Returns `false` if the array ends, and is left.
    pub(crate) fn item(&mut self, first: bool) -> Result<bool, BadJson> {
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                return Ok(false);
            }
            Some(b',') if !first => self.at += 1,
            Some(_) if first => {}
            _ => return self.expected("an item or the end of an array"),
        }
        self.peek();
        Ok(true)
    }

    /// Scans a member's key and its colon.
    #[inline]
    fn key(&mut self) -> Result<Written<'a>, BadJson> {
        let key = self.string()?;
        self.take(b':', "a colon")?;
        Ok(key)
    }

    /// Scans a string.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Written<'a>, BadJson> {
        self.take(b'"', "a string")?;
        let start = self.at;
        let escaped = self.string_tail()?;
        Ok(Written {
            inside: &self.text[start..self.at - 1],
            escaped,
        })
    }

    /// Scans the rest of a string with its closing quote. Returns whether it has escapes.
    #[inline]
    fn string_tail(&mut self) -> Result<bool, BadJson> {
        let bytes = self.text.as_bytes();
        let (mut at, mut escaped) = (self.at, false);
        loop {
            while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
                let special = special(u64::from_le_bytes(*eight));
                if special != 0 {
                    at += special.trailing_zeros() as usize / 8;
                    break;
                }
                at += 8;
            }
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at = at + 1;
                    self.escape()?;
                    at = self.at;
                }
                Some(0x20..) => at += 1,
                Some(_) | None => {
                    self.at = at;
                    return self.expected("the end of a string");
                }
            }
        }
    }

    /// Scans an escape after its backslash.
    fn escape(&mut self) -> Result<(), BadJson> {
        let rest = &self.text.as_bytes()[self.at..];
        match rest {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => self.at += 1,
            [b'u', a, b, c, d, ..]
                if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                self.at += 5;
            }
            _ => return self.expected("an escape"),
        }
        Ok(())
    }

    /// Skips one value of any type.
    pub(crate) fn skip(&mut self) -> Result<(), BadJson> {
        let mut nest = Nest::default();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.string_tail()?;
                }
                Some(b'{') => {
                    self.at += 1;
                    if self.peek() != Some(b'}') {
                        nest.enter(true);
                        self.key()?;
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'[') => {
                    self.at += 1;
                    if self.peek() != Some(b']') {
                        nest.enter(false);
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return self.expected("a value"),
            }
            // After a value: leave everything that ends here, and move to the next value.
            loop {
                let Some(in_object) = nest.inside() else {
                    return Ok(());
                };
                match (self.peek(), in_object) {
                    (Some(b','), true) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (Some(b','), false) => {
                        self.at += 1;
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        nest.leave();
                    }
                    _ => return self.expected("a comma or an end"),
                }
            }
        }
    }

    /// Skips one value and returns its text.
    pub(crate) fn value(&mut self) -> Result<&'a str, BadJson> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    fn word(&mut self, word: &'static str) -> Result<(), BadJson> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.expected(word);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), BadJson> {
        if self.here() == Some(b'-') {
            self.at += 1;
        }
        if self.here() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.here() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.here() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.here() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Scans one or more digits.
    fn digits(&mut self) -> Result<(), BadJson> {
        let start = self.at;
        while self.here().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return self.expected("a digit");
        }
        Ok(())
    }
}

/// Marks the bytes that cannot stand unescaped in a string: quotes, backslashes, control
/// characters. Only the lowest mark is reliable: a borrow may set the marks above it.
#[inline]
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * b'"' as u64));
    let backslash = zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

#[cfg(test)]
mod tests;
