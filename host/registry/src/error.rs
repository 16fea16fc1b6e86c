//! Why an operation on an artifact failed. Each text names the artifact, what was found, and what
//! to do. This module must not know how an operation works.

use std::time::Duration;

/// Why an operation on an artifact failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no name of an artifact.
    #[error("{text:?} is no reference of an artifact: {why}")]
    Reference {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A registry without TLS was asked for that is not on loopback.
    #[error(
        "registry {registry} is not on loopback: --insecure is for registries on this machine only; give the others a certificate"
    )]
    NotLoopback {
        /// The registry.
        registry: String,
    },
    /// The settings of connections cannot be made.
    #[error("connections to registries cannot be prepared: {0}")]
    Setup(String),
    /// The credentials cannot be read.
    #[error("credentials of registries: {0}")]
    Credentials(String),
    /// The registry was not reached, or broke off.
    #[error("{reference}: registry {host} did not answer: {why}")]
    Unreachable {
        /// The artifact.
        reference: String,
        /// The registry or mirror that was asked.
        host: String,
        /// What happened.
        why: String,
    },
    /// The operation took too long.
    #[error("{reference}: the registry was not done after {after:?}")]
    Slow {
        /// The artifact.
        reference: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The registry wants other credentials.
    #[error("{reference}: registry {host} refuses {account}: {why}")]
    Denied {
        /// The artifact.
        reference: String,
        /// The registry or mirror that was asked.
        host: String,
        /// As whom it was asked.
        account: String,
        /// What the registry said.
        why: String,
    },
    /// The registry has nothing of this name.
    #[error("{reference}: registry {host} has no such {what}")]
    NotFound {
        /// The artifact.
        reference: String,
        /// The registry or mirror that was asked.
        host: String,
        /// What is missing.
        what: &'static str,
    },
    /// The registry answered with an error.
    #[error("{reference}: registry {host} answered {code}: {why}")]
    Answer {
        /// The artifact.
        reference: String,
        /// The registry or mirror that was asked.
        host: String,
        /// The HTTP status.
        code: u16,
        /// What the registry said.
        why: String,
    },
    /// The registry's answer does not follow the OCI distribution specification.
    #[error("{reference}: the registry's answer is not as specified: {why}")]
    Malformed {
        /// The artifact.
        reference: String,
        /// What is wrong with it.
        why: String,
    },
    /// An answer is longer than it may be.
    #[error(
        "{reference}: the {what} is longer than the {limit} bytes that it may have; reading stopped there"
    )]
    TooLong {
        /// The artifact.
        reference: String,
        /// What was read.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// The manifest is another one than was asked for.
    #[error(
        "{reference}: the registry sent the manifest of another artifact, {actual} in place of {expected}"
    )]
    OtherManifest {
        /// The artifact.
        reference: String,
        /// The digest that was asked for.
        expected: String,
        /// The digest of what came.
        actual: String,
    },
    /// The manifest describes something else than a component.
    #[error("{reference} is no WebAssembly component: {why}; push components with `vmhost push`")]
    NotAComponent {
        /// The artifact.
        reference: String,
        /// What it is.
        why: String,
    },
    /// The artifact has not one layer.
    #[error(
        "{reference} has {count} layers, and a component is exactly one: nobody can tell which of them was meant to run"
    )]
    Layers {
        /// The artifact.
        reference: String,
        /// How many there are.
        count: usize,
    },
    /// The component is not the one that the manifest names.
    #[error(
        "{reference}: the component was swapped: the manifest names {expected}, what came is {actual}"
    )]
    SwappedLayer {
        /// The artifact.
        reference: String,
        /// The digest in the manifest.
        expected: String,
        /// The digest of what came.
        actual: String,
    },
    /// A key cannot be used.
    #[error("key {name}: {why}")]
    Key {
        /// The key's name or file.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The trusted root cannot be used.
    #[error("the trusted root cannot be used: {0}")]
    Root(String),
    /// Nobody's signature would count.
    #[error("no key and no identity is trusted: name those whose signatures count")]
    NobodyTrusted,
    /// The artifact has no signature.
    #[error("artifact {digest} has no signature: sign it with `vmhost sign` or cosign")]
    Unsigned {
        /// The artifact's digest.
        digest: String,
    },
    /// A mirror has no signatures, and the artifact's own registry could not be asked for them.
    #[error(
        "artifact {digest} came from a mirror without signatures, and its registry could not be \
         asked for them: {why}"
    )]
    UnreadSignatures {
        /// The artifact's digest.
        digest: String,
        /// What happened.
        why: String,
    },
    /// The artifact has a signature in cosign's old format only.
    #[error(
        "artifact {digest} has a signature in cosign's old format only (a tag that ends with .sig), which is not read: sign it again with `vmhost sign` or cosign 3"
    )]
    OldSignature {
        /// The artifact's digest.
        digest: String,
    },
    /// The signature is of somebody else.
    #[error(
        "artifact {digest} is signed by {signer}, who is not trusted: have it signed by somebody who is, or trust that signer"
    )]
    OtherSigner {
        /// The artifact's digest.
        digest: String,
        /// Who signed, as far as the signature says.
        signer: String,
    },
    /// The signature was made for another artifact.
    #[error(
        "artifact {digest} carries a signature of another artifact ({signed}): somebody attached it here"
    )]
    OtherArtifact {
        /// The artifact's digest.
        digest: String,
        /// What was signed.
        signed: String,
    },
    /// The signature was made with a certificate that was no longer valid.
    #[error(
        "artifact {digest} was signed by {signer} at {at}, with a certificate that had expired at {until}: sign it again"
    )]
    ExpiredIdentity {
        /// The artifact's digest.
        digest: String,
        /// Whose certificate it is.
        signer: String,
        /// When it was signed.
        at: String,
        /// Until when the certificate was valid.
        until: String,
    },
    /// An identity's signature cannot be verified without a trusted root.
    #[error(
        "artifact {digest} is signed by an identity, which takes a trusted root to verify: give its file (trusted_root.json)"
    )]
    NoRoot {
        /// The artifact's digest.
        digest: String,
    },
    /// The signature does not hold.
    #[error("artifact {digest} has a signature that does not hold: {why}")]
    BadSignature {
        /// The artifact's digest.
        digest: String,
        /// What is wrong with it.
        why: String,
    },
    /// Fewer trusted signers than are wanted.
    #[error(
        "artifact {digest} is signed by {found} of the trusted signers, and {wanted} must have signed it"
    )]
    TooFew {
        /// The artifact's digest.
        digest: String,
        /// How many different trusted signers signed it.
        found: usize,
        /// How many must.
        wanted: usize,
    },
}

impl Error {
    /// Returns whether the same operation may succeed later without a change by anybody here.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Slow { .. } | Self::UnreadSignatures { .. } => true,
            Self::Answer { code, .. } => *code == 429 || *code >= 500,
            _ => false,
        }
    }

    /// Returns whether other credentials may help. Some registries hide what is not to be read.
    pub fn may_be_the_credentials(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::NotFound { .. })
    }

    /// Returns whether it is about the place that was asked, so that another one may do better. It
    /// is not if the settings of this side are wrong.
    pub(crate) fn is_of_the_place(&self) -> bool {
        !matches!(
            self,
            Self::Reference { .. }
                | Self::NotLoopback { .. }
                | Self::Setup(_)
                | Self::Credentials(_)
        )
    }
}
