//! Finds values in texts, in the forms in which they may appear there: as they are, in base64 (also
//! inside a longer text that was encoded), and as part of a JSON text or of a URL.
//!
//! This module must not know why a value must not be seen.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use vmhost_core::one_line;

use crate::journal::redact::mask::plain;

/// Shorter values, in characters, are not searched for: they would be found everywhere.
const SHORTEST: usize = 4;

/// The least number of characters by which a value is recognised in the base64 of a longer text.
const INSIDE: usize = 8;

/// A text of this length or more may have been cut in the middle of a value, ...
const CUT: usize = 500;

/// ... which is then recognised by at least this many bytes.
const BEGINNING: usize = 8;

/// How many bytes of values are compared with a text for each of its bytes, and how many besides.
/// Only a long value that nearly repeats itself in a text that repeats it costs more.
const STEPS: usize = 64;
const STEPS_MORE: usize = 1 << 16;

/// The text that replaces one in which the search for values would take too long.
const WHOLE: &str = "<redacted: it repeats the beginning of a sensitive value>";

/// What is escaped in a part of a URL: all but letters, digits and these four.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The values to find, in all their forms.
pub(super) struct Search {
    /// The forms by their first four bytes. Each list is sorted by text.
    forms: HashMap<[u8; 4], Vec<Form>>,
}

struct Form {
    text: String,
    /// The text that replaces the value.
    mask: String,
}

impl Search {
    /// Prepares the search for these values, each with the text that replaces it.
    pub(super) fn new<'v>(values: impl IntoIterator<Item = (&'v str, &'v str)>) -> Self {
        let mut forms: HashMap<[u8; 4], Vec<Form>> = HashMap::new();
        for (value, mask) in values {
            for text in forms_of(value) {
                let Some(head) = text.as_bytes().first_chunk::<4>().copied() else {
                    continue;
                };
                let mask = mask.to_owned();
                forms.entry(head).or_default().push(Form { text, mask });
            }
        }
        for forms in forms.values_mut() {
            forms.sort_by(|a, b| a.text.cmp(&b.text));
            forms.dedup_by(|a, b| a.text == b.text);
        }
        Self { forms }
    }

    /// Hides the values in a text.
    pub(super) fn text(&self, text: &mut String) {
        let found = self.find(text);
        if found.is_empty() {
            return;
        }
        let mut hidden = String::new();
        let mut end = 0;
        for (range, mask) in found {
            hidden += &text[end..range.start];
            hidden += mask;
            end = range.end;
        }
        hidden += &text[end..];
        *text = hidden;
    }

    /// Hides the values in all texts in a JSON value, and the numbers that are a value. The names
    /// of members stay.
    pub(super) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Number(number) => {
                if let Some(mask) = self.mask_of(&number.to_string()) {
                    *value = mask.into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                let members = members.values_mut();
                members.for_each(|member| self.value(member));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Finds all values in a text, in order. Values that overlap are one range, so that nothing of
    /// the second one stays.
    fn find(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        if self.forms.is_empty() {
            return found;
        }
        let mut steps = text.len().saturating_mul(STEPS).saturating_add(STEPS_MORE);
        for (at, _) in text.char_indices() {
            let longest = self.longest(text, at, &mut steps);
            if steps == 0 {
                return vec![(0..text.len(), WHOLE)];
            }
            let Some((end, mask)) = longest else {
                continue;
            };
            match found.last_mut() {
                Some((range, _)) if at < range.end => range.end = range.end.max(end),
                _ => found.push((at..end, mask)),
            }
        }
        found
    }

    /// Returns the end of the longest value that begins here, and the text that replaces it.
    ///
    /// The search goes on byte by byte with the forms that still match, so that thousands of values
    /// with the same beginning cost no more than their length. This matters because the users who
    /// write Secrets choose the values.
    ///
    /// Each byte takes one of the `steps`. With none left, the answer means nothing.
    fn longest(&self, text: &str, at: usize, steps: &mut usize) -> Option<(usize, &str)> {
        let rest = &text.as_bytes()[at..];
        let mut forms = self.forms.get(rest.first_chunk::<4>()?)?.as_slice();
        let may_be_cut = text.len() >= CUT && rest.len() >= BEGINNING;
        let mut longest = None;
        // All forms that still match begin with this many bytes of the rest.
        let mut length = 4;
        while let Some((first, others)) = forms.split_first() {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                return None;
            }
            if first.text.len() == length {
                longest = Some((at + length, first.mask.as_str()));
                forms = others;
            }
            let Some(byte) = rest.get(length) else {
                // The forms that still match are longer than the rest of the text.
                let cut = forms.first().filter(|_| may_be_cut);
                return cut.map(|form| (text.len(), form.mask.as_str())).or(longest);
            };
            let next = |form: &Form| form.text.as_bytes().get(length).copied();
            let from = forms.partition_point(|form| next(form) < Some(*byte));
            forms = &forms[from..];
            forms = &forms[..forms.partition_point(|form| next(form) == Some(*byte))];
            length += 1;
        }
        longest
    }

    /// Returns the text that replaces this whole text, if it is a value.
    fn mask_of(&self, text: &str) -> Option<&str> {
        let forms = self.forms.get(text.as_bytes().first_chunk::<4>()?)?;
        let place = forms.binary_search_by(|form| form.text.as_str().cmp(text));
        Some(forms.get(place.ok()?)?.mask.as_str())
    }
}

