//! What a bundle's signature stands under: whether that is a signature of an artifact, and of
//! which. This module must not know who signed.

use sigstore_verify::types::{Bundle, DsseEnvelope, Sha256Hash, SignatureContent, Statement};

use crate::digest;
use crate::error::Error;
use crate::sign::{PAYLOAD_TYPE, PREDICATE};

/// Returns the signed envelope and the digest of the artifact, if the bundle is a signature of this
/// artifact. `None`: it is another statement about it, such as where it was built. That one counts
/// for nothing here, since it may say the worst of the artifact.
pub(super) fn of<'a>(
    bundle: &'a Bundle,
    digest: &str,
) -> Result<Option<(&'a DsseEnvelope, Sha256Hash)>, Error> {
    let bad = |why: &str| Error::BadSignature {
        digest: digest.to_owned(),
        why: why.to_owned(),
    };
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        return Err(bad(
            "it is one of a file (cosign sign-blob): use `cosign sign`",
        ));
    };
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(bad("it is not over an in-toto statement"));
    }
    let statement: Statement = serde_json::from_slice(envelope.payload.as_bytes())
        .map_err(|_| bad("its statement cannot be read"))?;
    if statement.predicate_type != PREDICATE {
        return Ok(None);
    }
    let hash = digest::hex_of(digest).and_then(|hex| Sha256Hash::from_hex(hex).ok());
    let hash = hash.ok_or_else(|| bad("the artifact has no sha256 digest"))?;
    if statement.matches_sha256(&hash) {
        return Ok(Some((envelope, hash)));
    }
    let signed = statement.subject.iter();
    let signed = signed.filter_map(|subject| subject.digest.sha256.as_ref());
    let signed: Vec<String> = signed
        .map(|hash| format!("sha256:{}", hash.to_hex()))
        .collect();
    Err(Error::OtherArtifact {
        digest: digest.to_owned(),
        signed: match signed.is_empty() {
            true => "with another kind of digest".to_owned(),
            false => signed.join(", "),
        },
    })
}
