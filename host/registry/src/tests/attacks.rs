//! What somebody between the author and the host may try. Each is refused with its own message.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::tests::authority::{Authority, Signing};
use crate::tests::fake::Lie;
use crate::verify;

#[tokio::test]
async fn a_swapped_layer() {
    let pushed = Pushed::new(b"a component").await;
    pushed
        .fake
        .lie(&blob(b"a component"), Lie::Bytes("a c0mponent".into()));
    let error = pushed.pull().await.unwrap_err();
    assert!(matches!(error, Error::SwappedLayer { .. }), "{error}");
    assert!(error.to_string().contains("was swapped"), "{error}");
    pushed
        .fake
        .lie(&blob(b"a component"), Lie::Bytes("shorter".into()));
    let error = pushed.pull().await.unwrap_err();
    assert!(matches!(error, Error::SwappedLayer { .. }), "{error}");
}

#[tokio::test]
async fn a_layer_that_was_swapped_in_the_hosts_own_cache() {
    let pushed = Pushed::new(b"a component").await;
    let ann = key();
    pushed.sign(&ann).await;
    let mut pulled = pushed.pull().await.unwrap();
    let trust = trusting(&[&ann]);
    verify(&pulled, &trust).unwrap();
    pulled.component = Bytes::from_static(b"another");
    let error = verify(&pulled, &trust).unwrap_err();
    assert!(matches!(error, Error::SwappedLayer { .. }), "{error}");
}

#[tokio::test]
async fn the_manifest_of_another_artifact() {
    let mut pushed = Pushed::new(b"a component").await;
    let nobody = Credentials::anonymous();
    let other = pushed.fake.reference(REPOSITORY, "2");
    let other = push(&other, &component(b"another"), &access(&nobody))
        .await
        .unwrap();
    let json = pushed.fake.manifest(REPOSITORY, &other).unwrap();
    let json = Bytes::from(serde_json::to_vec(&json).unwrap());
    let path = format!("/v2/{REPOSITORY}/manifests/{}", pushed.digest);
    pushed.fake.lie(&path, Lie::Bytes(json));
    pushed.reference = pushed.reference.with_digest(&pushed.digest);
    let error = pushed.pull().await.unwrap_err();
    assert!(matches!(error, Error::OtherManifest { .. }), "{error}");
    assert!(error.to_string().contains("another artifact"), "{error}");
}

#[tokio::test]
async fn the_signature_of_another_artifact() {
    let pushed = Pushed::new(b"a component").await;
    let ann = key();
    let other = crate::digest::of(b"another manifest");
    pushed.attach(ann.sign(&other).unwrap()).await;
    let pulled = pushed.pull().await.unwrap();
    let error = verify(&pulled, &trusting(&[&ann])).unwrap_err();
    assert!(matches!(error, Error::OtherArtifact { .. }), "{error}");
    assert!(error.to_string().contains(&other), "{error}");
}

#[tokio::test]
async fn another_signer() {
    let pushed = Pushed::new(b"a component").await;
    let (ann, eve) = (key(), key());
    let unsigned = verify(&pushed.pull().await.unwrap(), &trusting(&[&ann])).unwrap_err();
    assert!(matches!(unsigned, Error::Unsigned { .. }), "{unsigned}");
    pushed.sign(&eve).await;
    let pulled = pushed.pull().await.unwrap();
    let error = verify(&pulled, &trusting(&[&ann])).unwrap_err();
    assert!(matches!(error, Error::OtherSigner { .. }), "{error}");
    assert!(error.to_string().contains("not trusted"), "{error}");
    let nobody = verify(&pulled, &Trust::new()).unwrap_err();
    assert!(matches!(nobody, Error::NobodyTrusted), "{nobody}");
    // What eve attaches does not hide ann's signature.
    pushed.attach(Bytes::from_static(b"no bundle")).await;
    pushed.sign(&ann).await;
    let pulled = pushed.pull().await.unwrap();
    assert_eq!(verify(&pulled, &trusting(&[&ann])).unwrap().len(), 1);
}

#[tokio::test]
async fn a_signature_whose_statement_was_changed() {
    let pushed = Pushed::new(b"a component").await;
    let ann = key();
    let other = crate::digest::of(b"another manifest");
    let mut signed: Value = serde_json::from_slice(&ann.sign(&other).unwrap()).unwrap();
    let good: Value = serde_json::from_slice(&key().sign(&pushed.digest).unwrap()).unwrap();
    // Ann's signature of another artifact, under a statement about this one.
    signed["dsseEnvelope"]["payload"] = good["dsseEnvelope"]["payload"].clone();
    pushed.attach(Bytes::from(signed.to_string())).await;
    let pulled = pushed.pull().await.unwrap();
    let error = verify(&pulled, &trusting(&[&ann])).unwrap_err();
    assert!(matches!(error, Error::OtherSigner { .. }), "{error}");
}

