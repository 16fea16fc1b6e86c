//! A failure of a turn, with a text for people. It becomes `retry(text)`.

use std::fmt;

/// The error of a turn; `?` converts every error.
pub struct Error(String);

/// The result of a turn.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns an error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
