//! Tests of whole operations, against a registry in this process that can be made to lie.

mod attacks;
mod authority;
mod fake;
mod identities;
mod mirrors;
mod operations;

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    Access, Component, Credentials, Error, Pull, Pulled, Reference, SigningKey, Trust, attach,
    pull, push,
};
use fake::Fake;

/// The repository of most tests.
const REPOSITORY: &str = "team/vm";

fn component(bytes: &'static [u8]) -> Component {
    Component {
        bytes: Bytes::from_static(bytes),
        exports: vec!["vmhost:plugin/controller@1.0.0".to_owned()],
        imports: Vec::new(),
        annotations: BTreeMap::new(),
    }
}

/// The path of a pushed component.
fn blob(bytes: &[u8]) -> String {
    format!("/v2/{REPOSITORY}/blobs/{}", crate::digest::of(bytes))
}

fn access(credentials: &Credentials) -> Access<'_> {
    Access {
        insecure: true,
        ..Access::new(credentials)
    }
}

/// An artifact that was pushed, and the registry that has it.
struct Pushed {
    fake: Fake,
    reference: Reference,
    digest: String,
}

impl Pushed {
    async fn new(bytes: &'static [u8]) -> Self {
        let fake = Fake::start().await;
        let reference = fake.reference(REPOSITORY, "1");
        let nobody = Credentials::anonymous();
        let digest = push(&reference, &component(bytes), &access(&nobody)).await;
        Self {
            fake,
            reference,
            digest: digest.unwrap(),
        }
    }

    async fn pull(&self) -> Result<Pulled, Error> {
        let nobody = Credentials::anonymous();
        pull(&self.reference, &Pull::new(access(&nobody))).await
    }

    async fn attach(&self, bundle: Bytes) -> String {
        let nobody = Credentials::anonymous();
        let attached = attach(&self.reference, &self.digest, bundle, &access(&nobody)).await;
        attached.unwrap()
    }

    async fn sign(&self, key: &SigningKey) {
        self.attach(key.sign(&self.digest).unwrap()).await;
    }
}

/// A new key pair.
fn key() -> SigningKey {
    let pair = rcgen::KeyPair::generate().unwrap();
    SigningKey::from_pem("key.pem", pair.serialize_pem().as_bytes()).unwrap()
}

fn trusting(keys: &[&SigningKey]) -> Trust {
    let mut trust = Trust::new();
    for (index, key) in keys.iter().enumerate() {
        let name = format!("key-{index}");
        trust.key(&name, &key.public_pem()).unwrap();
    }
    trust
}
