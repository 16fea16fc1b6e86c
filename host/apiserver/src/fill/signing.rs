//! The contents of requests for certificates.
//!
//! Follows k8s.io/kubernetes `pkg/apis/certificates/validation`. What is no PKCS#10 request is told
//! in fewer words than Go's; a signature by an algorithm that the library for signatures lacks
//! passes. Must not know which users may sign a request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::Value;

use crate::access::certificate::element;
use crate::meta::check::{LABEL_RULE, SUBDOMAIN_RULE, is_label, is_subdomain};
use crate::status::{Cause, INVALID, NOT_SUPPORTED, REQUIRED, cause};

/// What a certificate may be for, sorted.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The signer of requests from before signers had names.
const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// The identifiers of the curves of elliptic keys, in DER.
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];

/// Those of algorithms of signatures, without their last number, which names the digest.
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65];

/// Returns what is wrong with a new request.
pub(super) fn faults(request: &Value) -> Vec<Cause> {
    let spec = &request["spec"];
    let mut causes = Vec::new();
    let given = &spec["request"];
    if let Err(why) = check(given.as_str().unwrap_or_default()) {
        causes.push(invalid("request", given, why));
    }
    usages(spec, &mut causes);
    match spec["signerName"].as_str().unwrap_or_default() {
        LEGACY => {
            let why = "the legacy signerName is not allowed via this API version";
            causes.push(invalid("signerName", &LEGACY.into(), why));
        }
        name => signer(name, &mut causes),
    }
    let seconds = &spec["expirationSeconds"];
    if seconds.as_i64().is_some_and(|seconds| seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.push(invalid("expirationSeconds", seconds, why));
    }
    causes
}

fn invalid(field: &str, value: &Value, why: &str) -> Cause {
    let field = format!("spec.{field}");
    cause(INVALID, field, format!("Invalid value: {value}: {why}"))
}

fn usages(spec: &Value, causes: &mut Vec<Cause>) {
    let given = spec["usages"].as_array().map(Vec::as_slice);
    let given = given.unwrap_or_default();
    if given.is_empty() {
        causes.push(cause(REQUIRED, "spec.usages", "Required value"));
    }
    let numbered = || given.iter().enumerate();
    for (at, usage) in numbered() {
        if !usage.as_str().is_some_and(|text| USAGES.contains(&text)) {
            let known = USAGES.map(|usage| format!("{usage:?}")).join(", ");
            let why = format!("Unsupported value: {usage}: supported values: {known}");
            causes.push(cause(NOT_SUPPORTED, format!("spec.usages[{at}]"), why));
        }
    }
    for (at, usage) in numbered() {
        if given.iter().take(at).any(|before| before == usage) {
            let why = format!("Duplicate value: {usage}");
            let field = format!("spec.usages[{at}]");
            causes.push(cause("FieldValueDuplicate", field, why));
        }
    }
}

/// Checks the name of a signer: `example.com/path`.
fn signer(name: &str, causes: &mut Vec<Cause>) {
    if name.is_empty() {
        causes.push(cause(REQUIRED, "spec.signerName", "Required value"));
        return;
    }
    let mut wrong = |value: &str, why: &str| {
        causes.push(invalid("signerName", &value.into(), why));
    };
    let parts = name.split_once('/');
    let Some((domain, path)) = parts.filter(|(_, path)| !path.contains('/')) else {
        let form =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return wrong(name, form);
    };
    if let Some(part) = domain.split('.').find(|part| !is_label(part)) {
        let why = match part.len() > 63 {
            true => "must be no more than 63 characters",
            false => LABEL_RULE,
        };
        wrong(domain, &format!("validating label {part:?}: {why}"));
    }
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        wrong(domain, why);
    }
    if let Some(part) = path.split('.').find(|part| !is_subdomain(part)) {
        let why = match part.len() > 253 {
            true => "must be no more than 253 characters",
            false => SUBDOMAIN_RULE,
        };
        wrong(path, &format!("validating label {part:?}: {why}"));
    }
    for (part, most) in [(domain, 253), (name, 571)] {
        if part.len() > most {
            let why = format!("Too long: may not be more than {most} bytes");
            causes.push(cause("FieldValueTooLong", "spec.signerName", why));
        }
    }
}

/// Checks that a text is the base64 of the PEM of a signed PKCS#10 request.
fn check(text: &str) -> Result<(), &'static str> {
    let pem = STANDARD.decode(text).unwrap_or_default();
    let der = block(&pem).ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let (request, after) = Request::read(&der).ok_or("asn1: syntax error: data truncated")?;
    if !after.is_empty() {
        return Err("asn1: syntax error: trailing data");
    }
    match request.verifier() {
        Some((verifier, why)) => {
            let key = UnparsedPublicKey::new(verifier, request.key);
            let verified = key.verify(request.signed, request.signature);
            verified.map_err(|_| why)
        }
        None => Ok(()),
    }
}

/// Returns the content of the first block of PEM, if it is a request for a certificate.
fn block(pem: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem).ok()?;
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let rest = rest.strip_prefix("CERTIFICATE REQUEST-----")?;
    let (body, _) = rest.split_once("-----END CERTIFICATE REQUEST-----")?;
    let lines = body.lines().filter(|line| !line.contains(':'));
    let digits: String = lines.flat_map(str::split_whitespace).collect();
    STANDARD.decode(digits).ok()
}

/// The parts of a PKCS#10 request that its signature is about.
struct Request<'d> {
    signed: &'d [u8],
    /// The curve of an elliptic key; empty for other keys.
    curve: &'d [u8],
    key: &'d [u8],
    algorithm: &'d [u8],
    signature: &'d [u8],
}

