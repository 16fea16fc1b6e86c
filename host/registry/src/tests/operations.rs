//! Push, pull, resolve, attach and verify, as they should go.

use serde_json::{Value, json};

use super::*;
use crate::tests::fake::Lie;
use crate::{CONFIG_TYPE, SignerKind, resolve, verify};

#[tokio::test]
async fn what_was_pushed_is_pulled() {
    let pushed = Pushed::new(b"a component").await;
    let pulled = pushed.pull().await.unwrap();
    assert_eq!(pulled.component, component(b"a component").bytes);
    assert_eq!(pulled.digest, pushed.digest);
    assert_eq!(pulled.digest, crate::digest::of(&pulled.manifest));
    assert!(pulled.signatures.is_empty() && !pulled.old_signature);
    let manifest: Value = serde_json::from_slice(&pulled.manifest).unwrap();
    assert_eq!(manifest["config"]["mediaType"], CONFIG_TYPE);
    pulled.check().unwrap();
    let nobody = Credentials::anonymous();
    let resolved = resolve(&pushed.reference, &access(&nobody)).await.unwrap();
    assert_eq!(resolved, pushed.digest);
    let pinned = pushed.reference.with_digest(&pushed.digest);
    let again = pull(&pinned, &Pull::new(access(&nobody))).await.unwrap();
    assert_eq!(again, pulled);
}

#[tokio::test]
async fn a_push_writes_only_what_is_missing() {
    let pushed = Pushed::new(b"a component").await;
    pushed.fake.seen();
    let nobody = Credentials::anonymous();
    let other = pushed.fake.reference(REPOSITORY, "2");
    let again = push(&other, &component(b"a component"), &access(&nobody)).await;
    assert_eq!(
        again.unwrap(),
        pushed.digest,
        "the same component has the same digest"
    );
    let seen = pushed.fake.seen();
    let writes: Vec<&String> = seen
        .iter()
        .filter(|line| !line.starts_with("HEAD"))
        .collect();
    assert_eq!(writes, ["PUT /v2/team/vm/manifests/2"]);
    let error = push(
        &other.with_digest(&pushed.digest),
        &component(b"x"),
        &access(&nobody),
    )
    .await;
    assert!(error.unwrap_err().to_string().contains("names a tag"));
}

#[tokio::test]
async fn signatures_are_found_with_and_without_the_registrys_list() {
    for lists in [true, false] {
        let pushed = Pushed::new(b"a component").await;
        if lists {
            pushed.fake.list_referrers();
        }
        let (ann, ben) = (key(), key());
        pushed.sign(&ann).await;
        pushed.sign(&ben).await;
        let pulled = pushed.pull().await.unwrap();
        assert_eq!(pulled.signatures.len(), 2, "lists: {lists}");
        let mut trust = trusting(&[&ann, &ben]);
        trust.threshold(2);
        let signers = verify(&pulled, &trust).unwrap();
        let names: Vec<&str> = signers.iter().map(|signer| signer.name.as_str()).collect();
        assert!(
            names.contains(&"key-0") && names.contains(&"key-1"),
            "{names:?}"
        );
        assert!(signers.iter().all(|signer| signer.kind == SignerKind::Key));
        let tag = pushed.digest.replace(':', "-");
        let stand_in = pushed.fake.manifest(REPOSITORY, &tag);
        assert_eq!(stand_in.is_none(), lists, "the list under a tag");
    }
}

