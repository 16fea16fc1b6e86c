//! TLS for another server of the host, such as that of its metrics, with a certificate out of a
//! folder, or one that the process makes for itself.
//!
//! This module owns the certificate. It must not know what is served, nor on which socket.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::interval;
use tokio_rustls::TlsAcceptor;
use vmhost_core::chain_line;

use crate::certificates::authority::{Authority, Leaf};
use crate::certificates::folder::{ADMIN, Folder, METRICS};
use crate::certificates::shown::{self, Shown};
use crate::error::Error;

/// Pause between two looks at the certificate.
const PERIOD: Duration = Duration::from_secs(10);

/// What a server over TLS needs besides its socket.
pub struct Https {
    /// Which server it is, in logs.
    server: &'static str,
    shown: Arc<Shown>,
    source: Source,
    /// What was wrong at the last look.
    told: Option<String>,
}

/// Where the certificate comes from.
enum Source {
    Folder(Folder),
    Own(Option<Box<Own>>),
}

/// A certificate of this process, in memory only: clients encrypt, but cannot know the server by
/// it.
struct Own {
    authority: Authority,
    leaf: Leaf,
}

impl Https {
    /// Shows the certificate `tls.crt` of a folder, with `tls.key`, and reads them again when they
    /// change: for metrics.
    pub async fn of_folder(path: PathBuf) -> Result<Https, Error> {
        Https::of(METRICS, Source::Folder(Folder::new(path, METRICS))).await
    }

    /// Like [`Https::of_folder`], for the admin address.
    pub async fn of_admin_folder(path: PathBuf) -> Result<Https, Error> {
        Https::of(ADMIN, Source::Folder(Folder::new(path, ADMIN))).await
    }

    /// Shows a certificate that this process makes, and makes again before it ends.
    pub async fn self_made() -> Result<Https, Error> {
        Https::of(METRICS, Source::Own(None)).await
    }

    async fn of(server: &'static str, source: Source) -> Result<Https, Error> {
        let mut https = Https {
            server,
            shown: Arc::default(),
            source,
            told: None,
        };
        https.look().await?;
        Ok(https)
    }

    /// Returns what makes handshakes with the certificate that is shown.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, Error> {
        let mut config = shown::server_config(self.shown.clone())?;
        // A scraper has no use for the streams of HTTP/2, which keep a server busier.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Looks at the certificate now and then, until it is dropped.
    pub(crate) async fn keep(mut self) {
        let mut looks = interval(PERIOD);
        loop {
            looks.tick().await;
            self.look_again().await;
        }
    }

    /// Returns the authority of a certificate that this process has made, PEM.
    #[cfg(test)]
    pub(crate) fn authority(&self) -> &str {
        match &self.source {
            Source::Own(Some(own)) => &own.authority.certificate,
            _ => panic!("it made no certificate"),
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        match &mut self.source {
            Source::Folder(folder) => folder.look(&self.shown).await,
            Source::Own(own) => {
                let now = Timestamp::now();
                let is_good = |own: &Own| own.leaf.is_good(&own.authority, now);
                if !own.as_deref().is_some_and(is_good) {
                    let made = Own::make(now)?;
                    self.shown.show(made.leaf.key.clone());
                    *own = Some(Box::new(made));
                }
                Ok(())
            }
        }
    }

    /// Looks again. A trouble is told once while it lasts, and the certificate before stays.
    async fn look_again(&mut self) {
        let trouble = self.look().await.err().map(|error| chain_line(&error));
        if let Some(trouble) = trouble.as_ref().filter(|_| self.told != trouble) {
            tracing::warn!("{}: {trouble}", self.server);
        }
        self.told = trouble;
    }
}

impl Own {
    fn make(now: Timestamp) -> Result<Own, Error> {
        let authority = Authority::make(now)?;
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let leaf = authority.leaf(&names, now)?;
        Ok(Own { authority, leaf })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_without_a_certificate_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let error = Https::of_folder(folder.path().to_owned()).await;
        let text = error.err().unwrap().to_string();
        assert!(
            text.contains("--metrics-cert-dir") && text.contains("tls.crt"),
            "{text}"
        );
        let error = Https::of_admin_folder(folder.path().to_owned()).await;
        let text = error.err().unwrap().to_string();
        assert!(text.contains("--admin-cert-dir"), "{text}");
    }
}
