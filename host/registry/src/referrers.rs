//! Artifacts that refer to another: signature bundles as cosign attaches them. This module must not
//! know what a bundle says.

use bytes::Bytes;
use http::header::{HeaderMap, LINK};
use http::{Method, StatusCode};
use reqwest::Url;

use crate::access::Access;
use crate::artifact::{
    ACCEPT, Descriptor, INDEX_TYPE, Index, MANIFEST_MAX, MANIFEST_TYPE, Manifest, check_manifest,
};
use crate::digest;
use crate::error::Error;
use crate::push::{put_blob, put_manifest, serialized};
use crate::reference::Reference;
use crate::wire::{Scope, Wire, within};

/// The media type of bundles, and the artifact type of what carries one.
pub(crate) const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// How the media types of all versions of bundles begin. Those before v0.3 are read, too, so that
/// they are refused by what they are.
const BUNDLE_PREFIX: &str = "application/vnd.dev.sigstore.bundle";

/// The empty configuration of artifacts that need none.
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const EMPTY: &[u8] = b"{}";

/// How errors call a list of artifacts that refer to another.
const LIST: &str = "list of signatures";

/// How long a bundle may be. One has some KiB.
const BUNDLE_MAX: u64 = 256 * 1024;

/// How many bundles of one artifact are read. Attestations are bundles, too, of which a build may
/// leave a dozen; with all at their limit these are 16 MiB.
const BUNDLES_MAX: usize = 64;

/// How many pages of a list are read. A page has a hundred entries or more.
const PAGES_MAX: usize = 16;

/// With this header a registry says that it lists what refers to another artifact by itself.
const SUBJECT_HEADER: &str = "oci-subject";

/// Reads the bundles that refer to a manifest, and returns whether there is a signature in the old
/// format, too: bundles may say where something was built, next to an old signature.
pub(crate) async fn signatures(wire: &mut Wire, digest: &str) -> Result<(Vec<Bytes>, bool), Error> {
    let index = index(wire, digest).await?;
    let are_bundles = index.manifests.into_iter().filter(|referrer| {
        let kind = referrer.artifact_type.as_deref().unwrap_or_default();
        kind.starts_with(BUNDLE_PREFIX)
    });
    let mut bundles = Vec::new();
    for referrer in are_bundles.take(BUNDLES_MAX) {
        match bundle(wire, &referrer.digest).await {
            Ok(bundle) => bundles.push(bundle),
            Err(error) if error.may_pass() => return Err(error),
            // Who may push may also attach something broken. It must not hide a good signature.
            Err(error) => tracing::debug!("a signature of {digest} is passed over: {error}"),
        }
    }
    let old = has_old(wire, digest).await?;
    Ok((bundles, old))
}

/// Attaches a bundle to the artifact with a digest, which must be a component. Returns the digest
/// of what carries it.
pub async fn attach(
    reference: &Reference,
    digest: &str,
    bundle: Bytes,
    access: &Access<'_>,
) -> Result<String, Error> {
    let subject = reference.with_digest(digest);
    within(access.timeout, reference, async {
        let mut wire = Wire::new(access, &subject, Scope::Push).await?;
        let signed = manifest_of(&mut wire, digest).await?;
        Manifest::component(&subject.to_string(), &signed)?;
        put_blob(&mut wire, Bytes::from_static(EMPTY)).await?;
        put_blob(&mut wire, bundle.clone()).await?;
        let carrier = carrier(Descriptor::of(MANIFEST_TYPE, &signed), &bundle);
        let json = serialized(&wire, &carrier)?;
        let mut listed = Descriptor::of(MANIFEST_TYPE, &json);
        let place = listed.digest.clone();
        let response = put_manifest(&mut wire, &place, MANIFEST_TYPE, json).await?;
        if !response.headers().contains_key(SUBJECT_HEADER) {
            listed.artifact_type = carrier.artifact_type;
            listed.annotations = carrier.annotations;
            list(&mut wire, digest, listed).await?;
        }
        Ok(place)
    })
    .await
}

/// Returns the manifest that carries a bundle.
fn carrier(subject: Descriptor, bundle: &[u8]) -> Manifest {
    let annotations = [
        ("dev.sigstore.bundle.content", "dsse-envelope"),
        ("dev.sigstore.bundle.predicateType", crate::sign::PREDICATE),
    ];
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    Manifest {
        schema_version: 2,
        media_type: MANIFEST_TYPE.to_owned(),
        artifact_type: Some(BUNDLE_TYPE.to_owned()),
        config: Descriptor::of(EMPTY_TYPE, EMPTY),
        layers: vec![Descriptor::of(BUNDLE_TYPE, bundle)],
        subject: Some(subject),
        annotations: annotations.into_iter().map(owned).collect(),
    }
}