#[tokio::test]
async fn one_who_signs_twice_counts_once() {
    let pushed = Pushed::new(b"a component").await;
    let (ann, ben) = (key(), key());
    pushed.sign(&ann).await;
    pushed.sign(&ann).await;
    let pulled = pushed.pull().await.unwrap();
    let mut trust = trusting(&[&ann, &ann, &ben]);
    assert_eq!(verify(&pulled, &trust).unwrap().len(), 1);
    trust.threshold(2);
    let error = verify(&pulled, &trust).unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooFew {
                found: 1,
                wanted: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn two_keys_of_one_name_are_two_signers() {
    let pushed = Pushed::new(b"a component").await;
    let (ann, ben) = (key(), key());
    pushed.sign(&ann).await;
    pushed.sign(&ben).await;
    let pulled = pushed.pull().await.unwrap();
    for name in ["team", ""] {
        let mut trust = Trust::new();
        for key in [&ann, &ben] {
            trust.key(name, &key.public_pem()).unwrap();
        }
        trust.threshold(2);
        let signers = verify(&pulled, &trust).unwrap();
        assert_eq!(signers.len(), 2, "{name:?}");
        assert!(
            signers.iter().all(|signer| !signer.name.is_empty()),
            "{signers:?}"
        );
    }
}

#[tokio::test]
async fn a_token_is_fetched_with_the_password() {
    let pushed = Pushed::new(b"a component").await;
    // ann:secret
    pushed.fake.want_password("YW5uOnNlY3JldA==");
    let refused = pushed.pull().await.unwrap_err();
    assert!(matches!(refused, Error::Denied { .. }), "{refused}");
    assert!(
        refused.to_string().contains("without credentials"),
        "{refused}"
    );
    let config = json!({ "auths": { (pushed.fake.address()): { "auth": "YW5uOnNlY3JldA==" } } });
    let ann = Credentials::from_docker_config(config.to_string().as_bytes()).unwrap();
    let pulled = pull(&pushed.reference, &Pull::new(access(&ann))).await;
    assert_eq!(pulled.unwrap().digest, pushed.digest);
    let other = pushed.fake.reference(REPOSITORY, "2");
    push(&other, &component(b"another"), &access(&ann))
        .await
        .unwrap();
    let config = json!({ "auths": { (pushed.fake.address()): { "auth": "YW5uOndyb25n" } } });
    let wrong = Credentials::from_docker_config(config.to_string().as_bytes()).unwrap();
    let pulled = pull(&pushed.reference, &Pull::new(access(&wrong))).await;
    let refused = pulled.unwrap_err().to_string();
    assert!(
        refused.contains("refuses user ann: who are you?"),
        "{refused}"
    );
    assert!(!refused.contains("wrong"), "{refused}");
}

#[tokio::test]
async fn a_list_of_signatures_is_read_page_by_page() {
    let pushed = Pushed::new(b"a component").await;
    pushed.fake.list_referrers();
    let (ann, ben) = (key(), key());
    pushed.sign(&ann).await;
    pushed.sign(&ben).await;
    pushed.fake.list_one_by_one();
    let pulled = pushed.pull().await.unwrap();
    assert_eq!(pulled.signatures.len(), 2);
}

#[tokio::test]
async fn a_token_that_ran_out_is_replaced() {
    let pushed = Pushed::new(b"a component").await;
    // ann:secret
    pushed.fake.want_password("YW5uOnNlY3JldA==");
    pushed.fake.forget_tokens_after(1);
    let config = json!({ "auths": { (pushed.fake.address()): { "auth": "YW5uOnNlY3JldA==" } } });
    let ann = Credentials::from_docker_config(config.to_string().as_bytes()).unwrap();
    pull(&pushed.reference, &Pull::new(access(&ann)))
        .await
        .unwrap();
    let seen = pushed.fake.seen();
    let tokens = seen.iter().filter(|line| line.ends_with(" /token")).count();
    assert!(tokens > 1, "{seen:?}");
}

#[tokio::test]
async fn a_registry_may_send_to_its_storage() {
    let pushed = Pushed::new(b"a component").await;
    let storage = Fake::start().await;
    let digest = storage.put_blob(b"a component");
    let place = format!("http://{}/v2/x/blobs/{digest}?signed=y", storage.address());
    let path = format!("/v2/team/vm/blobs/{digest}");
    pushed.fake.lie(&path, Lie::To(place));
    let pulled = pushed.pull().await.unwrap();
    assert_eq!(pulled.component, component(b"a component").bytes);
    assert_eq!(storage.seen().len(), 1);
}

#[tokio::test]
async fn a_registry_that_is_down_is_named_and_may_come_back() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let reference: Reference = format!("{address}/team/vm:1").parse().unwrap();
    let nobody = Credentials::anonymous();
    let error = pull(&reference, &Pull::new(access(&nobody)))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Unreachable { .. }) && error.may_pass(),
        "{error}"
    );
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[test]
fn only_a_usable_key_signs() {
    let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    for pair in [p384, ed25519] {
        let key = SigningKey::from_pem("k", pair.serialize_pem().as_bytes()).unwrap();
        let same = |pem: &str| pem.replace("\r\n", "\n").trim().to_owned();
        assert_eq!(same(&key.public_pem()), same(&pair.public_key_pem()));
        let digest = crate::digest::of(b"{}");
        let bundle: Value = serde_json::from_slice(&key.sign(&digest).unwrap()).unwrap();
        assert_eq!(
            bundle["mediaType"],
            "application/vnd.dev.sigstore.bundle.v0.3+json"
        );
    }
    for (pem, why) in [
        ("-----BEGIN EC PRIVATE KEY-----", "openssl pkcs8 -topk8"),
        (
            "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----",
            "sign with cosign",
        ),
        ("-----BEGIN PUBLIC KEY-----", "the private one"),
        ("", "BEGIN PRIVATE KEY"),
    ] {
        let Err(error) = SigningKey::from_pem("my.key", pem.as_bytes()) else {
            panic!("{pem} is no key");
        };
        let error = error.to_string();
        assert!(error.contains(why) && error.contains("my.key"), "{error}");
    }
}
