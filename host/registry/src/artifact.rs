//! The documents of an artifact: the manifest, its configuration in the CNCF Wasm format, and what
//! is refused in them. This module must not do I/O.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest;
use crate::error::Error;

/// The media type of a component's configuration.
pub const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";

/// The media type of a component.
pub const LAYER_TYPE: &str = "application/wasm";

/// The media type of manifests.
pub(crate) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// The media type of lists of manifests.
pub(crate) const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// The media type of docker's lists of manifests.
const DOCKER_LIST_TYPE: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// What something is called: an artifact, or the file that a layer becomes where `oras pull` writes
/// one. Layers without it are passed over there.
pub(crate) const TITLE: &str = "org.opencontainers.image.title";

/// What a registry is asked for when it is asked for a manifest. Without docker's types it would
/// hide what is refused here by what it is.
pub(crate) const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// How long a manifest may be.
pub(crate) const MANIFEST_MAX: u64 = 1024 * 1024;

/// The architecture and system of all components.
const ARCHITECTURE: &str = "wasm";
const SYSTEM: &str = "wasip2";

/// A document, and where it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    pub(crate) digest: String,
    pub(crate) size: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Manifest {
    pub(crate) schema_version: u32,
    pub(crate) media_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Descriptor>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A list of manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Index {
    pub(crate) schema_version: u32,
    pub(crate) media_type: String,
    pub(crate) manifests: Vec<Descriptor>,
}

/// The configuration of a component.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    created: &'a str,
    architecture: &'a str,
    os: &'a str,
    layer_digests: [String; 1],
    component: Interfaces<'a>,
}

/// What a component exports and imports.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Interfaces<'a> {
    pub(crate) exports: &'a [String],
    pub(crate) imports: &'a [String],
}

impl Descriptor {
    /// Returns the descriptor of bytes.
    pub(crate) fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: digest::of(bytes),
            size: bytes.len() as u64,
            ..Self::default()
        }
    }
}

impl Manifest {
    /// Returns the manifest of a component. The component is a file with the artifact's title.
    pub(crate) fn of_component(
        config: &[u8],
        component: &[u8],
        annotations: BTreeMap<String, String>,
    ) -> Self {
        let mut layer = Descriptor::of(LAYER_TYPE, component);
        if let Some(title) = annotations.get(TITLE) {
            let file = format!("{title}.wasm");
            layer.annotations.insert(TITLE.to_owned(), file);
        }
        Self {
            schema_version: 2,
            media_type: MANIFEST_TYPE.to_owned(),
            config: Descriptor::of(CONFIG_TYPE, config),
            layers: vec![layer],
            annotations,
            ..Self::default()
        }
    }

    /// Reads the manifest of a component and returns the descriptor of the component. Anything else
    /// is refused.
    pub(crate) fn component(name: &str, json: &[u8]) -> Result<Descriptor, Error> {
        let other = |why: String| Error::NotAComponent {
            reference: name.to_owned(),
            why,
        };
        let manifest: Self = serde_json::from_slice(json)
            .map_err(|error| other(format!("its manifest cannot be read: {error}")))?;
        let kind = manifest.media_type.as_str();
        if kind == INDEX_TYPE || kind == DOCKER_LIST_TYPE {
            let why = "it is a list of several artifacts; name one of them by its digest";
            return Err(other(why.to_owned()));
        }
        let config = &manifest.config.media_type;
        if config != CONFIG_TYPE {
            let config = vmhost_core::one_line(config);
            let why = format!("its configuration is {config:?}, not {CONFIG_TYPE}");
            return Err(other(why));
        }
        let [layer] =
            <[Descriptor; 1]>::try_from(manifest.layers).map_err(|layers| Error::Layers {
                reference: name.to_owned(),
                count: layers.len(),
            })?;
        if layer.media_type != LAYER_TYPE {
            let kind = vmhost_core::one_line(&layer.media_type);
            return Err(other(format!("its layer is {kind:?}, not {LAYER_TYPE}")));
        }
        if digest::hex_of(&layer.digest).is_none() {
            return Err(other("its layer has no sha256 digest".to_owned()));
        }
        Ok(layer)
    }
}

/// Returns the configuration of a component. `created` is a fixed time, so that the same component
/// has the same digest whoever pushes it.
pub(crate) fn config(component: &[u8], interfaces: Interfaces<'_>) -> impl Serialize {
    Config {
        created: "1970-01-01T00:00:00Z",
        architecture: ARCHITECTURE,
        os: SYSTEM,
        layer_digests: [digest::of(component)],
        component: interfaces,
    }
}

/// Compares a manifest with its digest. Errors name the artifact by `name`.
pub(crate) fn check_manifest(name: &str, manifest: &[u8], expected: &str) -> Result<(), Error> {
    let actual = digest::of(manifest);
    if actual == expected {
        return Ok(());
    }
    Err(Error::OtherManifest {
        reference: name.to_owned(),
        expected: expected.to_owned(),
        actual,
    })
}

/// Compares a component with the digest in its manifest. Errors name the artifact by `name`.
pub(crate) fn check_layer(name: &str, component: &[u8], expected: &str) -> Result<(), Error> {
    let actual = digest::of(component);
    if actual == expected {
        return Ok(());
    }
    Err(Error::SwappedLayer {
        reference: name.to_owned(),
        expected: expected.to_owned(),
        actual,
    })
}

#[cfg(test)]
mod tests;
