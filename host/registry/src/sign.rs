//! Signs artifacts with a private key: a bundle that cosign and `vmhost verify` understand. Keyless
//! signing is cosign's. This module must not do I/O.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest as _, Sha256};
use sigstore_verify::types::{
    Bundle, DerPublicKey, Digest, DsseEnvelope, DsseSignature, KeyId, MediaType, PayloadBytes,
    PublicKeyIdentifier, Sha256Hash, SignatureBytes, SignatureContent, Statement, Subject,
    VerificationMaterial, VerificationMaterialContent, pae,
};

use crate::digest;
use crate::error::Error;

/// What a signature says of an artifact, as cosign names it: whoever signs stands for it. Other
/// statements about an artifact, such as where it was built, are no signatures.
pub(crate) const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

/// The type of the statement that is signed.
pub(crate) const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The bytes before a raw public key that make it a SubjectPublicKeyInfo.
static P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
static P384_PREFIX: [u8; 23] = [
    0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b,
    0x81, 0x04, 0x00, 0x22, 0x03, 0x62, 0x00,
];
static ED25519_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A private key that signs artifacts.
pub struct SigningKey {
    pair: Pair,
    /// The public key, as a SubjectPublicKeyInfo.
    public: DerPublicKey,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads a private key of ECDSA P-256, P-384 or Ed25519 from PEM (PKCS#8, not encrypted).
    /// `name` is how errors call it.
    pub fn from_pem(name: &str, pem: &[u8]) -> Result<Self, Error> {
        let refuse = |why: &str| Error::Key {
            name: name.to_owned(),
            why: why.to_owned(),
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| refuse(advice(pem)))?;
        let der = der.secret_pkcs8_der();
        let random = SystemRandom::new();
        for (algorithm, prefix) in [
            (&ECDSA_P256_SHA256_ASN1_SIGNING, P256_PREFIX.as_slice()),
            (&ECDSA_P384_SHA384_ASN1_SIGNING, P384_PREFIX.as_slice()),
        ] {
            if let Ok(pair) = EcdsaKeyPair::from_pkcs8(algorithm, der, &random) {
                let public = DerPublicKey::new([prefix, pair.public_key().as_ref()].concat());
                let pair = Pair::Ecdsa(pair);
                return Ok(Self { pair, public });
            }
        }
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der)
            .map_err(|_| refuse("it is no key of ECDSA P-256, P-384 or Ed25519"))?;
        let raw = pair.public_key().as_ref();
        let public = DerPublicKey::new([ED25519_PREFIX.as_slice(), raw].concat());
        let pair = Pair::Ed25519(pair);
        Ok(Self { pair, public })
    }

    /// The public key as PEM, which verification needs.
    pub fn public_pem(&self) -> String {
        self.public.to_pem()
    }

    /// Signs the artifact whose manifest has this digest. Returns the bundle, as JSON.
    pub fn sign(&self, digest: &str) -> Result<Bytes, Error> {
        let failed = |why: &str| Error::BadSignature {
            digest: digest.to_owned(),
            why: why.to_owned(),
        };
        let hash = digest::hex_of(digest).and_then(|hex| Sha256Hash::from_hex(hex).ok());
        let hash = hash.ok_or_else(|| failed("the digest is not sha256"))?;
        let subject = Subject::new("", Digest::sha256(hash));
        let nothing = serde_json::Value::Object(serde_json::Map::new());
        let statement = Statement::new(vec![subject], PREDICATE, nothing);
        let payload = serde_json::to_vec(&statement).map_err(|_| failed("it cannot be written"))?;
        let signature = self.raw(&pae(PAYLOAD_TYPE, &payload));
        let signature = signature.ok_or_else(|| failed("no randomness"))?;
        let envelope = DsseEnvelope::new(
            PAYLOAD_TYPE,
            PayloadBytes::new(payload),
            DsseSignature::new(SignatureBytes::new(signature), KeyId::default()),
        );
        let hint = STANDARD.encode(Sha256::digest(self.public.as_bytes()));
        let key = VerificationMaterialContent::PublicKey(PublicKeyIdentifier::new(hint));
        let bundle = Bundle::new(
            MediaType::Bundle0_3,
            VerificationMaterial::new(key),
            SignatureContent::DsseEnvelope(envelope),
        );
        let json = bundle.to_json();
        Ok(Bytes::from(
            json.map_err(|_| failed("it cannot be written"))?,
        ))
    }

    fn raw(&self, message: &[u8]) -> Option<Vec<u8>> {
        let signature = match &self.pair {
            Pair::Ecdsa(pair) => pair.sign(&SystemRandom::new(), message).ok()?,
            Pair::Ed25519(pair) => pair.sign(message),
        };
        Some(signature.as_ref().to_vec())
    }
}

/// What to do about a file without a usable key.
fn advice(pem: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(pem);
    if text.contains("SIGSTORE PRIVATE KEY") || text.contains("COSIGN PRIVATE KEY") {
        "it is encrypted by cosign: sign with cosign"
    } else if text.contains("ENCRYPTED") {
        "it is encrypted: decrypt it (openssl pkcs8 -topk8 -nocrypt)"
    } else if text.contains("BEGIN EC PRIVATE KEY") {
        "it is not PKCS#8: convert it (openssl pkcs8 -topk8 -nocrypt)"
    } else if text.contains("BEGIN PUBLIC KEY") {
        "it is a public key: to sign takes the private one"
    } else {
        "it has no private key as PEM (BEGIN PRIVATE KEY)"
    }
}
