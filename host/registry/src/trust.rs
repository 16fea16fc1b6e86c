//! Whose signatures count, and whether an artifact has enough of them. Works offline, on what was
//! pulled. This module must not do I/O.

use std::sync::Arc;

use sigstore_verify::Verifier;
use sigstore_verify::crypto::{KeyAlgorithm, verify_signature};
use sigstore_verify::trust_root::TrustedRoot;
use sigstore_verify::types::{
    Bundle, DerPublicKey, DsseEnvelope, MediaType, Sha256Hash, VerificationMaterialContent,
};

use crate::crypto;
use crate::digest;
use crate::error::Error;
use crate::pull::Pulled;

mod identity;
mod statement;

use identity::Identity;

/// Whose signatures count.
#[derive(Clone, Default)]
pub struct Trust {
    keys: Vec<Key>,
    identities: Vec<Identity>,
    root: Option<Arc<Verifier>>,
    threshold: usize,
}

#[derive(Clone)]
struct Key {
    name: String,
    public: DerPublicKey,
}

/// A signer, told from all others: two keys may have one name.
#[derive(PartialEq, Eq)]
struct Found {
    /// Which of the trusted keys.
    key: Option<usize>,
    signer: Signer,
}

/// How a signer is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignerKind {
    /// By a key.
    Key,
    /// By an identity, to which a certificate was issued.
    Identity,
}

/// The signer of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// How the signer is known.
    pub kind: SignerKind,
    /// The key's name, or the identity.
    pub name: String,
    /// Who vouched for the identity.
    pub issuer: Option<String>,
}

impl Trust {
    /// Trusts no signature.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts a public key, given as PEM. The same key under two names is one signer. A key without
    /// a name is called by its digest.
    pub fn key(&mut self, name: &str, pem: &str) -> Result<(), Error> {
        let refuse = |why: String| Error::Key {
            name: match name.is_empty() {
                true => "without a name".to_owned(),
                false => name.to_owned(),
            },
            why,
        };
        let wrong = "it is no public key as PEM (BEGIN PUBLIC KEY)";
        let public = DerPublicKey::from_pem(pem).map_err(|_| refuse(wrong.to_owned()))?;
        let algorithm = KeyAlgorithm::from_spki(&public);
        let algorithm = algorithm.map_err(|error| refuse(error.to_string()))?;
        if !crypto::verifies(algorithm.default_signing_scheme()) {
            let why = "keys of its algorithm cannot be verified here: use ECDSA, Ed25519 or RSA";
            return Err(refuse(why.to_owned()));
        }
        if self.keys.iter().all(|key| key.public != public) {
            let name = match name.is_empty() {
                true => digest::of(public.as_bytes()),
                false => name.to_owned(),
            };
            self.keys.push(Key { name, public });
        }
        Ok(())
    }

    /// Trusts an identity for which this issuer vouches. A `*` in the identity stands for any text.
    pub fn identity(&mut self, subject: &str, issuer: &str) {
        let identity = Identity {
            subject: subject.to_owned(),
            issuer: issuer.to_owned(),
        };
        self.identities.push(identity);
    }

    /// Sets the trusted root, against which identities are verified: the text of a
    /// `trusted_root.json`.
    pub fn root(&mut self, json: &str) -> Result<(), Error> {
        crypto::install();
        let root = TrustedRoot::from_json(json).map_err(|error| Error::Root(error.to_string()))?;
        let verifier = Verifier::new(&root).map_err(|error| Error::Root(error.to_string()))?;
        self.root = Some(Arc::new(verifier));
        Ok(())
    }

    /// Sets how many different signers an artifact needs. The default is one.
    pub fn threshold(&mut self, signers: usize) {
        self.threshold = signers;
    }

    /// Returns whether no signature is trusted.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.identities.is_empty()
    }
}

