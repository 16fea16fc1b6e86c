//! Certificates of clients.
//!
//! Owns the check of a client's certificate against an authority. As in a real server, a bad
//! certificate does not end the handshake: what it is worth is decided by the request. Must not
//! know which user a certificate names.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

use crate::error::Error;

/// Checks certificates of clients.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    strict: Arc<dyn ClientCertVerifier>,
}

impl Clients {
    /// Trusts what these authorities signed: certificates in PEM.
    pub fn of(authorities: &str) -> Result<Clients, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
            let certificate = certificate.map_err(|_| Error::ClientAuthority)?;
            roots.add(certificate)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let strict = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|_| Error::ClientAuthority)?;
        Ok(Clients { strict })
    }

    /// Returns the part of the handshake: it asks for a certificate and takes any whose key the
    /// client has.
    pub fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(Lenient(self.strict.clone()))
    }

    /// Returns whether an authority signed the certificate that a client showed, the first of
    /// these.
    pub fn trusts(&self, shown: &[CertificateDer<'_>]) -> bool {
        let Some((own, between)) = shown.split_first() else {
            return false;
        };
        let checked = self
            .strict
            .verify_client_cert(own, between, UnixTime::now());
        checked.is_ok()
    }
}

#[derive(Debug)]
struct Lenient(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Lenient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
