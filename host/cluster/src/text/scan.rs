//! A strict JSON scanner: it finds where values end, and whether they are sound, and reads none of them.
//!
//! It owns the grammar of RFC 8259, as `serde_json` draws it: no control characters in strings, no leading zeros, no trailing commas, escapes of known
//! letters. A `\u` needs four digits and no more is asked of it: who reads the string finds out. It must not know what any value is for.
//!
//! Strings are passed over eight bytes at a time, and nesting takes a bit a level, so that no text can overflow the stack.

use std::borrow::Cow;

/// The text is no JSON, or something else stands where a value of some type should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {at}")]
pub struct BadJson {
    expected: &'static str,
    at: usize,
}

/// A place in a text.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// A string as it is written, without its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    inside: &'a str,
    escaped: bool,
}

impl<'a> Written<'a> {
    /// What it says.
    pub(crate) fn read(self) -> Result<Cow<'a, str>, BadJson> {
        if !self.escaped {
            return Ok(Cow::Borrowed(self.inside));
        }
        let quoted = format!("\"{}\"", self.inside);
        match serde_json::from_str(&quoted) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(_) => Err(BadJson {
                expected: "characters behind escapes",
                at: 0,
            }),
        }
    }

    /// Does it say this?
    pub(crate) fn says(self, text: &str) -> bool {
        if self.escaped {
            self.read().is_ok_and(|read| read == text)
        } else {
            self.inside == text
        }
    }
}

/// One member of an object: where it begins and what it is called. Its value is at the scanner's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    /// Behind the value before it, or behind the opening brace.
    pub(crate) start: usize,
    /// As `start`, but behind the comma where there is one.
    pub(crate) bare: usize,
    pub(crate) key: Written<'a>,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// How far it is.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn expected<T>(&self, expected: &'static str) -> Result<T, BadJson> {
        Err(BadJson {
            expected,
            at: self.at,
        })
    }

    /// The byte here.
    #[inline]
    fn here(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The first byte of the next token; nothing of it is taken.
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

    /// Nothing but white space is left.
    pub(crate) fn end(&mut self) -> Result<(), BadJson> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.expected("the end"),
        }
    }

    /// Goes into an object.
    pub(crate) fn open_object(&mut self) -> Result<(), BadJson> {
        self.take(b'{', "an object")
    }

    /// The next member of the object that it is in; none: the object ends, and is left. `first`: behind the brace.
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

    /// Goes into an array.
    pub(crate) fn open_array(&mut self) -> Result<(), BadJson> {
        self.take(b'[', "an array")
    }

    /// Goes to the next item of the array that it is in; false: the array ends, and is left.
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

    /// A member's name and its colon.
    #[inline]
    fn key(&mut self) -> Result<Written<'a>, BadJson> {
        let key = self.string()?;
        self.take(b':', "a colon")?;
        Ok(key)
    }

    /// A string.
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

    /// What is left of a string, with its closing quote. Has it escapes?
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

    /// What comes behind a backslash.
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

    /// Passes over one value, whatever it is.
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
            // Behind a value: out of all that ends here, and on to the next one.
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

    /// Passes over one value and returns its text.
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

    /// One digit or more.
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

/// Marks the bytes that a string cannot hold as they are: quotes, backslashes, control characters. Only the lowest mark is to be trusted: a borrow may set
/// the ones above it.
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

/// What a value lies in: a bit for each level, set for an object.
#[derive(Default)]
struct Nest {
    depth: usize,
    /// Of the innermost levels, the lowest bit that of the innermost.
    bits: u64,
    /// Of the others, 64 levels each.
    outer: Vec<u64>,
}

impl Nest {
    #[inline]
    fn enter(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    #[inline]
    fn inside(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }

    #[inline]
    fn leave(&mut self) {
        self.depth -= 1;
        self.bits >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests;
