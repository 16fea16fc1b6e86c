//! Certificates for tests: an authority, and the certificates that it signs.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// A certificate authority of one test.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, PEM.
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// Creates an authority. The names of a test's authorities must differ.
    pub fn new(name: &str) -> Result<Authority> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Authority(issuer))
    }

    /// Returns the authority's own certificate, PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for a Kubernetes user: its name, and the group with all rights.
    pub fn client(&self, user: &str, lifetime: Duration) -> Result<Pair> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params
            .distinguished_name
            .push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = (SystemTime::now() + lifetime).into();
        let key = KeyPair::generate()?;
        Ok(Pair {
            certificate: params.signed_by(&key, &self.0)?.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Issues a certificate for a server on loopback, and writes it to `tls.crt` and `tls.key` of a
    /// folder, as the Secret of a certificate is mounted.
    pub fn write_loopback(&self, folder: &Path) -> Result<()> {
        let params = CertificateParams::new(["127.0.0.1".to_owned()])?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?.pem();
        fs::write(folder.join("tls.crt"), certificate).context("writing tls.crt")?;
        fs::write(folder.join("tls.key"), key.serialize_pem()).context("writing tls.key")
    }

    /// Returns the TLS settings of a server on loopback. With `clients`, it only accepts clients
    /// with a certificate of that authority.
    pub fn server(&self, clients: Option<&Authority>) -> Result<Arc<ServerConfig>> {
        let params = CertificateParams::new(["127.0.0.1".to_owned()])?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = match clients {
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.0.der().clone())?;
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build()?;
                ServerConfig::builder().with_client_cert_verifier(verifier)
            }
            None => ServerConfig::builder().with_no_client_auth(),
        };
        let config = config
            .with_single_cert(vec![certificate.der().clone()], key)
            .context("making a TLS server")?;
        Ok(Arc::new(config))
    }
}

/// Returns the TLS settings of a client of HTTP/1.1 that trusts these certificates, PEM.
pub fn trusting(authorities: &[u8]) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        roots.add(certificate.context("reading the authority")?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
