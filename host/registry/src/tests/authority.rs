//! A sigstore of its own: an authority that issues certificates to identities, the log of
//! certificates, and the log of signatures. Everything that a client verifies is really made.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType,
    SerialNumber, SigningKey as _, date_time_ymd,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sigstore_verify::types::pae;

use crate::sign::{PAYLOAD_TYPE, PREDICATE};

/// When certificates are valid: on the first of January 2025.
pub(super) const DURING: i64 = 1_735_693_200;
/// An hour after they have expired.
pub(super) const AFTER: i64 = 1_735_779_600;

/// Where Fulcio writes who vouches for an identity.
const ISSUER_OID: [u64; 9] = [1, 3, 6, 1, 4, 1, 57264, 1, 8];
/// Where it writes what the log of certificates answered.
const SCT_OID: [u64; 10] = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];

/// The name of the log of signatures.
const LOG: &str = "log.example";

pub(super) struct Authority {
    ca: KeyPair,
    params: CertificateParams,
    certificates: KeyPair,
    signatures: KeyPair,
}

/// A signature to be made.
pub(super) struct Signing<'a> {
    pub(super) email: &'a str,
    pub(super) issuer: &'a str,
    /// The digest of the artifact.
    pub(super) digest: &'a str,
    /// What the statement says about the artifact.
    pub(super) predicate: &'a str,
    /// When the log records it.
    pub(super) at: i64,
}

