//! The login that a registry or its token service gets. This module must not know where it comes
//! from.

use std::fmt;

/// What a registry, or its token service, is told.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) enum Login {
    /// Nothing.
    #[default]
    Anonymous,
    /// User and password.
    Basic { user: String, password: String },
    /// A token with which the token service gives another.
    Identity(String),
    /// The token that the registry wants.
    Token(String),
}

impl Login {
    /// How errors name the account of a request.
    pub(crate) fn account(&self) -> String {
        match self {
            Self::Anonymous => "a request without credentials (log in as with docker)".to_owned(),
            Self::Basic { user, .. } => format!("user {user}"),
            Self::Identity(_) | Self::Token(_) => "the token of docker's config.json".to_owned(),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The secret part stays out of logs.
        f.write_str(&self.account())
    }
}