/// Adds an artifact to the list that stands in for a registry that keeps none, under the tag that
/// the specification names. Of two signatures that are attached at once, one may be lost: nothing
/// guards the tag.
async fn list(wire: &mut Wire, digest: &str, listed: Descriptor) -> Result<(), Error> {
    let mut index = tagged(wire, digest).await?;
    index.schema_version = 2;
    index.media_type = INDEX_TYPE.to_owned();
    index
        .manifests
        .retain(|other| other.digest != listed.digest);
    index.manifests.push(listed);
    let json = serialized(wire, &index)?;
    put_manifest(wire, &tag(digest), INDEX_TYPE, json).await?;
    Ok(())
}

/// The tag of the list of artifacts that refer to another.
fn tag(digest: &str) -> String {
    digest.replace(':', "-")
}

/// Returns the list of artifacts that refer to a manifest, from the registry's interface, else from
/// the tag that stands in for it.
async fn index(wire: &mut Wire, digest: &str) -> Result<Index, Error> {
    let mut url = wire.url(&format!("referrers/{digest}"))?;
    let mut all = Index::default();
    for page in 0..PAGES_MAX {
        let response = wire.read_from(Method::GET, url.clone(), INDEX_TYPE).await?;
        if page == 0 && has_no_lists(response.status()) {
            return tagged(wire, digest).await;
        }
        let response = wire.success(response, LIST).await?;
        let next = next_page(&url, response.headers());
        let body = wire.body(response, LIST, MANIFEST_MAX).await?;
        all.manifests.extend(parsed(wire, &body)?.manifests);
        // Only the registry itself lists what is in it.
        match next.filter(|next| wire.is_ours(next)) {
            Some(next) => url = next,
            None => break,
        }
    }
    Ok(all)
}

/// Returns whether this is the answer of a registry that keeps no lists. Some refuse paths that
/// they do not know in their own way. One that refuses every request also refuses the one for the
/// tag.
fn has_no_lists(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND
            | StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::BAD_REQUEST
            | StatusCode::NOT_IMPLEMENTED
    )
}

/// Returns the address of the next page of a list: `Link: </v2/...>; rel="next"`.
fn next_page(url: &Url, headers: &HeaderMap) -> Option<Url> {
    let links = headers.get_all(LINK).iter();
    let mut links = links.filter_map(|link| link.to_str().ok());
    links.find_map(|link| {
        let (place, kind) = link.strip_prefix('<')?.split_once('>')?;
        let kind = kind.replace(['"', ' '], "");
        let is_next = kind.split(';').any(|part| part == "rel=next");
        is_next.then(|| url.join(place).ok()).flatten()
    })
}

async fn tagged(wire: &mut Wire, digest: &str) -> Result<Index, Error> {
    let response = wire
        .get(&format!("manifests/{}", tag(digest)), INDEX_TYPE)
        .await?;
    if response.status() == StatusCode::NOT_FOUND {
        return Ok(Index::default());
    }
    let response = wire.success(response, LIST).await?;
    let body = wire.body(response, LIST, MANIFEST_MAX).await?;
    parsed(wire, &body)
}

fn parsed(wire: &Wire, json: &[u8]) -> Result<Index, Error> {
    serde_json::from_slice(json)
        .map_err(|error| wire.malformed(format!("its list of signatures: {error}")))
}

/// Reads one bundle.
async fn bundle(wire: &mut Wire, digest: &str) -> Result<Bytes, Error> {
    let json = manifest_of(wire, digest).await?;
    let manifest: Manifest = serde_json::from_slice(&json)
        .map_err(|error| wire.malformed(format!("the manifest of a signature: {error}")))?;
    let [layer] = manifest.layers.as_slice() else {
        return Err(wire.malformed("a signature is one layer"));
    };
    if digest::hex_of(&layer.digest).is_none() {
        return Err(wire.malformed("a signature has no sha256 digest"));
    }
    let response = wire.get(&format!("blobs/{}", layer.digest), "*/*").await?;
    let response = wire.success(response, "signature").await?;
    let bundle = wire.body(response, "signature", BUNDLE_MAX).await?;
    if digest::of(&bundle) != layer.digest {
        return Err(wire.malformed("a signature is not the one that its manifest names"));
    }
    Ok(bundle)
}

/// Reads a manifest by its digest.
async fn manifest_of(wire: &mut Wire, digest: &str) -> Result<Bytes, Error> {
    if digest::hex_of(digest).is_none() {
        return Err(wire.malformed("a manifest has no sha256 digest"));
    }
    let response = wire.get(&format!("manifests/{digest}"), ACCEPT).await?;
    let response = wire.success(response, "manifest").await?;
    let json = wire.body(response, "manifest", MANIFEST_MAX).await?;
    check_manifest(&wire.reference().to_string(), &json, digest)?;
    Ok(json)
}

/// Returns whether cosign's old format has a signature: a tag of its own.
async fn has_old(wire: &mut Wire, digest: &str) -> Result<bool, Error> {
    let path = format!("manifests/{}.sig", tag(digest));
    Ok(wire.head(&path, ACCEPT).await?.status().is_success())
}
