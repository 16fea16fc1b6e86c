//! Writes an artifact: its configuration, its component, its manifest. This module must not know
//! what a component is.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use reqwest::Response;

use crate::access::{Access, may_lead};
use crate::artifact::{self, Interfaces, MANIFEST_TYPE, Manifest};
use crate::digest;
use crate::error::Error;
use crate::reference::Reference;
use crate::wire::{Scope, Wire, within};

/// A component to push.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its bytes.
    pub bytes: Bytes,
    /// What it exports.
    pub exports: Vec<String>,
    /// What it imports.
    pub imports: Vec<String>,
    /// What else the manifest says.
    pub annotations: BTreeMap<String, String>,
}

/// Pushes a component. Returns the digest of its manifest. The same component and annotations have
/// the same digest, whoever pushes them and when.
pub async fn push(
    reference: &Reference,
    component: &Component,
    access: &Access<'_>,
) -> Result<String, Error> {
    if reference.digest().is_some() {
        return Err(Error::Reference {
            text: reference.to_string(),
            why: "a push names a tag; the digest comes of what is pushed",
        });
    }
    within(access.timeout, reference, async {
        let mut wire = Wire::new(access, reference, Scope::Push).await?;
        let interfaces = Interfaces {
            exports: &component.exports,
            imports: &component.imports,
        };
        let unwritten =
            |error: serde_json::Error| wire.malformed(format!("a document to push: {error}"));
        let config = artifact::config(&component.bytes, interfaces).map_err(unwritten)?;
        let annotations = component.annotations.clone();
        let manifest = Manifest::of_component(&config, &component.bytes, annotations);
        let manifest = serde_json::to_vec(&manifest).map_err(unwritten)?;
        let digest = digest::of(&manifest);
        put_blob(&mut wire, config.into()).await?;
        put_blob(&mut wire, component.bytes.clone()).await?;
        put_manifest(
            &mut wire,
            reference.version(),
            MANIFEST_TYPE,
            manifest.into(),
        )
        .await?;
        Ok(digest)
    })
    .await
}

/// Writes bytes into the repository, unless they are there.
pub(crate) async fn put_blob(wire: &mut Wire, bytes: Bytes) -> Result<(), Error> {
    let digest = digest::of(&bytes);
    let response = wire.head(&format!("blobs/{digest}"), "*/*").await?;
    if response.status().is_success() {
        return Ok(());
    }
    let begin = wire.url("blobs/uploads/")?;
    // Some registries insist on it.
    let empty = HeaderMap::from_iter([(CONTENT_LENGTH, HeaderValue::from_static("0"))]);
    let response = wire
        .send(Method::POST, begin.clone(), empty, Bytes::new())
        .await?;
    let response = wire.success(response, "repository").await?;
    let location = response.headers().get(LOCATION);
    let location = location.and_then(|value| value.to_str().ok());
    // It may be relative.
    let upload = location.and_then(|location| begin.join(location).ok());
    let Some(mut upload) = upload else {
        return Err(wire.malformed("it names no place for the upload"));
    };
    if !may_lead(&begin, &upload) {
        return Err(wire.malformed("it wants the upload sent without TLS"));
    }
    upload.query_pairs_mut().append_pair("digest", &digest);
    let headers = kind(wire, "application/octet-stream")?;
    let response = wire.send(Method::PUT, upload, headers, bytes).await?;
    let response = wire.success(response, "upload").await?;
    match response.status() {
        StatusCode::CREATED | StatusCode::OK | StatusCode::NO_CONTENT => Ok(()),
        other => Err(wire.malformed(format!("it answered an upload with {other}"))),
    }
}

/// Writes a manifest under a tag or its digest.
pub(crate) async fn put_manifest(
    wire: &mut Wire,
    version: &str,
    media_type: &str,
    manifest: Bytes,
) -> Result<Response, Error> {
    let url = wire.url(&format!("manifests/{version}"))?;
    let headers = kind(wire, media_type)?;
    let response = wire.send(Method::PUT, url, headers, manifest).await?;
    wire.success(response, "repository").await
}

fn kind(wire: &Wire, media_type: &str) -> Result<HeaderMap, Error> {
    let value = HeaderValue::from_str(media_type)
        .map_err(|_| wire.malformed("a media type that no header may have"))?;
    Ok(HeaderMap::from_iter([(CONTENT_TYPE, value)]))
}
