//! Reads an artifact: its manifest, its component, and the signatures that refer to it. This module
//! must not know whose signatures count.

use std::time::Duration;

use bytes::Bytes;
use reqwest::StatusCode;

use crate::access::Access;
use crate::artifact::{ACCEPT, MANIFEST_MAX, Manifest, check_layer, check_manifest};
use crate::digest;
use crate::error::Error;
use crate::reference::Reference;
use crate::referrers;
use crate::wire::{Scope, Wire, within};

/// The header with the digest of a manifest.
const DIGEST_HEADER: &str = "docker-content-digest";

/// The largest component, unless the caller says otherwise: what the host loads at most.
const COMPONENT_MAX: u64 = 64 * 1024 * 1024;

/// What is read of an artifact, and how.
#[derive(Clone, Copy, Debug)]
pub struct Pull<'a> {
    /// How the registry is reached.
    pub access: Access<'a>,
    /// How many bytes the component may have.
    pub component_limit: u64,
    /// Whether the signatures are read, too.
    pub signatures: bool,
}

/// An artifact as it came from a registry. What is in here was compared with the digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// The digest of the manifest: `sha256:` and 64 digits.
    pub digest: String,
    /// The component.
    pub component: Bytes,
    /// The manifest, as the registry keeps it.
    pub manifest: Bytes,
    /// The signature bundles that refer to the manifest. Nobody has verified them.
    pub signatures: Vec<Bytes>,
    /// Whether there is a signature in cosign's old format, which is not read.
    pub old_signature: bool,
    /// Why the artifact's own registry could not be asked for signatures, if it could not: the
    /// artifact came from a mirror that has none.
    pub signatures_unread: Option<String>,
}

impl<'a> Pull<'a> {
    /// Returns the defaults with this access.
    pub fn new(access: Access<'a>) -> Self {
        Self {
            access,
            component_limit: COMPONENT_MAX,
            signatures: true,
        }
    }
}

impl Pulled {
    /// Compares all parts with the digests again, for an artifact that was kept in a file since.
    pub fn check(&self) -> Result<(), Error> {
        let name = format!("artifact {}", self.digest);
        check_manifest(&name, &self.manifest, &self.digest)?;
        let layer = Manifest::component(&name, &self.manifest)?;
        check_layer(&name, &self.component, &layer.digest)
    }
}

/// Returns the digest that a reference stands for now. A mirror may answer: what is to be signed is
/// resolved without mirrors.
pub async fn resolve(reference: &Reference, access: &Access<'_>) -> Result<String, Error> {
    if let Some(digest) = reference.digest() {
        return Ok(digest.to_owned());
    }
    within(access.timeout, reference, async {
        let mirrors = access.mirrors.of(reference);
        for mirror in &mirrors {
            let share = share(access, &mirrors);
            match within(share, mirror, resolve_at(mirror, access)).await {
                Err(error) if error.is_of_the_place() => passed_over(&error),
                done => return done,
            }
        }
        resolve_at(reference, access).await
    })
    .await
}

async fn resolve_at(place: &Reference, access: &Access<'_>) -> Result<String, Error> {
    let mut wire = Wire::new(access, place, Scope::Pull).await?;
    let path = format!("manifests/{}", place.version());
    let response = wire.head(&path, ACCEPT).await?;
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        let response = wire.success(response, "manifest").await?;
        let named = response.headers().get(DIGEST_HEADER);
        let named = named.and_then(|value| value.to_str().ok());
        if let Some(digest) = named.filter(|named| digest::hex_of(named).is_some()) {
            return Ok(digest.to_owned());
        }
    }
    // The header is optional.
    let manifest = manifest(&mut wire).await?;
    Ok(digest::of(&manifest))
}

