//! Reads a component from where a `Plugin` says it is: an image, a ConfigMap, or a file below the
//! host's folder. It must not know what the component is.

use std::path::{Component, Path};
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use vmhost_core::Snapshot;

use crate::conditions::Stop;
use crate::images::Signed;
use crate::object::{KeyRef, Plugin};
use crate::shared::Shared;
use crate::watched::{Kind, Watched};

mod image;

/// The origin of a component that is in a ConfigMap, as policies name it.
const CONFIG_MAP: &str = "configMap";

/// The origin of a component that is a file.
const PATH: &str = "path";

/// A component, with its origin.
pub(crate) struct Content {
    /// The origin, as policies name it: the reference, `configMap` or `path`.
    pub(crate) origin: String,
    /// The digest of the origin: an image's manifest, else the component.
    pub(crate) digest: String,
    pub(crate) component: Bytes,
    pub(crate) signed: Option<Box<dyn Signed>>,
}

/// What is known of a source from earlier looks.
#[derive(Default)]
pub(crate) struct Known {
    /// The content that was read last, with the reference or place.
    last: Option<(String, Arc<Content>)>,
    /// The reference that was resolved last, its digest, and when it was looked at.
    resolved: Option<(String, String, Instant)>,
    /// What the tag stands for now, if that is something else.
    pub(crate) moved_to: Option<String>,
    /// The ConfigMap and the key that were read last, and their content.
    map: Option<(Snapshot, String, Arc<Content>)>,
    /// Length and time of the file that was read last.
    stamp: Option<(u64, SystemTime)>,
    /// The only digest of the origin that is good: of an earlier revision.
    pin: Option<String>,
    /// The component, if it does not have to be read.
    held: Option<Arc<Content>>,
    /// Whether an image may be read with the host's own login.
    pub(crate) lends: bool,
}

impl Known {
    /// A source that has to have this digest.
    pub(crate) fn pinned(digest: &str) -> Self {
        Self {
            pin: Some(digest.to_owned()),
            ..Self::default()
        }
    }

    /// A source whose component is at hand.
    pub(crate) fn held(content: Content) -> Self {
        Self {
            held: Some(Arc::new(content)),
            ..Self::default()
        }
    }

    /// Reads the component. What was read before is not read again.
    pub(crate) async fn read(
        &mut self,
        shared: &Shared,
        plugin: &Plugin,
        watched: &mut Watched,
    ) -> Result<Arc<Content>, Stop> {
        if let Some(held) = &self.held {
            return Ok(held.clone());
        }
        let content = self.read_anew(shared, plugin, watched).await?;
        match &self.pin {
            Some(pin) if content.digest != *pin => Err(pulled(format!(
                "{} holds {} now, and not {pin}",
                place_of(plugin),
                content.digest
            ))),
            _ => Ok(content),
        }
    }

    async fn read_anew(
        &mut self,
        shared: &Shared,
        plugin: &Plugin,
        watched: &mut Watched,
    ) -> Result<Arc<Content>, Stop> {
        let spec = &plugin.spec;
        if let Some(image) = &spec.image {
            return self.image(shared, plugin, of_image(image), watched).await;
        }
        if let Some(from) = &spec.config_map_ref {
            return self.config_map(shared, from, watched).await;
        }
        match &spec.path {
            Some(path) => self.file(shared, path).await,
            None => Err(pulled("none of image, configMapRef and path is given")),
        }
    }

    async fn config_map(
        &mut self,
        shared: &Shared,
        from: &KeyRef,
        watched: &mut Watched,
    ) -> Result<Arc<Content>, Stop> {
        let informers = &shared.given.plugins.informers;
        let KeyRef { name, key } = from;
        let object = watched.snapshot(informers, Kind::ConfigMap, name).await;
        let object = object.map_err(pulled)?;
        if let Some((of, at, content)) = &self.map
            && Arc::ptr_eq(of, &object)
            && at == key
        {
            return Ok(content.clone());
        }
        let map = serde_json::from_str::<Value>(&object.text);
        let map = map.map_err(|_| pulled(format!("ConfigMap {name} is malformed")))?;
        let text = map.get("binaryData").and_then(|data| data.get(key));
        let text = text.and_then(Value::as_str).ok_or_else(|| {
            pulled(format!(
                "ConfigMap {name} has no key {key} in its binaryData"
            ))
        })?;
        let bytes = BASE64_STANDARD
            .decode(text)
            .map_err(|_| pulled(format!("key {key} of ConfigMap {name} is not base64")))?;
        let content = of_bytes(CONFIG_MAP, bytes.into());
        let place = format!("configMap {}", content.digest);
        let content = match self.last_of(&place) {
            Some(last) => last,
            None => self.keep(place, content),
        };
        self.map = Some((object, key.clone(), content.clone()));
        Ok(content)
    }

