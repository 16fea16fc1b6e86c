//! What this crate needs of registries: an image's digest, its component, and its signers. The
//! caller brings the client. This module must not know what a signature is needed for.

use bytes::Bytes;
use futures_util::future::BoxFuture;

pub use crate::policy::{Signatures, TrustedSigner};

/// An image that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The reference, by tag or digest.
    pub reference: String,
    /// docker's `config.json` out of each pull secret.
    pub logins: Vec<Vec<u8>>,
    /// Whether the host's own login may be used, where there is no pull secret.
    pub lends: bool,
    /// The most bytes that the component may have.
    pub limit: u64,
}

/// An image that was read.
pub struct Artifact {
    /// The digest of the manifest: `sha256:` and hex.
    pub digest: String,
    /// The component.
    pub component: Bytes,
    /// Its signatures.
    pub signed: Box<dyn Signed>,
}

/// The signatures of an image.
pub trait Signed: Send + Sync {
    /// Returns the names of the signers, if they are enough. The error says what is wrong and what
    /// to do.
    fn signers(&self, wanted: &Signatures) -> Result<Vec<String>, String>;
}

/// A client of registries.
pub trait Images: Send + Sync {
    /// Returns the digest that a reference stands for now. The error names the registry.
    fn resolve<'a>(&'a self, image: &'a Image) -> BoxFuture<'a, Result<String, String>>;

    /// Reads an image by this digest.
    fn pull<'a>(
        &'a self,
        image: &'a Image,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Artifact, String>>;
}
