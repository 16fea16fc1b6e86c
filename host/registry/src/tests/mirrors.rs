//! Mirrors: what they may answer, and what they cannot spoil.

use super::*;
use crate::tests::fake::Lie;
use crate::{Mirrors, resolve, verify};

#[tokio::test]
async fn a_mirror_is_asked_first_and_its_failures_are_passed_over() {
    let mirrored = Pushed::new(b"a component").await;
    let origin = Pushed::new(b"a component").await;
    let rule = format!("{}={}", origin.fake.address(), mirrored.fake.address());
    let mirrors = Mirrors::parse([rule.as_str()]).unwrap();
    let nobody = Credentials::anonymous();
    let mut through = access(&nobody);
    through.mirrors = &mirrors;
    origin.fake.seen();
    mirrored.fake.seen();
    let pulled = pull(&origin.reference, &Pull::new(through)).await.unwrap();
    assert_eq!(pulled.digest, origin.digest);
    let own = origin.fake.seen();
    let is_about_signatures =
        |line: &String| line.contains("/referrers/") || line.contains("/sha256-");
    assert!(own.iter().all(is_about_signatures), "{own:?}");
    assert!(!mirrored.fake.seen().is_empty());
    mirrored
        .fake
        .lie("/v2/team/vm/manifests/1", Lie::Status(503));
    let pulled = pull(&origin.reference, &Pull::new(through)).await.unwrap();
    assert_eq!(pulled.digest, origin.digest);
    assert_eq!(
        resolve(&origin.reference, &through).await.unwrap(),
        origin.digest
    );
    origin.fake.lie("/v2/team/vm/manifests/1", Lie::Status(404));
    let error = pull(&origin.reference, &Pull::new(through))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert!(error.to_string().contains(origin.fake.address()), "{error}");
}

#[tokio::test]
async fn a_mirror_that_lies_or_says_nothing_is_passed_over() {
    let origin = Pushed::new(b"a component").await;
    let lying = Pushed::new(b"a component").await;
    lying
        .fake
        .lie(&blob(b"a component"), Lie::Bytes("a c0mponent".into()));
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = origin.fake.address();
    let rules = [
        format!("{own}={}", lying.fake.address()),
        format!("{own}={}", silent.local_addr().unwrap()),
    ];
    let mirrors = Mirrors::parse(rules.iter().map(String::as_str)).unwrap();
    let nobody = Credentials::anonymous();
    let mut through = access(&nobody);
    through.mirrors = &mirrors;
    through.timeout = std::time::Duration::from_secs(6);
    let pulled = pull(&origin.reference, &Pull::new(through)).await.unwrap();
    assert_eq!(pulled.component, component(b"a component").bytes);
    assert!(!lying.fake.seen().is_empty());
}

#[tokio::test]
async fn a_mirror_without_signatures_does_not_hide_them() {
    let mirrored = Pushed::new(b"a component").await;
    let origin = Pushed::new(b"a component").await;
    let ann = key();
    origin.sign(&ann).await;
    let rule = format!("{}={}", origin.fake.address(), mirrored.fake.address());
    let mirrors = Mirrors::parse([rule.as_str()]).unwrap();
    let nobody = Credentials::anonymous();
    let mut through = access(&nobody);
    through.mirrors = &mirrors;
    let pulled = pull(&origin.reference, &Pull::new(through)).await.unwrap();
    assert_eq!(verify(&pulled, &trusting(&[&ann])).unwrap().len(), 1);
}

#[tokio::test]
async fn signatures_that_cannot_be_read_are_not_called_absent() {
    let mirrored = Pushed::new(b"a component").await;
    let origin = Pushed::new(b"a component").await;
    let ann = key();
    origin.sign(&ann).await;
    let referrers = format!("/v2/team/vm/referrers/{}", origin.digest);
    origin.fake.lie(&referrers, Lie::Status(503));
    let rule = format!("{}={}", origin.fake.address(), mirrored.fake.address());
    let mirrors = Mirrors::parse([rule.as_str()]).unwrap();
    let nobody = Credentials::anonymous();
    let mut through = access(&nobody);
    through.mirrors = &mirrors;
    let pulled = pull(&origin.reference, &Pull::new(through)).await.unwrap();
    let error = verify(&pulled, &trusting(&[&ann])).unwrap_err();
    assert!(
        matches!(error, Error::UnreadSignatures { .. }) && error.may_pass(),
        "{error}"
    );
    assert!(error.to_string().contains("503"), "{error}");
}
