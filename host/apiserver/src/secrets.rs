//! The secrets of a cluster, which outlive its fronts: the certificate authority, the
//! administrator's token, and the key that signs tokens of service accounts.
//!
//! Owns when they are created, and the file that keeps them. Must not know what they are used for.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::access::token::Key;
use crate::error::Error;
use crate::tls::Authority;

/// The secrets in a file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    token: String,
    /// The authority's key, in PEM.
    authority: String,
    /// In base64.
    token_key: String,
}

/// The secrets of a cluster.
pub(crate) struct Secrets {
    token: String,
    authority: OnceLock<Authority>,
    key: OnceLock<Arc<Key>>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl Default for Secrets {
    fn default() -> Secrets {
        let half = || uuid::Uuid::new_v4().simple();
        Secrets {
            token: format!("{}{}", half(), half()),
            authority: OnceLock::new(),
            key: OnceLock::new(),
        }
    }
}

impl Secrets {
    /// Reads the secrets that a file keeps, or creates the file with new ones. Only this user may
    /// read it.
    pub fn open(path: &Path) -> Result<Secrets, Error> {
        let failed = |source| Error::State {
            path: path.to_owned(),
            source,
        };
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let made = Secrets::default();
                let kept = Kept {
                    token: made.token.clone(),
                    authority: made.authority()?.key_pem(),
                    token_key: STANDARD.encode(made.key()?.pkcs8()),
                };
                let text = serde_json::to_vec(&kept).map_err(|error| failed(error.into()))?;
                write_private(path, &text).map_err(failed)?;
                return Ok(made);
            }
            Err(error) => return Err(failed(error)),
        };
        let kept: Kept = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        let key = STANDARD.decode(&kept.token_key);
        let key = Key::read(&key.map_err(|_| Error::TokenKey)?)?;
        Ok(Secrets {
            token: kept.token,
            authority: OnceLock::from(Authority::kept(&kept.authority)?),
            key: OnceLock::from(Arc::new(key)),
        })
    }

    /// Returns the token that a front accepts if its options name none.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the certificate authority.
    pub fn authority(&self) -> Result<&Authority, Error> {
        match self.authority.get() {
            Some(authority) => Ok(authority),
            None => {
                let made = Authority::new()?;
                Ok(self.authority.get_or_init(|| made))
            }
        }
    }

    /// Returns the key that signs tokens of service accounts.
    pub fn key(&self) -> Result<Arc<Key>, Error> {
        match self.key.get() {
            Some(key) => Ok(key.clone()),
            None => {
                let made = Arc::new(Key::generate()?);
                Ok(self.key.get_or_init(|| made).clone())
            }
        }
    }
}

/// Writes a file as a whole.
fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}
