//! Decides whether the certificate of a webhook is trusted.
//!
//! Follows Go's `x509.Certificate.Verify`: a certificate that is itself in the bundle is trusted,
//! whatever signed it and whether or not it is an authority. envtest puts the webhook's own
//! certificate there, and `openssl req -x509` makes certificates that are authorities. Must not
//! know what is sent to the webhook.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

#[derive(Debug)]
pub(super) struct Verifier {
    pub by_chain: Arc<WebPkiServerVerifier>,
    pub bundle: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let by_chain = self
            .by_chain
            .verify_server_cert(certificate, others, name, status, now);
        match by_chain {
            Err(Error::InvalidCertificate(why))
                if is_of_signer(&why) && self.bundle.contains(certificate) =>
            {
                // The times were checked before the signer.
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_chain
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_chain
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_chain.supported_verify_schemes()
    }
}

/// Returns whether the fault is only the signer, or that the certificate is an authority.
fn is_of_signer(why: &CertificateError) -> bool {
    match why {
        // The second: an authority of the bundle has the signer's name and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => true,
        // rustls has no case for it, and hides the type of the error.
        CertificateError::Other(other) => other.0.to_string() == "CaUsedAsEndEntity",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::RootCertStore;

    use super::*;

    fn verify(
        bundle: &[CertificateDer<'static>],
        shown: &CertificateDer<'static>,
        name: &'static str,
        now: Duration,
    ) -> Result<(), String> {
        let mut roots = RootCertStore::empty();
        for certificate in bundle {
            roots.add(certificate.clone()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let by_chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = Verifier {
            by_chain: by_chain.build().unwrap(),
            bundle: bundle.to_vec(),
        };
        let name = ServerName::try_from(name).unwrap();
        let now = UnixTime::since_unix_epoch(now);
        let verified = verifier.verify_server_cert(shown, &[], &name, &[], now);
        verified.map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_in_the_bundle_itself_is_trusted() {
        let now = UnixTime::now().as_secs();
        let now = Duration::from_secs(now);
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let leaf = || {
            let params = CertificateParams::new(["hook.test".to_owned()]).unwrap();
            let signed = params.signed_by(&KeyPair::generate().unwrap(), &authority);
            signed.unwrap().der().clone()
        };
        let (own, other) = (leaf(), leaf());
        let bundle = [own.clone()];
        assert_eq!(verify(&bundle, &own, "hook.test", now), Ok(()));
        let root = [authority.der().clone()];
        assert_eq!(verify(&root, &other, "hook.test", now), Ok(()));
        assert!(verify(&bundle, &other, "hook.test", now).is_err());
        assert!(verify(&bundle, &own, "else.test", now).is_err());
        let long_ago = Duration::from_secs(1);
        assert!(verify(&bundle, &own, "hook.test", long_ago).is_err());

        let mut both = CertificateParams::new(["hook.test".to_owned()]).unwrap();
        both.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let both = both.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let both = both.der().clone();
        let bundle = [both.clone()];
        assert_eq!(verify(&bundle, &both, "hook.test", now), Ok(()));
        assert!(verify(&bundle, &both, "else.test", now).is_err());
        assert!(verify(&root, &both, "hook.test", now).is_err());
    }
}