impl<'a> Signing<'a> {
    pub(super) fn of(digest: &'a str) -> Self {
        Self {
            email: "ann@team.example",
            issuer: "https://login.example",
            digest,
            predicate: PREDICATE,
            at: DURING,
        }
    }
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = || KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self {
            ca: key(),
            params,
            certificates: key(),
            signatures: key(),
        }
    }

    /// The trusted root, as a client reads it from its file.
    pub(super) fn root(&self) -> String {
        let certificate = self.params.self_signed(&self.ca).unwrap();
        let window = json!({ "start": "2020-01-01T00:00:00Z" });
        let log = |key: &KeyPair| {
            json!({
                "baseUrl": "https://log.example", "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": STANDARD.encode(key.subject_public_key_info()),
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": window
                },
                "logId": { "keyId": STANDARD.encode(id(key)) }
            })
        };
        let root = json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(&self.signatures)],
            "ctlogs": [log(&self.certificates)],
            "certificateAuthorities": [{
                "subject": { "organization": "example", "commonName": "an authority" },
                "uri": "https://ca.example",
                "certChain": { "certificates": [{ "rawBytes": STANDARD.encode(certificate.der()) }] },
                "validFor": window
            }],
            "timestampAuthorities": []
        });
        root.to_string()
    }

    /// Signs as an identity. Returns the bundle.
    pub(super) fn sign(&self, what: &Signing<'_>) -> Bytes {
        let key = KeyPair::generate().unwrap();
        let (der, pem) = self.certificate(&key, what);
        let hex = what.digest.strip_prefix("sha256:").unwrap();
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{ "name": "", "digest": { "sha256": hex } }],
            "predicateType": what.predicate, "predicate": {}
        });
        let payload = statement.to_string().into_bytes();
        let signature = key.sign(&pae(PAYLOAD_TYPE, &payload)).unwrap();
        let body = json!({
            "apiVersion": "0.0.1", "kind": "dsse",
            "spec": {
                "envelopeHash": { "algorithm": "sha256", "value": hex },
                "payloadHash": { "algorithm": "sha256", "value": hex::encode(hash(&payload)) },
                "signatures": [{
                    "signature": STANDARD.encode(&signature), "verifier": STANDARD.encode(pem)
                }]
            }
        });
        let bundle = json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": { "rawBytes": STANDARD.encode(der) },
                "tlogEntries": [self.recorded(body.to_string().as_bytes(), what.at)],
                "timestampVerificationData": {}
            },
            "dsseEnvelope": {
                "payloadType": PAYLOAD_TYPE, "payload": STANDARD.encode(&payload),
                "signatures": [{ "sig": STANDARD.encode(&signature) }]
            }
        });
        Bytes::from(bundle.to_string())
    }

    /// Issues a certificate, as DER and PEM.
    fn certificate(&self, key: &KeyPair, what: &Signing<'_>) -> (Vec<u8>, String) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.not_before = date_time_ymd(2025, 1, 1);
        params.not_after = date_time_ymd(2025, 1, 2);
        params.serial_number = Some(SerialNumber::from_slice(&[1, 2, 3]));
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = vec![SanType::Rfc822Name(what.email.try_into().unwrap())];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let issuer = der(0x0c, what.issuer.as_bytes());
        let issuer = CustomExtension::from_oid_content(&ISSUER_OID, issuer);
        params.custom_extensions = vec![issuer];
        let authority = Issuer::from_params(&self.params, &self.ca);
        let before = params.signed_by(key, &authority).unwrap();
        let answer = der(0x04, &self.timestamp(first_within(before.der())));
        let answer = CustomExtension::from_oid_content(&SCT_OID, answer);
        params.custom_extensions.push(answer);
        let certificate = params.signed_by(key, &authority).unwrap();
        (certificate.der().to_vec(), certificate.pem())
    }

    /// What the log of certificates answers about a certificate that is still without this answer:
    /// a list of one (RFC 6962).
    fn timestamp(&self, certificate: &[u8]) -> Vec<u8> {
        let at = (DURING as u64 * 1000).to_be_bytes();
        let length = (certificate.len() as u32).to_be_bytes();
        let signed = [
            [0_u8, 0].as_slice(),
            &at,
            &[0, 1],
            &hash(&self.ca.subject_public_key_info()),
            &length[1..],
            certificate,
            &[0, 0],
        ]
        .concat();
        let signature = self.certificates.sign(&signed).unwrap();
        let one = [
            [0_u8].as_slice(),
            &id(&self.certificates),
            &at,
            // No extensions; SHA-256 and ECDSA.
            &[0, 0, 4, 3],
            &sized(&signature),
        ]
        .concat();
        sized(&sized(&one))
    }

    /// What the log of signatures says of an entry, which is its only one.
    fn recorded(&self, body: &[u8], at: i64) -> Value {
        let (key, body64) = (&self.signatures, STANDARD.encode(body));
        let id = id(key);
        let id_hex = hex::encode(&id);
        let promise = format!(
            r#"{{"body":"{body64}","integratedTime":{at},"logID":"{id_hex}","logIndex":0}}"#
        );
        let promise = key.sign(promise.as_bytes()).unwrap();
        let root = STANDARD.encode(hash(&[[0_u8].as_slice(), body].concat()));
        let head = format!("{LOG}\n1\n{root}\n");
        let signed = [&id[..4], &key.sign(head.as_bytes()).unwrap()].concat();
        let checkpoint = format!("{head}\n\u{2014} {LOG} {}\n", STANDARD.encode(signed));
        json!({
            "logIndex": "0", "logId": { "keyId": STANDARD.encode(&id) },
            "kindVersion": { "kind": "dsse", "version": "0.0.1" },
            "integratedTime": at.to_string(),
            "inclusionPromise": { "signedEntryTimestamp": STANDARD.encode(promise) },
            "inclusionProof": {
                "logIndex": "0", "treeSize": "1", "rootHash": root, "hashes": [],
                "checkpoint": { "envelope": checkpoint }
            },
            "canonicalizedBody": body64
        })
    }
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// The ID of a log.
fn id(key: &KeyPair) -> Vec<u8> {
    hash(&key.subject_public_key_info())
}

/// Bytes behind their length in two bytes.
fn sized(bytes: &[u8]) -> Vec<u8> {
    [(bytes.len() as u16).to_be_bytes().as_slice(), bytes].concat()
}

/// One DER value.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let header = match length {
        0..=127 => vec![tag, length as u8],
        128..=255 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [header.as_slice(), content].concat()
}

/// The first value within a DER sequence: of a certificate, the part that is signed.
fn first_within(sequence: &[u8]) -> &[u8] {
    let inner = &sequence[header(sequence).0..];
    let (header, content) = header(inner);
    &inner[..header + content]
}

/// How long a DER value's header and its content are.
fn header(value: &[u8]) -> (usize, usize) {
    match value[1] {
        0x81 => (3, value[2] as usize),
        0x82 => (4, ((value[2] as usize) << 8) | value[3] as usize),
        short => (2, short as usize),
    }
}
