//! Identities: a certificate that was issued to somebody for minutes, what a log recorded of its
//! use, and which identities are admitted. This module must not know which identities are trusted.

use std::fmt;

use sigstore_verify::crypto::parse_certificate_info;
use sigstore_verify::types::{Bundle, Sha256Hash};
use sigstore_verify::{Error as SigstoreError, VerificationPolicy, Verifier};
use vmhost_core::fits;

use crate::error::Error;

/// An identity, and who vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) subject: String,
    pub(super) issuer: String,
}

impl Identity {
    /// Returns whether this identity, whose subject may have `*`, admits another.
    pub(super) fn admits(&self, other: &Self) -> bool {
        self.issuer == other.issuer && fits(&self.subject, &other.subject)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (subject, issuer) = (&self.subject, &self.issuer);
        let subject = vmhost_core::one_line(subject);
        write!(f, "{subject} (issuer {})", vmhost_core::one_line(issuer))
    }
}

/// Returns the identity that signed: its certificate is of the trusted root and was valid when the
/// log recorded the signature.
pub(super) fn verified(
    verifier: &Verifier,
    bundle: &Bundle,
    digest: &str,
    artifact: Sha256Hash,
) -> Result<Identity, Error> {
    let verified = verifier.verify(artifact, bundle, &VerificationPolicy::any_identity());
    let verified = verified.map_err(|error| refusal(bundle, digest, &error))?;
    let subject = verified
        .identity()
        .map(|subject| subject.as_str().to_owned());
    let issuer = verified.issuer().map(str::to_owned);
    match (subject, issuer) {
        (Some(subject), Some(issuer)) => Ok(Identity { subject, issuer }),
        _ => Err(Error::BadSignature {
            digest: digest.to_owned(),
            why: "its certificate names no identity or no issuer".to_owned(),
        }),
    }
}

fn refusal(bundle: &Bundle, digest: &str, error: &SigstoreError) -> Error {
    expired(bundle, digest, error).unwrap_or_else(|| Error::BadSignature {
        digest: digest.to_owned(),
        why: vmhost_core::one_line(&vmhost_core::chain(error)).into_owned(),
    })
}

/// Returns the error of a certificate that was used after its time. The log's record of that time
/// is verified before the certificate is.
fn expired(bundle: &Bundle, digest: &str, error: &SigstoreError) -> Option<Error> {
    if !matches!(error, SigstoreError::Certificate(_)) {
        return None;
    }
    let certificate = parse_certificate_info(bundle.signing_certificate()?).ok()?;
    let entries = bundle.verification_material.tlog_entries.iter();
    let at = entries.filter_map(|entry| entry.integrated_time).max()?;
    let until = certificate.not_after;
    let signer = Identity {
        subject: certificate.identity?.as_str().to_owned(),
        issuer: certificate.issuer.unwrap_or_default(),
    };
    (at > until).then(|| Error::ExpiredIdentity {
        digest: digest.to_owned(),
        signer: signer.to_string(),
        at: at.to_string(),
        until: until.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_issuer_counts_as_well() {
        let identity = |subject: &str, issuer: &str| Identity {
            subject: subject.to_owned(),
            issuer: issuer.to_owned(),
        };
        let trusted = identity("*@b.c", "https://i.example");
        assert!(trusted.admits(&identity("a@b.c", "https://i.example")));
        assert!(!trusted.admits(&identity("a@b.c", "https://i.example.evil")));
    }
}
