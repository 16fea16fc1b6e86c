//! Which certificate authorities a server's certificate may be of: those of the machine, and those
//! that the operator adds (`--http-ca`). This module must not know which server is asked.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Certificates that the operator adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorities(Vec<CertificateDer<'static>>);

/// Why a file adds no certificates.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The text is not PEM.
    #[error("it is not PEM: {0}")]
    Pem(String),
    /// There is no certificate in it.
    #[error("it has no certificate (BEGIN CERTIFICATE)")]
    Empty,
    /// A certificate cannot be an authority.
    #[error("certificate {0} of it cannot be an authority: it is damaged")]
    Unfit(usize),
}

impl Authorities {
    /// Reads the certificates in the text of a PEM file.
    pub fn read(pem: &[u8]) -> Result<Self, AuthorityError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let found = read.map_err(|error| AuthorityError::Pem(error.to_string()))?;
        if found.is_empty() {
            return Err(AuthorityError::Empty);
        }
        for (index, certificate) in found.iter().enumerate() {
            let mut store = RootCertStore::empty();
            if store.add(certificate.clone()).is_err() {
                return Err(AuthorityError::Unfit(index + 1));
            }
        }
        Ok(Self(found))
    }

    /// Adds the certificates of another file.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Returns the settings of connections to servers. Reads the machine's authorities, which takes
/// milliseconds.
pub(crate) fn config(added: &Authorities) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!("some of this machine's certificate authorities cannot be read: {error}");
    }
    roots.add_parsable_certificates(native.certs);
    if roots.is_empty() && added.0.is_empty() {
        tracing::warn!(
            "this machine has no certificate authorities: plugins reach no https server; install them (ca-certificates), or add some with --http-ca"
        );
    }
    roots.add_parsable_certificates(added.0.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certificates_are_added() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["a.com".to_owned()]).unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let mut two = Authorities::read(pem.as_bytes()).unwrap();
        two.extend(Authorities::read(pem.as_bytes()).unwrap());
        assert_eq!(two.0.len(), 2);
        assert_eq!(Authorities::read(b""), Err(AuthorityError::Empty));
        let key = key.serialize_pem();
        assert_eq!(
            Authorities::read(key.as_bytes()),
            Err(AuthorityError::Empty)
        );
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let error = Authorities::read(damaged.as_bytes()).unwrap_err();
        assert_eq!(error, AuthorityError::Unfit(1));
    }
}