impl<'d> Request<'d> {
    /// Reads DER, and returns also what follows it.
    fn read(der: &'d [u8]) -> Option<(Request<'d>, &'d [u8])> {
        let (_, request, after) = sequence(der)?;
        let (signed, info, rest) = sequence(request)?;
        let (_, algorithm, rest) = sequence(rest)?;
        let signature = bits(rest)?;
        // The version and the subject come first.
        let (_, _, info) = element(info)?;
        let (_, _, info) = sequence(info)?;
        let (_, public, _) = sequence(info)?;
        let (_, kind, key) = sequence(public)?;
        let (_, _, parameters) = element(kind)?;
        let read = Request {
            signed,
            curve: element(parameters)
                .map(|(_, curve, _)| curve)
                .unwrap_or_default(),
            key: bits(key)?,
            algorithm: element(algorithm)?.1,
            signature,
        };
        Some((read, after))
    }

    /// Returns what verifies the signature, and the words if it is wrong; `None` if nothing here
    /// verifies such a signature.
    fn verifier(&self) -> Option<(&'static dyn VerificationAlgorithm, &'static str)> {
        let (family, last) = self.algorithm.split_last_chunk::<1>()?;
        let verifier: &'static dyn VerificationAlgorithm = match (family, last, self.curve) {
            (ECDSA, [2], P256) => &signature::ECDSA_P256_SHA256_ASN1,
            (ECDSA, [3], P256) => &signature::ECDSA_P256_SHA384_ASN1,
            (ECDSA, [2], P384) => &signature::ECDSA_P384_SHA256_ASN1,
            (ECDSA, [3], P384) => &signature::ECDSA_P384_SHA384_ASN1,
            (RSA, [11], _) => &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
            (RSA, [12], _) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (RSA, [13], _) => &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
            (ED25519, [112], _) => &signature::ED25519,
            _ => return None,
        };
        let why = match family {
            ECDSA => "x509: ECDSA verification failure",
            RSA => "crypto/rsa: verification error",
            _ => "x509: Ed25519 verification failure",
        };
        Some((verifier, why))
    }
}

/// Splits off a sequence: all of it, its content, and what follows.
fn sequence(der: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (tag, content, after) = element(der)?;
    let whole = der.get(..der.len() - after.len())?;
    (tag == 0x30).then_some((whole, content, after))
}

/// Returns the bytes of a string of bits, which must be whole ones.
fn bits(der: &[u8]) -> Option<&[u8]> {
    let (tag, content, _) = element(der)?;
    let content = content.strip_prefix(&[0])?;
    (tag == 0x03).then_some(content)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};
    use serde_json::json;

    use super::*;

    fn der(key: &KeyPair) -> Vec<u8> {
        let request = CertificateParams::default().serialize_request(key);
        request.unwrap().der().to_vec()
    }

    fn encoded(der: &[u8]) -> String {
        let body = STANDARD.encode(der);
        let begin = "-----BEGIN CERTIFICATE REQUEST-----";
        STANDARD.encode(format!(
            "x\n{begin}\n{body}\n-----END CERTIFICATE REQUEST-----\n"
        ))
    }

    #[test]
    fn requests_are_signed_by_their_keys() {
        for (key, why) in [
            (KeyPair::generate(), "x509: ECDSA verification failure"),
            (
                KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
                "x509: ECDSA verification failure",
            ),
            (
                KeyPair::generate_for(&PKCS_ED25519),
                "x509: Ed25519 verification failure",
            ),
        ] {
            let mut der = der(&key.unwrap());
            assert_eq!(check(&encoded(&der)), Ok(()));
            let longer = [der.as_slice(), &[0]].concat();
            let trailing = "asn1: syntax error: trailing data";
            assert_eq!(check(&encoded(&longer)), Err(trailing));
            for length in 0..der.len() {
                let cut = encoded(der.get(..length).unwrap());
                assert!(check(&cut).is_err(), "{length}");
            }
            *der.last_mut().unwrap() ^= 1;
            assert_eq!(check(&encoded(&der)), Err(why));
        }
        let no_pem = "PEM block type must be CERTIFICATE REQUEST";
        for wrong in ["", "eA==", "no base64"] {
            assert_eq!(check(wrong), Err(no_pem), "{wrong}");
        }
    }

    #[test]
    fn signers_have_a_domain_and_a_path() {
        let told = |name: &str| {
            let mut causes = Vec::new();
            signer(name, &mut causes);
            let messages = causes.into_iter().map(|cause| cause.message);
            messages.collect::<Vec<_>>()
        };
        assert!(told("a.b/c.d").is_empty());
        let long = format!("a.{}/b", "b".repeat(64));
        for (name, count, words) in [
            ("", 1, "Required value"),
            ("a.b", 1, "must be a fully qualified domain"),
            ("a.b/c/d", 1, "must be a fully qualified domain"),
            ("a/b", 1, "at least two segments"),
            (
                "A.b/B",
                2,
                r#"validating label "A": a lowercase RFC 1123 label"#,
            ),
            (long.as_str(), 1, "no more than 63 characters"),
        ] {
            let told = told(name);
            assert!(
                told.len() == count && told[0].contains(words),
                "{name}: {told:?}"
            );
        }
    }

    #[test]
    fn all_faults_of_a_request_are_told() {
        let request = json!({ "spec": {
            "usages": ["client auth", "fun", "client auth"], "expirationSeconds": 5,
            "signerName": "kubernetes.io/legacy-unknown",
        } });
        let fields = faults(&request).into_iter().map(|cause| cause.field);
        let fields: Vec<String> = fields.collect();
        let expected = [
            "spec.request",
            "spec.usages[1]",
            "spec.usages[2]",
            "spec.signerName",
            "spec.expirationSeconds",
        ];
        assert_eq!(fields, expected);
    }
}
