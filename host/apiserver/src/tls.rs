//! Certificates of the development server.
//!
//! Owns its certificate authority, and the certificates of servers and clients that it signs. Must
//! not know sockets.

pub(crate) mod clients;

use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::Error;
use clients::Clients;

/// A certificate and its key.
pub(crate) struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads a certificate and its key from PEM.
    pub fn read(certificate: &str, key: &str) -> Result<Identity, Error> {
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>();
        Ok(Identity {
            chain: chain.map_err(|_| Error::ServingCertificate)?,
            key: PrivateKeyDer::from_pem_slice(key.as_bytes())
                .map_err(|_| Error::ServingCertificate)?,
        })
    }
}

/// A certificate authority that lives as long as the cluster.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    pub fn new() -> Result<Authority, Error> {
        Authority::of(KeyPair::generate()?)
    }

    /// Returns the authority with a key from [`Authority::key_pem`]. Clients that trust an earlier
    /// certificate of the same key trust it too.
    pub fn kept(key: &str) -> Result<Authority, Error> {
        Authority::of(KeyPair::from_pem(key)?)
    }

    fn of(key: KeyPair) -> Result<Authority, Error> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "vmhost-dev-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let issuer = CertifiedIssuer::self_signed(params, key)?;
        Ok(Authority { issuer })
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Returns a certificate for a front on loopback.
    pub fn server(&self) -> Result<Identity, Error> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let mut params = CertificateParams::new(names)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "vmhost-dev");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Identity {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(key),
        })
    }

    /// Returns the certificate of a user and its key, both in PEM. A name of `rcgen` holds one
    /// organization, so the user is in one group at most.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<(String, String), Error> {
        let mut params = CertificateParams::default();
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, user);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if let Some(group) = group {
            name.push(DnType::OrganizationName, group);
        }
        params.distinguished_name = name;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

/// Returns the TLS settings of a front, with HTTP/2 offered first.
pub(crate) fn server_config(identity: Identity, clients: &Clients) -> Result<ServerConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients.verifier())
        .with_single_cert(identity.chain, identity.key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
