//! The token that an order to a running host must carry. Every user who may read the host's token
//! file may change what the host runs.
//!
//! This module owns the form of the file and the comparison. It must not know what is ordered, nor
//! where the file is.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use uuid::Uuid;

use crate::private;

/// The shortest token that is accepted: 16 random characters are 64 bits and more.
const SHORTEST: usize = 16;

/// The longest token that is accepted.
const LONGEST: usize = 4096;

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file does not exist, or this process may not read it.
    #[error("the token file {path} cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The file holds something else.
    #[error(
        "the token file {0} must hold one line of {SHORTEST} to {LONGEST} visible ASCII characters"
    )]
    NotAToken(PathBuf),
}

/// The digest of a token. The token itself is not stored.
#[derive(Clone, Copy)]
pub struct Token([u8; 32]);

/// The file that a host wrote for the commands of its own user. Dropping this value removes the
/// file.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    token: Token,
}

/// The token of a request, compared with the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The request carries the host's token.
    Right,
    /// The request carries another token.
    Wrong,
    /// The request carries no token.
    None,
}

/// Reads the token in a file.
pub fn read(path: &Path) -> Result<String, TokenError> {
    let unreadable = |source| TokenError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let not_a_token = || TokenError::NotAToken(path.to_owned());
    let file = fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // One byte more than a token and its line break, so that a longer file is noticed.
    let most = LONGEST as u64 + 3;
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| not_a_token())?;
    let token = text.trim_end_matches(['\r', '\n']);
    let fits = (SHORTEST..=LONGEST).contains(&token.len());
    match fits && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token.to_owned()),
        false => Err(not_a_token()),
    }
}

/// Makes a new token that nobody can guess.
pub fn random() -> String {
    let halves = [Uuid::new_v4(), Uuid::new_v4()];
    halves.map(|half| half.simple().to_string()).concat()
}

impl Token {
    /// Stores the digest of this token.
    pub fn new(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Looks for the token in the headers of a request.
    pub(super) fn shown_in(&self, headers: &HeaderMap) -> Shown {
        let mut given = headers.get_all(AUTHORIZATION).iter().peekable();
        if given.peek().is_none() {
            return Shown::None;
        }
        let is_right = |text: &str| {
            let (scheme, token) = text.split_once(' ').unwrap_or_default();
            scheme.eq_ignore_ascii_case("bearer") && self.is(token.trim())
        };
        let right = given.all(|value| value.to_str().is_ok_and(is_right));
        match right {
            true => Shown::Right,
            false => Shown::Wrong,
        }
    }

    /// Returns whether this is the token. The time that this takes reveals nothing about the token:
    /// it always compares all bytes of two digests.
    fn is(&self, text: &str) -> bool {
        let other = Self::new(text);
        let pairs = self.0.iter().zip(&other.0);
        let differing = pairs.fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
        differing == 0
    }
}

/// Formats without any part of the token.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl TokenFile {
    /// Writes a file that only this user can read, into a folder that only this user can write to.
    /// A reader sees either the whole token or no file.
    pub fn write(path: &Path, token: &str) -> io::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("."));
        private::folder(folder)?;
        // Temporary files are created so that only this user can read them.
        let mut file = NamedTempFile::new_in(folder)?;
        writeln!(file, "{token}")?;
        file.persist(path)?;
        Ok(Self {
            path: path.to_owned(),
            token: Token::new(token),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // A host that started later on the same port may have replaced the file.
        if read(&self.path).is_ok_and(|text| self.token.is(&text)) {
            // If the file stays, it holds a token that no host accepts.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn shown(values: &[&str]) -> Shown {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        Token::new("0123456789abcdef").shown_in(&headers)
    }

    #[test]
    fn only_the_whole_token_is_right() {
        assert_eq!(shown(&["Bearer 0123456789abcdef"]), Shown::Right);
        assert_eq!(shown(&["bearer  0123456789abcdef"]), Shown::Right);
        assert_eq!(shown(&[]), Shown::None);
        for wrong in [
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789ABCDEF",
            "Bearer ",
            "Bearer",
            "",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
        ] {
            assert_eq!(shown(&[wrong]), Shown::Wrong, "{wrong:?}");
        }
        let both = ["Bearer 0123456789abcdef", "Bearer 0123456789abcdee"];
        assert_eq!(shown(&both), Shown::Wrong);
    }

    #[test]
    fn a_file_is_for_its_user_only_and_goes_with_its_host() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vmhost").join("8082.token");
        let (first, second) = (random(), random());
        assert_ne!(first, second);
        let file = TokenFile::write(&path, &first).unwrap();
        assert_eq!(read(&path).unwrap(), first);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
        // A second host replaces the file, and then the first one must not remove it.
        let other = TokenFile::write(&path, &second).unwrap();
        drop(file);
        assert_eq!(read(&path).unwrap(), second);
        drop(other);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_without_a_token_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        assert!(matches!(read(&path), Err(TokenError::Unreadable { .. })));
        let long = "x".repeat(LONGEST + 1);
        for bad in [
            "",
            "short",
            "0123456789 abcdef",
            "0123456789abcdef\nx",
            &long,
        ] {
            fs::write(&path, bad).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
        for good in [
            "0123456789abcdef",
            "0123456789abcdef\n",
            "0123456789abcdef\r\n",
        ] {
            fs::write(&path, good).unwrap();
            assert_eq!(read(&path).unwrap(), "0123456789abcdef");
        }
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef")), "Token");
    }
}
