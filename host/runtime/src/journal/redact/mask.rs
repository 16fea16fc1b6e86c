//! The text that replaces a sensitive value: a keyed hash. Equal values look equal, and a reader
//! without the key cannot find a value by trying.
//!
//! This module must not know where values come from.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The key of this process's hashes. It is not printed.
pub(super) struct Key([u8; 32]);

impl Key {
    /// A new random key.
    pub(super) fn random() -> Self {
        let mut key = [0u8; 32];
        for half in key.chunks_exact_mut(16) {
            half.copy_from_slice(Uuid::new_v4().as_bytes());
        }
        Self(key)
    }

    /// Returns the text that replaces a value: `<redacted 1f2e3d4c>`. A value and its base64 get
    /// the same text, because a Secret holds the base64 and a plugin may pass on the value.
    pub(super) fn mask(&self, value: &str) -> String {
        let hasher = Sha256::new().chain_update(self.0);
        let hash: [u8; 32] = hasher
            .chain_update(plain(value).as_bytes())
            .finalize()
            .into();
        format!("<redacted {}>", hex::encode(&hash[..4]))
    }

    /// Returns the digest of all settings of a plugin, in hex.
    pub(super) fn settings(&self, settings: &HashMap<String, String>) -> String {
        let mut sorted: Vec<_> = settings.iter().collect();
        sorted.sort();
        let mut hasher = Sha256::new().chain_update(self.0);
        for text in sorted.into_iter().flat_map(|(name, value)| [name, value]) {
            // With the length, no other settings have the same bytes.
            hasher.update((text.len() as u64).to_be_bytes());
            hasher.update(text);
        }
        let hash: [u8; 32] = hasher.finalize().into();
        hex::encode(&hash[..16])
    }
}

/// Returns the value without surrounding white space, and decoded if it is the base64 of a text.
pub(super) fn plain(value: &str) -> Cow<'_, str> {
    let value = value.trim();
    let decoded = STANDARD.decode(value).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    match text.as_deref().map(str::trim) {
        Some(text) if is_text(text) => text.to_owned().into(),
        _ => value.into(),
    }
}

fn is_text(text: &str) -> bool {
    let is_odd = |c: char| c.is_control() && !c.is_whitespace();
    !text.is_empty() && !text.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_look_equal_also_in_base64() {
        let key = Key::random();
        let mask = key.mask("hunter2");
        assert_eq!(mask, key.mask("aHVudGVyMg=="));
        assert_eq!(mask, key.mask("hunter2\n"));
        assert_eq!(mask, key.mask(&STANDARD.encode("hunter2\n")));
        assert_ne!(mask, key.mask("hunter3"));
        assert_ne!(mask, Key::random().mask("hunter2"));
        assert_eq!(mask.len(), "<redacted 1f2e3d4c>".len());
    }

    #[test]
    fn settings_have_one_digest_which_depends_on_the_key() {
        let key = Key::random();
        let of = |key: &Key, settings: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            key.settings(&settings.iter().map(own).collect())
        };
        let digest = of(&key, &[("token", "hunter2"), ("zone", "a")]);
        assert_eq!(digest, of(&key, &[("zone", "a"), ("token", "hunter2")]));
        assert_ne!(digest, of(&key, &[("zone", "a"), ("token", "hunter3")]));
        assert_ne!(of(&key, &[("ab", "c")]), of(&key, &[("a", "bc")]));
        let settings = [("token", "hunter2")];
        assert_ne!(of(&key, &settings), of(&Key::random(), &settings));
    }

    #[test]
    fn what_is_no_base64_of_a_text_is_left_as_it_is() {
        for value in ["", "a", "abcd", "gICA", "AAAA", "a b c d "] {
            assert_eq!(plain(value), value.trim());
        }
    }
}
