//! TLS to a host whose admin address speaks it. This module must not know what is asked.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A connection, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Whose certificates a command trusts.
pub(crate) struct Tls(TlsConnector);

impl Tls {
    /// Trusts the authorities in a PEM file, or else those of the machine.
    pub(super) fn new(authorities: Option<&Path>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        match authorities {
            None => {
                let native = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(native.certs);
            }
            Some(file) => {
                let named = || format!("--admin-ca {}", file.display());
                let pem = std::fs::read(file).with_context(named)?;
                for certificate in CertificateDer::pem_slice_iter(&pem) {
                    roots
                        .add(certificate.with_context(named)?)
                        .with_context(named)?;
                }
                if roots.is_empty() {
                    bail!("{}: there is no certificate", named());
                }
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Shakes hands with the host at this address.
    pub(super) async fn connect(
        &self,
        address: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned());
        let name = name.with_context(|| format!("{host:?} (--address) is no name of a server"))?;
        let connected = self.0.connect(name, stream).await;
        connected.with_context(|| {
            format!(
                "the server at {address} (--address) does not show a certificate that is trusted: --admin-ca names its authority"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_authorities_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        for text in [
            None,
            Some("nothing"),
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n"),
        ] {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            let error = Tls::new(Some(&file)).err().unwrap();
            assert!(format!("{error:#}").contains("ca.pem"), "{error:#}");
        }
    }
}
