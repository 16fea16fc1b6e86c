//! Certificates that someone else puts into a folder, as cert-manager's Secret is mounted.
//!
//! This module owns the names of the files and when they are read. It must not know what writes
//! them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::shown::{Shown, provider};
use crate::error::Error;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";

/// The server that shows the certificates of `--webhook-cert-dir`, in logs and errors.
pub(crate) const WEBHOOKS: &str = "webhooks";
/// The server that shows those of `--metrics-cert-dir`.
pub(crate) const METRICS: &str = "metrics";
/// The server that shows those of `--admin-cert-dir`.
pub(crate) const ADMIN: &str = "admin address";

/// A folder, and what was read there last.
pub(crate) struct Folder {
    path: PathBuf,
    /// Which server shows its certificates.
    server: &'static str,
    seen: Option<Files>,
}

#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    /// What clients must trust, PEM; `None`: the program that fills the folder tells them.
    authority: Option<Vec<u8>>,
}

impl Folder {
    pub fn new(path: PathBuf, server: &'static str) -> Folder {
        Folder {
            path,
            server,
            seen: None,
        }
    }

    /// Returns the certificates that clients must trust, if the folder has them.
    pub fn bundle(&self) -> Option<String> {
        let authority = self.seen.as_ref()?.authority.as_deref()?;
        Some(String::from_utf8_lossy(authority).into_owned())
    }

    /// Reads the folder, and shows its certificate if it is another one. Files that do not fit
    /// together, as in the middle of an update, change nothing.
    pub async fn look(&mut self, shown: &Shown) -> Result<(), Error> {
        let files = Files {
            certificate: self.read(CERTIFICATE).await?,
            key: self.read(KEY).await?,
            authority: match self.read(AUTHORITY).await {
                Ok(authority) => Some(authority),
                Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            },
        };
        if self.seen.as_ref() == Some(&files) {
            return Ok(());
        }
        let certified = files.certified(&self.path, self.server)?;
        shown.show(Arc::new(certified));
        let folder = self.path.display();
        tracing::info!(%folder, "{}: a new certificate is shown", self.server);
        self.seen = Some(files);
        Ok(())
    }

    async fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.path.join(name);
        let read = tokio::fs::read(&path).await;
        read.map_err(|source| Error::File {
            flag: flag(self.server),
            path,
            source,
        })
    }
}

impl Files {
    fn certified(&self, folder: &Path, server: &str) -> Result<CertifiedKey, Error> {
        let wrong = |name: &str, detail: String| Error::Content {
            flag: flag(server),
            path: folder.join(name),
            detail,
        };
        let chain =
            CertificateDer::pem_slice_iter(&self.certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| wrong(CERTIFICATE, error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong(
                CERTIFICATE,
                "there is no certificate in PEM".to_owned(),
            ));
        }
        // The error of the parser quotes what it read.
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| wrong(KEY, "there is no private key in PEM".to_owned()))?;
        if let Some(authority) = &self.authority {
            let all = CertificateDer::pem_slice_iter(authority).collect::<Result<Vec<_>, _>>();
            let all = all.map_err(|error| wrong(AUTHORITY, error.to_string()))?;
            if all.is_empty() {
                return Err(wrong(
                    AUTHORITY,
                    "there is no certificate in PEM".to_owned(),
                ));
            }
        }
        CertifiedKey::from_der(chain, key, &provider())
            .map_err(|error| wrong(CERTIFICATE, error.to_string()))
    }
}

/// The flag that names the folder of a server.
fn flag(server: &str) -> &'static str {
    match server {
        METRICS => "--metrics-cert-dir",
        ADMIN => "--admin-cert-dir",
        _ => "--webhook-cert-dir",
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// The certificate and key of a server, PEM.
    fn pair(name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[tokio::test]
    async fn files_are_read_again_when_they_change() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let mut watched = Folder::new(folder.path().to_owned(), WEBHOOKS);
        let shown = Shown::default();
        let error = watched.look(&shown).await.unwrap_err().to_string();
        assert!(error.contains("tls.crt"), "{error}");
        assert!(!shown.is_ready());

        let (first, first_key) = pair("a.test");
        write(CERTIFICATE, &first);
        write(KEY, &first_key);
        watched.look(&shown).await.unwrap();
        let before = shown.now().unwrap();
        assert_eq!(watched.bundle(), None);
        watched.look(&shown).await.unwrap();
        assert!(Arc::ptr_eq(&before, &shown.now().unwrap()), "nothing new");

        // The middle of an update: the certificate is new, the key is not.
        let (second, second_key) = pair("b.test");
        write(CERTIFICATE, &second);
        assert!(watched.look(&shown).await.is_err());
        assert!(Arc::ptr_eq(&before, &shown.now().unwrap()));

        write(KEY, &second_key);
        write(AUTHORITY, &second);
        watched.look(&shown).await.unwrap();
        let after = shown.now().unwrap();
        assert_ne!(before.cert, after.cert);
        assert_eq!(watched.bundle(), Some(second));

        write(AUTHORITY, "nothing");
        let error = watched.look(&shown).await.unwrap_err().to_string();
        assert!(error.contains("ca.crt"), "{error}");
        write(CERTIFICATE, "nothing");
        let error = watched.look(&shown).await.unwrap_err().to_string();
        assert!(
            error.contains("tls.crt") && error.contains("no certificate in PEM"),
            "{error}"
        );
        assert!(Arc::ptr_eq(&after, &shown.now().unwrap()));
    }

    #[tokio::test]
    async fn a_key_is_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, _) = pair("a.test");
        std::fs::write(folder.path().join(CERTIFICATE), certificate).unwrap();
        std::fs::write(folder.path().join(KEY), "-----BEGIN hidden").unwrap();
        let error = Folder::new(folder.path().to_owned(), WEBHOOKS)
            .look(&Shown::default())
            .await;
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("tls.key") && !text.contains("hidden"),
            "{text}"
        );
    }
}