    async fn file(&mut self, shared: &Shared, path: &str) -> Result<Arc<Content>, Stop> {
        let folder = shared.options.folder.as_deref().ok_or_else(|| {
            pulled("spec.path needs a host with --plugin-folder, below which it names files")
        })?;
        let limit = shared.given.plugins.loader.config.limits.component;
        let refused = |why: String| pulled(format!("spec.path {path}: {why}"));
        let failed = |error: std::io::Error| refused(error.to_string());
        let found = below(folder, path).await.map_err(failed)?;
        let metadata = tokio::fs::metadata(&found).await.map_err(failed)?;
        if !metadata.is_file() {
            return Err(refused("it is not a regular file".to_owned()));
        }
        if metadata.len() > limit {
            let length = metadata.len();
            let why = format!("{length} bytes are more than the host's limit of {limit}");
            return Err(refused(why));
        }
        let place = format!("path {}", found.display());
        let stamp = (metadata.len(), metadata.modified().map_err(failed)?);
        if self.stamp == Some(stamp)
            && let Some(content) = self.last_of(&place)
        {
            return Ok(content);
        }
        let bytes = tokio::fs::read(&found).await.map_err(failed)?;
        self.stamp = Some(stamp);
        Ok(self.keep(place, of_bytes(PATH, bytes.into())))
    }

    /// Reads the component again at the next look.
    pub(crate) fn forget(&mut self) {
        (self.last, self.map) = (None, None);
    }

    fn last_of(&self, place: &str) -> Option<Arc<Content>> {
        let (of, content) = self.last.as_ref()?;
        (of == place).then(|| content.clone())
    }

    fn keep(&mut self, place: String, content: Content) -> Arc<Content> {
        let content = Arc::new(content);
        self.last = Some((place, content.clone()));
        content
    }
}

/// Where a component is, in words.
fn place_of(plugin: &Plugin) -> String {
    let spec = &plugin.spec;
    match (&spec.image, &spec.config_map_ref, &spec.path) {
        (Some(image), ..) => image.clone(),
        (_, Some(from), _) => format!("key {} of ConfigMap {}", from.key, from.name),
        (.., path) => path.clone().unwrap_or_default(),
    }
}

/// The file that a path names below a folder, whatever links it goes through.
async fn below(folder: &Path, path: &str) -> std::io::Result<std::path::PathBuf> {
    let outside = || std::io::Error::other("it is not below --plugin-folder");
    let is_below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    // Asked first: the error must not tell whether another file of this machine exists.
    if !Path::new(path).components().all(is_below) {
        return Err(outside());
    }
    let folder = tokio::fs::canonicalize(folder).await?;
    let found = tokio::fs::canonicalize(folder.join(path)).await?;
    match found.starts_with(&folder) {
        true => Ok(found),
        false => Err(outside()),
    }
}

/// The origin of an image, as policies name it.
pub(crate) fn of_image(image: &str) -> &str {
    image.strip_prefix("oci://").unwrap_or(image)
}

/// The origin of what a `spec` names, as policies name it. `None` if it names nothing.
pub(crate) fn origin_of(plugin: &Plugin) -> Option<String> {
    let spec = &plugin.spec;
    match (&spec.image, &spec.config_map_ref, &spec.path) {
        (Some(image), ..) => Some(of_image(image).to_owned()),
        (_, Some(_), _) => Some(CONFIG_MAP.to_owned()),
        (.., Some(_)) => Some(PATH.to_owned()),
        _ => None,
    }
}

fn of_bytes(origin: &str, component: Bytes) -> Content {
    Content {
        origin: origin.to_owned(),
        digest: format!("sha256:{}", hex::encode(Sha256::digest(&component))),
        component,
        signed: None,
    }
}

fn pulled(message: impl Into<String>) -> Stop {
    Stop::at("Pulled", "SourceUnusable", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_path_does_not_leave_its_folder() {
        let folder = std::env::temp_dir();
        for path in [
            "../etc/hostname",
            "/etc/hostname",
            "a/../../no-such-file",
            "/no-such-file",
        ] {
            let why = below(&folder, path).await.unwrap_err().to_string();
            assert_eq!(why, "it is not below --plugin-folder", "{path}");
        }
    }

    #[test]
    fn bytes_are_known_by_their_digest() {
        let content = of_bytes("path", Bytes::from_static(b"abc"));
        let digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(content.digest, digest);
    }
}