/// Returns the trusted signers of an artifact, if they are enough. Compares the artifact with its
/// digest first.
pub fn verify(pulled: &Pulled, trust: &Trust) -> Result<Vec<Signer>, Error> {
    pulled.check()?;
    if trust.is_empty() {
        return Err(Error::NobodyTrusted);
    }
    crypto::install();
    let digest = &pulled.digest;
    let mut signers: Vec<Found> = Vec::new();
    let mut refused: Option<Error> = None;
    for bundle in &pulled.signatures {
        match signer(bundle, digest, trust) {
            Ok(None) => {}
            Ok(Some(signer)) if signers.contains(&signer) => {}
            Ok(Some(signer)) => signers.push(signer),
            Err(error)
                if refused
                    .as_ref()
                    .is_some_and(|old| weight(old) >= weight(&error)) => {}
            Err(error) => refused = Some(error),
        }
    }
    let wanted = trust.threshold.max(1);
    if signers.len() >= wanted {
        return Ok(signers.into_iter().map(|found| found.signer).collect());
    }
    let digest = digest.clone();
    if !signers.is_empty() {
        return Err(Error::TooFew {
            digest,
            found: signers.len(),
            wanted,
        });
    }
    Err(match (refused, pulled.signatures_unread.clone()) {
        (Some(error), _) => error,
        (None, _) if pulled.old_signature => Error::OldSignature { digest },
        (None, Some(why)) => Error::UnreadSignatures { digest, why },
        (None, None) => Error::Unsigned { digest },
    })
}

/// Of several refused signatures, the most telling is reported: anybody who may push can attach
/// broken ones.
fn weight(error: &Error) -> u8 {
    match error {
        Error::ExpiredIdentity { .. } => 4,
        Error::OtherSigner { .. } => 3,
        Error::NoRoot { .. } => 2,
        Error::OtherArtifact { .. } => 1,
        _ => 0,
    }
}

/// Returns the signer of a bundle, or `None` if the bundle holds another statement than a
/// signature.
fn signer(json: &[u8], digest: &str, trust: &Trust) -> Result<Option<Found>, Error> {
    let bad = |why: String| Error::BadSignature {
        digest: digest.to_owned(),
        why,
    };
    let bundle: Bundle = serde_json::from_slice(json)
        .map_err(|error| bad(format!("it is no sigstore bundle: {error}")))?;
    let Some((envelope, hash)) = statement::of(&bundle, digest)? else {
        return Ok(None);
    };
    match &bundle.verification_material.content {
        VerificationMaterialContent::PublicKey(key) => {
            by_key(trust, envelope, digest, &key.hint).map(Some)
        }
        // Before v0.3 a bundle may be without the proof that the log has its record.
        _ if bundle.media_type() != MediaType::Bundle0_3 => Err(bad(format!(
            "it is a bundle of an old version ({}): sign again with cosign 3",
            bundle.media_type()
        ))),
        _ => by_identity(trust, &bundle, digest, hash).map(Some),
    }
}

fn by_key(
    trust: &Trust,
    envelope: &DsseEnvelope,
    digest: &str,
    hint: &str,
) -> Result<Found, Error> {
    let message = envelope.pae();
    let signature = &envelope.signature.sig;
    let is_of = |key: &Key| {
        let algorithm = KeyAlgorithm::from_spki(&key.public);
        algorithm.is_ok_and(|algorithm| {
            let scheme = algorithm.default_signing_scheme();
            verify_signature(&key.public, &message, signature, scheme).is_ok()
        })
    };
    let other = || Error::OtherSigner {
        digest: digest.to_owned(),
        signer: format!("key {:?}", vmhost_core::one_line(hint)),
    };
    let mut keys = trust.keys.iter().enumerate();
    let (index, key) = keys.find(|&(_, key)| is_of(key)).ok_or_else(other)?;
    Ok(Found {
        key: Some(index),
        signer: Signer {
            kind: SignerKind::Key,
            name: key.name.clone(),
            issuer: None,
        },
    })
}

fn by_identity(
    trust: &Trust,
    bundle: &Bundle,
    digest: &str,
    hash: Sha256Hash,
) -> Result<Found, Error> {
    let Some(verifier) = &trust.root else {
        return Err(match trust.identities.is_empty() {
            true => Error::OtherSigner {
                digest: digest.to_owned(),
                signer: "an identity".to_owned(),
            },
            false => Error::NoRoot {
                digest: digest.to_owned(),
            },
        });
    };
    let found = identity::verified(verifier, bundle, digest, hash)?;
    if !trust
        .identities
        .iter()
        .any(|trusted| trusted.admits(&found))
    {
        return Err(Error::OtherSigner {
            digest: digest.to_owned(),
            signer: found.to_string(),
        });
    }
    Ok(Found {
        key: None,
        signer: Signer {
            kind: SignerKind::Identity,
            name: found.subject,
            issuer: Some(found.issuer),
        },
    })
}
