//! SHA-256 digests as registries write them. This module must not know what the bytes are.

use sha2::{Digest, Sha256};

/// The algorithm of all digests here.
const ALGORITHM: &str = "sha256:";

/// Returns the digest of bytes: `sha256:` and 64 hexadecimal digits.
pub(crate) fn of(bytes: &[u8]) -> String {
    format!("{ALGORITHM}{}", hex::encode(Sha256::digest(bytes)))
}

/// Returns the hexadecimal digits of a well-formed digest.
pub(crate) fn hex_of(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix(ALGORITHM)?;
    let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    (hex.len() == 64 && hex.bytes().all(is_hex)).then_some(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_an_algorithm_and_64_digits() {
        let digest = of(b"{}");
        assert_eq!(
            digest,
            "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
        assert_eq!(hex_of(&digest).map(str::len), Some(64));
        let upper = digest.to_uppercase();
        for wrong in ["", "sha256:", "sha256:44136f", "sha512:44136f", &upper] {
            assert_eq!(hex_of(wrong), None, "{wrong}");
        }
    }
}
