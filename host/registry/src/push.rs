//! Writes an artifact: its configuration, its component, its manifest. This module must not know
//! what a component is.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use reqwest::Response;
use serde::Serialize;

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
        let config = serialized(&wire, &artifact::config(&component.bytes, interfaces))?;
        let annotations = component.annotations.clone();
        let manifest = Manifest::of_component(&config, &component.bytes, annotations);
        let manifest = serialized(&wire, &manifest)?;
        let digest = digest::of(&manifest);
        put_blob(&mut wire, config).await?;
        put_blob(&mut wire, component.bytes.clone()).await?;
        put_manifest(&mut wire, reference.version(), MANIFEST_TYPE, manifest).await?;
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
    let headers = content_type("application/octet-stream");
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
    media_type: &'static str,
    manifest: Bytes,
) -> Result<Response, Error> {
    let url = wire.url(&format!("manifests/{version}"))?;
    let headers = content_type(media_type);
    let response = wire.send(Method::PUT, url, headers, manifest).await?;
    wire.success(response, "repository").await
}

/// Writes a document as JSON.
pub(crate) fn serialized(wire: &Wire, document: &impl Serialize) -> Result<Bytes, Error> {
    let json = serde_json::to_vec(document);
    let json = json.map_err(|error| wire.malformed(format!("a document to push: {error}")))?;
    Ok(Bytes::from(json))
}

fn content_type(media_type: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))])
}