/// Returns all forms of a value. There are none if the value is too short.
fn forms_of(value: &str) -> BTreeSet<String> {
    let plain = plain(value);
    let mut forms = BTreeSet::new();
    if plain.chars().count() < SHORTEST {
        return forms;
    }
    for text in [value, value.trim(), &*plain] {
        forms.insert(text.to_owned());
        // The host writes errors on one line.
        forms.insert(one_line(text).into_owned());
        forms.extend(quoted(text));
        forms.extend(in_url(text));
        forms.extend(encoded(text.as_bytes()));
    }
    forms
}

/// The text as part of a JSON string, as serde, Python and Go write it, and the same as part of a
/// JSON text that is itself in a string.
fn quoted(text: &str) -> Vec<String> {
    let once = escaped(text);
    let mut ascii = String::new();
    for unit in once.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => ascii.push(byte.into()),
            _ => ascii += &format!("\\u{unit:04x}"),
        }
    }
    let html = once.replace('<', "\\u003c").replace('>', "\\u003e");
    let html = html.replace('&', "\\u0026");
    let mut forms = vec![once, ascii, html];
    let twice: Vec<String> = forms.iter().map(|form| escaped(form)).collect();
    forms.extend(twice);
    forms
}

/// The text as part of a URL, where a space may also be a `+`.
fn in_url(text: &str) -> [String; 2] {
    let escaped = utf8_percent_encode(text, ESCAPED).to_string();
    let of_form = escaped.replace("%20", "+");
    [escaped, of_form]
}

fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The text in base64, with both alphabets, and as the part of a longer text that is encoded.
fn encoded(text: &[u8]) -> Vec<String> {
    let mut forms = vec![STANDARD.encode(text), STANDARD_NO_PAD.encode(text)];
    // Three bytes are four characters, so that the text looks different at each of three offsets.
    for offset in 0..3 {
        let shifted = [&[0u8; 2][..offset], text].concat();
        let encoded = STANDARD_NO_PAD.encode(&shifted);
        // The characters at both ends also depend on the neighbours.
        let (first, end) = ((offset * 8).div_ceil(6), shifted.len() * 8 / 6);
        forms.extend(encoded.get(first..end).map(str::to_owned));
    }
    forms.retain(|form| form.len() >= INSIDE);
    let others: Vec<String> = forms
        .iter()
        .map(|form| form.replace('+', "-").replace('/', "_"))
        .collect();
    forms.extend(others);
    forms
}

#[cfg(test)]
mod tests;