/// Reads an artifact. Whatever differs from a digest, and whatever is longer than it may be, is
/// refused.
pub async fn pull(reference: &Reference, options: &Pull<'_>) -> Result<Pulled, Error> {
    let access = &options.access;
    within(access.timeout, reference, async {
        let mirrors = access.mirrors.of(reference);
        for mirror in &mirrors {
            let share = share(access, &mirrors);
            match within(share, mirror, pull_at(mirror, options)).await {
                Err(error) if error.is_of_the_place() => passed_over(&error),
                Err(error) => return Err(error),
                Ok(mut pulled) => {
                    if options.signatures && pulled.signatures.is_empty() {
                        let own = own_signatures(reference, &mut pulled, access);
                        let asked = within(share, reference, own).await;
                        if let Err(error) = asked {
                            passed_over(&error);
                            pulled.signatures_unread = Some(error.to_string());
                        }
                    }
                    return Ok(pulled);
                }
            }
        }
        pull_at(reference, options).await
    })
    .await
}

/// Reads the signatures from the artifact's own registry: many mirrors leave them out.
async fn own_signatures(
    reference: &Reference,
    pulled: &mut Pulled,
    access: &Access<'_>,
) -> Result<(), Error> {
    let mut wire = Wire::new(access, reference, Scope::Pull).await?;
    let (signatures, old_signature) = referrers::signatures(&mut wire, &pulled.digest).await?;
    pulled.signatures = signatures;
    pulled.old_signature |= old_signature;
    Ok(())
}

/// How long one mirror may take, so that there is time left for those behind it.
fn share(access: &Access<'_>, mirrors: &[Reference]) -> Duration {
    let places = u32::try_from(mirrors.len()).unwrap_or(u32::MAX);
    access.timeout / places.saturating_add(1)
}

/// Tells why a place was passed over: a mirror that sends something else is to be looked at.
fn passed_over(error: &Error) {
    match error {
        Error::NotFound { .. } => tracing::debug!("passed over: {error}"),
        error => tracing::warn!("passed over: {error}"),
    }
}

async fn pull_at(place: &Reference, options: &Pull<'_>) -> Result<Pulled, Error> {
    let mut wire = Wire::new(&options.access, place, Scope::Pull).await?;
    let manifest = manifest(&mut wire).await?;
    let digest = digest::of(&manifest);
    let name = place.to_string();
    let layer = Manifest::component(&name, &manifest)?;
    if layer.size > options.component_limit {
        return Err(Error::TooLong {
            reference: name,
            what: "component",
            limit: options.component_limit,
        });
    }
    let response = wire.get(&format!("blobs/{}", layer.digest), "*/*").await?;
    let response = wire.success(response, "component").await?;
    let component = wire.body(response, "component", layer.size).await?;
    let component = checked(name, component, layer.digest).await?;
    let (signatures, old_signature) = match options.signatures {
        true => referrers::signatures(&mut wire, &digest).await?,
        false => (Vec::new(), false),
    };
    Ok(Pulled {
        digest,
        component,
        manifest,
        signatures,
        old_signature,
        signatures_unread: None,
    })
}

/// Compares a component with its digest, away from the caller's runtime: hashing the largest one
/// takes a quarter of a second.
async fn checked(name: String, component: Bytes, digest: String) -> Result<Bytes, Error> {
    let checking = tokio::task::spawn_blocking(move || {
        check_layer(&name, &component, &digest).map(|()| component)
    });
    let cut_off = |error: tokio::task::JoinError| Err(Error::Setup(error.to_string()));
    checking.await.unwrap_or_else(cut_off)
}

/// Reads the manifest, and compares it with the digests that the reference and the registry name.
async fn manifest(wire: &mut Wire) -> Result<Bytes, Error> {
    let reference = wire.reference().clone();
    let path = format!("manifests/{}", reference.version());
    let response = wire.get(&path, ACCEPT).await?;
    let response = wire.success(response, "manifest").await?;
    let named = response.headers().get(DIGEST_HEADER);
    let named = named.and_then(|value| value.to_str().ok().map(str::to_owned));
    let body = wire.body(response, "manifest", MANIFEST_MAX).await?;
    if let Some(digest) = reference.digest() {
        check_manifest(&reference.to_string(), &body, digest)?;
    } else if let Some(digest) = named.filter(|named| digest::hex_of(named).is_some()) {
        check_manifest(&reference.to_string(), &body, &digest)?;
    }
    Ok(body)
}
