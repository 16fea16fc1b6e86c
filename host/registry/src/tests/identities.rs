//! Signatures of identities, against a sigstore of the test's own.

use super::authority::{AFTER, Authority, Signing};
use super::*;
use crate::{SignerKind, verify};

/// Trusts an identity, with the root of an authority.
fn trusting_identity(authority: &Authority, subject: &str, issuer: &str) -> Trust {
    let mut trust = Trust::new();
    trust.identity(subject, issuer);
    trust.root(&authority.root()).unwrap();
    trust
}

/// Pulls an artifact that was signed so.
async fn signed(pushed: &Pushed, authority: &Authority, what: &Signing<'_>) -> Pulled {
    pushed.attach(authority.sign(what)).await;
    pushed.pull().await.unwrap()
}

#[tokio::test]
async fn a_trusted_identity_is_named_with_its_issuer() {
    let (pushed, authority) = (Pushed::new(b"a component").await, Authority::new());
    let pulled = signed(&pushed, &authority, &Signing::of(&pushed.digest)).await;
    let trust = trusting_identity(&authority, "*@team.example", "https://login.example");
    let signers = verify(&pulled, &trust).unwrap();
    let [signer] = signers.as_slice() else {
        panic!("{signers:?}");
    };
    assert_eq!(signer.kind, SignerKind::Identity);
    assert_eq!(signer.name, "ann@team.example");
    assert_eq!(signer.issuer.as_deref(), Some("https://login.example"));
}

#[tokio::test]
async fn an_expired_identity() {
    let (pushed, authority) = (Pushed::new(b"a component").await, Authority::new());
    let late = Signing {
        at: AFTER,
        ..Signing::of(&pushed.digest)
    };
    let pulled = signed(&pushed, &authority, &late).await;
    let trust = trusting_identity(&authority, "ann@team.example", "https://login.example");
    let error = verify(&pulled, &trust).unwrap_err();
    assert!(matches!(error, Error::ExpiredIdentity { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains("ann@team.example"), "{error}");
    assert!(error.contains("2025-01-02T01:00:00Z"), "{error}");
}

#[tokio::test]
async fn another_identity_and_another_issuer() {
    let (pushed, authority) = (Pushed::new(b"a component").await, Authority::new());
    let pulled = signed(&pushed, &authority, &Signing::of(&pushed.digest)).await;
    for (subject, issuer) in [
        ("ben@team.example", "https://login.example"),
        ("ann@team.example", "https://login.evil.example"),
    ] {
        let error = verify(&pulled, &trusting_identity(&authority, subject, issuer)).unwrap_err();
        assert!(matches!(error, Error::OtherSigner { .. }), "{error}");
        assert!(error.to_string().contains("ann@team.example"), "{error}");
    }
}

#[tokio::test]
async fn another_authority_and_none() {
    let (pushed, authority) = (Pushed::new(b"a component").await, Authority::new());
    let pulled = signed(&pushed, &authority, &Signing::of(&pushed.digest)).await;
    let other = Authority::new();
    let trust = trusting_identity(&other, "ann@team.example", "https://login.example");
    let error = verify(&pulled, &trust).unwrap_err();
    assert!(matches!(error, Error::BadSignature { .. }), "{error}");
    let mut without = Trust::new();
    without.identity("ann@team.example", "https://login.example");
    let error = verify(&pulled, &without).unwrap_err();
    assert!(matches!(error, Error::NoRoot { .. }), "{error}");
    let error = Trust::new().root("{}").unwrap_err();
    assert!(matches!(error, Error::Root(_)), "{error}");
}

#[tokio::test]
async fn what_an_identity_says_about_an_artifact_is_no_signature() {
    let (pushed, authority) = (Pushed::new(b"a component").await, Authority::new());
    let about = Signing {
        predicate: "https://slsa.dev/provenance/v1",
        ..Signing::of(&pushed.digest)
    };
    let pulled = signed(&pushed, &authority, &about).await;
    assert_eq!(pulled.signatures.len(), 1);
    let trust = trusting_identity(&authority, "ann@team.example", "https://login.example");
    let error = verify(&pulled, &trust).unwrap_err();
    assert!(matches!(error, Error::Unsigned { .. }), "{error}");
}

#[tokio::test]
async fn a_changed_record_of_the_log() {
    let (pushed, authority) = (Pushed::new(b"a component").await, Authority::new());
    let late = Signing {
        at: AFTER,
        ..Signing::of(&pushed.digest)
    };
    // Somebody dates the signature back to when the certificate was valid.
    let bundle = String::from_utf8(authority.sign(&late).to_vec()).unwrap();
    let during = super::authority::DURING.to_string();
    let backdated = bundle.replace(&AFTER.to_string(), &during);
    assert_ne!(bundle, backdated);
    pushed.attach(Bytes::from(backdated)).await;
    let trust = trusting_identity(&authority, "ann@team.example", "https://login.example");
    let error = verify(&pushed.pull().await.unwrap(), &trust).unwrap_err();
    assert!(matches!(error, Error::BadSignature { .. }), "{error}");
}

#[tokio::test]
async fn a_key_and_an_identity_are_two_signers() {
    let (pushed, authority) = (Pushed::new(b"a component").await, Authority::new());
    let key = key();
    pushed.sign(&key).await;
    let pulled = signed(&pushed, &authority, &Signing::of(&pushed.digest)).await;
    let mut trust = trusting(&[&key]);
    trust.identity("ann@team.example", "https://login.example");
    trust.root(&authority.root()).unwrap();
    trust.threshold(2);
    assert_eq!(verify(&pulled, &trust).unwrap().len(), 2);
}