#[tokio::test]
async fn a_signature_in_the_old_format() {
    let pushed = Pushed::new(b"a component").await;
    let manifest = pushed.fake.manifest(REPOSITORY, "1").unwrap();
    let tag = format!("{}.sig", pushed.digest.replace(':', "-"));
    pushed.fake.put_manifest(REPOSITORY, &tag, &manifest);
    let pulled = pushed.pull().await.unwrap();
    let error = verify(&pulled, &trusting(&[&key()])).unwrap_err();
    assert!(matches!(error, Error::OldSignature { .. }), "{error}");
    assert!(error.to_string().contains(".sig"), "{error}");
}

#[tokio::test]
async fn an_old_signature_next_to_another_statement() {
    let (pushed, authority) = (Pushed::new(b"a component").await, Authority::new());
    let manifest = pushed.fake.manifest(REPOSITORY, "1").unwrap();
    let tag = format!("{}.sig", pushed.digest.replace(':', "-"));
    pushed.fake.put_manifest(REPOSITORY, &tag, &manifest);
    let about = Signing {
        predicate: "https://slsa.dev/provenance/v1",
        ..Signing::of(&pushed.digest)
    };
    pushed.attach(authority.sign(&about)).await;
    let error = verify(&pushed.pull().await.unwrap(), &trusting(&[&key()])).unwrap_err();
    assert!(matches!(error, Error::OldSignature { .. }), "{error}");
}

#[tokio::test]
async fn a_bundle_of_an_old_version() {
    let (pushed, authority) = (Pushed::new(b"a component").await, Authority::new());
    let bundle = authority.sign(&Signing::of(&pushed.digest));
    let mut bundle: Value = serde_json::from_slice(&bundle).unwrap();
    // Its record in the log could be a promise only.
    bundle["mediaType"] = json!("application/vnd.dev.sigstore.bundle+json;version=0.1");
    let material = bundle["verificationMaterial"].as_object_mut().unwrap();
    let certificate = material.remove("certificate").unwrap();
    material.insert(
        "x509CertificateChain".to_owned(),
        json!({ "certificates": [certificate] }),
    );
    material["tlogEntries"][0]
        .as_object_mut()
        .unwrap()
        .remove("inclusionProof");
    pushed.attach(Bytes::from(bundle.to_string())).await;
    let mut trust = Trust::new();
    trust.identity("ann@team.example", "https://login.example");
    trust.root(&authority.root()).unwrap();
    let error = verify(&pushed.pull().await.unwrap(), &trust).unwrap_err();
    assert!(matches!(error, Error::BadSignature { .. }), "{error}");
    assert!(error.to_string().contains("old version"), "{error}");
}

#[tokio::test]
async fn what_is_no_component_is_not_signed() {
    let pushed = Pushed::new(b"a component").await;
    let mut manifest = pushed.fake.manifest(REPOSITORY, "1").unwrap();
    manifest["config"]["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
    let image = pushed.fake.put_manifest(REPOSITORY, "2", &manifest);
    let nobody = Credentials::anonymous();
    let bundle = key().sign(&image).unwrap();
    let error = attach(&pushed.reference, &image, bundle, &access(&nobody)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::NotAComponent { .. }), "{error}");
}

#[tokio::test]
async fn two_layers() {
    let pushed = Pushed::new(b"a component").await;
    let mut manifest = pushed.fake.manifest(REPOSITORY, "1").unwrap();
    let second = pushed.fake.put_blob(b"another");
    let layers = manifest["layers"].as_array_mut().unwrap();
    layers.push(json!({ "mediaType": crate::LAYER_TYPE, "digest": second, "size": 7 }));
    pushed.fake.put_manifest(REPOSITORY, "1", &manifest);
    let error = pushed.pull().await.unwrap_err();
    assert!(matches!(error, Error::Layers { count: 2, .. }), "{error}");
}

#[tokio::test]
async fn bodies_without_an_end() {
    let token = "/token".to_owned();
    let manifest = format!("/v2/{REPOSITORY}/manifests/1");
    for (path, what) in [
        (blob(b"a component"), "component"),
        (manifest, "manifest"),
        (token, "answer of the token service"),
    ] {
        let pushed = Pushed::new(b"a component").await;
        if path == "/token" {
            pushed.fake.want_password("YW5uOnNlY3JldA==");
        }
        pushed.fake.lie(&path, Lie::Endless);
        let error = pushed.pull().await.unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }), "{path}: {error}");
        assert!(error.to_string().contains(what), "{path}: {error}");
        assert!(!error.may_pass(), "{path}");
    }
}

