//! The certificate that clients are shown, replaced while connections are open.
//!
//! This module owns the TLS settings of the server. It must not know where a certificate comes
//! from.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The certificate of the moment. Without one, handshakes fail.
#[derive(Debug, Default)]
pub struct Shown(ArcSwapOption<CertifiedKey>);

impl Shown {
    /// Shows a certificate from now on. Open connections stay as they are.
    pub(crate) fn show(&self, certificate: Arc<CertifiedKey>) {
        self.0.store(Some(certificate));
    }

    /// Returns whether there is a certificate.
    pub fn is_ready(&self) -> bool {
        self.0.load().is_some()
    }

    /// The certificate of the moment.
    #[cfg(test)]
    pub(crate) fn now(&self) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

/// The cryptography of all of vmhost.
pub(crate) fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// Returns the TLS settings: TLS 1.2 and 1.3, HTTP/2 offered first.
pub(crate) fn server_config(shown: Arc<Shown>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(shown);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
