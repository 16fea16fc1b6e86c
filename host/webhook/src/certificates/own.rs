//! The authority that vmhost makes itself: kept in a Secret, made by whichever host is first.
//!
//! This module owns the Secret and the leaf of this host. It must not know the objects that
//! register webhooks; its caller says what they trust.

use std::collections::BTreeMap;

use jiff::Timestamp;
use vmhost_cluster::{OneSecret, SecretContent};

use super::authority::Leaf;
use super::rotation::{Kept, LOOK};
use super::shown::Shown;
use crate::error::Error;

/// The authority in a Secret, as this host knows it.
pub(crate) struct Own {
    secret: OneSecret,
    /// The names of the server.
    names: Vec<String>,
    known: Option<Known>,
    leaf: Option<Leaf>,
}

struct Known {
    kept: Kept,
    read_at: Timestamp,
}

impl Own {
    pub fn new(secret: OneSecret, names: Vec<String>) -> Own {
        Own {
            secret,
            names,
            known: None,
            leaf: None,
        }
    }

    /// Returns the certificates that clients must trust, as of the last look.
    pub fn bundle(&self) -> Option<String> {
        self.known.as_ref().map(|known| known.kept.bundle())
    }

    /// Reads the Secret if it is time to, takes the next step of a rotation, and shows a leaf of
    /// the authority that signs now.
    ///
    /// `everywhere` returns whether all objects that register webhooks hold a bundle. They must
    /// have been read before this call. A host patches them by what it found in the Secret
    /// afterwards, so that it never takes out an authority that is already announced.
    pub async fn look(
        &mut self,
        everywhere: &(dyn Fn(&str) -> bool + Sync),
        shown: &Shown,
        now: Timestamp,
    ) -> Result<(), Error> {
        // A Secret that cannot be read is no reason to let the leaf end.
        self.show(shown, now)?;
        let is_due = match &self.known {
            None => true,
            Some(known) => {
                now.duration_since(known.read_at) >= LOOK
                    || known.kept.next.is_some()
                    || !everywhere(&known.kept.bundle())
            }
        };
        if is_due {
            let (mut kept, content) = self.read(now).await?;
            if let Some(turned) = kept.turned(everywhere(&kept.bundle()), now)? {
                let data = self.values(&turned)?;
                match self.secret.replace(&content, &data).await {
                    Ok(_) => kept = turned,
                    // Another host was faster. The next look shows what it did.
                    Err(error) if error.code() == Some(409) => {}
                    Err(source) => return Err(self.failed("replace", source)),
                }
            }
            let read_at = now;
            self.known = Some(Known { kept, read_at });
            self.show(shown, now)?;
        }
        Ok(())
    }

    fn show(&mut self, shown: &Shown, now: Timestamp) -> Result<(), Error> {
        let Some(Known { kept, .. }) = &self.known else {
            return Ok(());
        };
        let is_good = |leaf: &Leaf| leaf.is_good(&kept.current, now);
        if !self.leaf.as_ref().is_some_and(is_good) {
            let leaf = kept.current.leaf(&self.names, now)?;
            shown.show(leaf.key.clone());
            tracing::info!(
                secret = self.secret.describe(),
                not_after = %leaf.not_after,
                "webhooks: a new certificate is shown"
            );
            self.leaf = Some(leaf);
        }
        Ok(())
    }

    /// Reads the Secret, or creates it. One that was deleted comes back as this host knows it, so
    /// that what other hosts show stays trusted.
    async fn read(&self, now: Timestamp) -> Result<(Kept, SecretContent), Error> {
        let read = |content: &SecretContent| {
            Kept::read(&content.data).map_err(|detail| self.damaged(detail))
        };
        let got = self.secret.get().await;
        let found = match got.map_err(|source| self.failed("read", source))? {
            Some(content) => match read(&content)? {
                Some(kept) => return Ok((kept, content)),
                None => Some(content),
            },
            None => None,
        };
        let made = match &self.known {
            Some(known) => known.kept.clone(),
            None => Kept::make(now)?,
        };
        let data = self.values(&made)?;
        // An empty Secret may have been made for a host that may not create any.
        let written = match &found {
            Some(content) => self.secret.replace(content, &data).await,
            None => self.secret.create(&data).await,
        };
        match written {
            Ok(content) => Ok((made, content)),
            Err(error) if error.code() == Some(409) => {
                let got = self.secret.get().await;
                let content = got.map_err(|source| self.failed("read", source))?;
                let content = content.ok_or_else(|| self.damaged("it comes and goes".into()))?;
                match read(&content)? {
                    Some(kept) => Ok((kept, content)),
                    None => Err(self.damaged("it holds no certificate authority".into())),
                }
            }
            Err(source) => Err(self.failed("create", source)),
        }
    }

    fn values(&self, kept: &Kept) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        kept.data().map_err(|detail| self.damaged(detail))
    }

    fn failed(&self, verb: &'static str, source: vmhost_cluster::Error) -> Error {
        Error::Secret {
            verb,
            secret: self.secret.describe(),
            source: Box::new(source),
        }
    }

    fn damaged(&self, detail: String) -> Error {
        Error::Damaged {
            secret: self.secret.describe(),
            detail,
        }
    }
}