#[tokio::test]
async fn an_over_long_component() {
    let pushed = Pushed::new(b"a component").await;
    let nobody = Credentials::anonymous();
    let mut options = Pull::new(access(&nobody));
    options.component_limit = 10;
    pushed.fake.seen();
    let error = pull(&pushed.reference, &options).await.unwrap_err();
    assert!(matches!(error, Error::TooLong { limit: 10, .. }), "{error}");
    let read = pushed
        .fake
        .seen()
        .iter()
        .any(|line| line.contains("/blobs/"));
    assert!(!read, "its size is in the manifest");
    // The registry sends more than the manifest says.
    pushed.fake.lie(
        &blob(b"a component"),
        Lie::Bytes("a component, and more".into()),
    );
    let error = pushed.pull().await.unwrap_err();
    assert!(matches!(error, Error::TooLong { limit: 11, .. }), "{error}");
}

#[tokio::test]
async fn a_registry_that_says_nothing() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let reference: Reference = format!("{address}/team/vm:1").parse().unwrap();
    let nobody = Credentials::anonymous();
    let mut options = Pull::new(access(&nobody));
    options.access.timeout = Duration::from_millis(50);
    let error = pull(&reference, &options).await.unwrap_err();
    assert!(
        matches!(error, Error::Slow { .. }) && error.may_pass(),
        "{error}"
    );
}

#[tokio::test]
async fn a_token_service_elsewhere_without_tls() {
    let pushed = Pushed::new(b"a component").await;
    // Also a registry on loopback may be somebody else's, and the password is not theirs.
    let elsewhere = r#"Bearer realm="http://token.example/",service="x""#;
    let manifest = format!("/v2/{REPOSITORY}/manifests/1");
    pushed.fake.lie(&manifest, Lie::Ask(elsewhere.to_owned()));
    let error = pushed.pull().await.unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
    assert!(error.to_string().contains("without TLS"), "{error}");
}

#[tokio::test]
async fn a_storage_that_asks_for_the_password() {
    let pushed = Pushed::new(b"a component").await;
    let storage = Fake::start().await;
    // ann:secret
    pushed.fake.want_password("YW5uOnNlY3JldA==");
    storage.want_password("YW5uOnNlY3JldA==");
    let path = blob(b"a component");
    let place = format!("http://{}{path}", storage.address());
    pushed.fake.lie(&path, Lie::To(place));
    let config = json!({ "auths": { (pushed.fake.address()): { "auth": "YW5uOnNlY3JldA==" } } });
    let ann = Credentials::from_docker_config(config.to_string().as_bytes()).unwrap();
    let error = pull(&pushed.reference, &Pull::new(access(&ann))).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    let seen = storage.seen();
    // The password is for the registry that was named, not for where it sends requests on to.
    assert_eq!(seen, [format!("GET {path}")]);
}

#[tokio::test]
async fn a_token_service_that_sends_credentials_on() {
    let pushed = Pushed::new(b"a component").await;
    let elsewhere = Fake::start().await;
    let host = pushed.fake.address();
    let ask = format!(r#"Bearer realm="http://{host}/token",service="{host}""#);
    let manifest = format!("/v2/{REPOSITORY}/manifests/1");
    pushed.fake.lie(&manifest, Lie::Ask(ask));
    let place = format!("http://{}/token", elsewhere.address());
    pushed.fake.lie("/token", Lie::Again(place));
    let config = json!({ "auths": { (host): { "identitytoken": "s3cret" } } });
    let ann = Credentials::from_docker_config(config.to_string().as_bytes()).unwrap();
    let error = pull(&pushed.reference, &Pull::new(access(&ann))).await;
    let error = error.unwrap_err();
    assert!(error.to_string().contains("another place"), "{error}");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_redirection_away_from_this_machine_without_tls() {
    let pushed = Pushed::new(b"a component").await;
    let place = "http://storage.example/blob".to_owned();
    pushed.fake.lie(&blob(b"a component"), Lie::To(place));
    let error = pushed.pull().await.unwrap_err();
    assert!(error.to_string().contains("a place without TLS"), "{error}");
}

#[tokio::test]
async fn endless_redirections() {
    let pushed = Pushed::new(b"a component").await;
    let path = blob(b"a component");
    let place = format!("http://{}{path}", pushed.fake.address());
    pushed.fake.lie(&path, Lie::To(place));
    let error = pushed.pull().await.unwrap_err();
    assert!(error.to_string().contains("ever more places"), "{error}");
}
