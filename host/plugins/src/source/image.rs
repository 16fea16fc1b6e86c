//! Reads a component from a registry. A tag is resolved once into a digest, and what is read is
//! what has that digest. It must not know how a registry is spoken to.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use tokio::time::Instant;

use super::{Content, Known, pulled};
use crate::conditions::Stop;
use crate::images::{Image, Images};
use crate::object::{ImagePolicy, Plugin};
use crate::quantity;
use crate::shared::Shared;
use crate::watched::{Kind, Watched};

/// How often a tag is looked at, unless the object says otherwise.
const INTERVAL: Duration = Duration::from_secs(300);

impl Known {
    pub(super) async fn image(
        &mut self,
        shared: &Shared,
        plugin: &Plugin,
        reference: &str,
        watched: &mut Watched,
    ) -> Result<Arc<Content>, Stop> {
        let images = shared.options.images.as_ref().ok_or_else(|| {
            pulled("this host reads no images: use configMapRef or path, or another build")
        })?;
        let image = Image {
            reference: reference.to_owned(),
            logins: logins(shared, plugin, watched).await?,
            lends: self.lends,
            limit: shared.given.plugins.loader.config.limits.component,
        };
        let digest = self.digest(shared, &**images, plugin, &image).await?;
        let place = format!("{reference} {digest}");
        if let Some(content) = self.last_of(&place) {
            return Ok(content);
        }
        let _place = shared
            .readers
            .take(&plugin.metadata.namespace, "Pulled")
            .await?;
        let read = images.pull(&image, &digest).await;
        let read = read.map_err(|why| Stop::at("Pulled", "PullFailed", why))?;
        let content = Content {
            origin: reference.to_owned(),
            digest: read.digest,
            component: read.component,
            signed: Some(read.signed),
        };
        Ok(self.keep(place, content))
    }

    /// The digest of an image. A tag is resolved once, by the leader, unless it is to be followed.
    async fn digest(
        &mut self,
        shared: &Shared,
        images: &dyn Images,
        plugin: &Plugin,
        image: &Image,
    ) -> Result<String, Stop> {
        if let Some(pin) = &self.pin {
            return Ok(pin.clone());
        }
        if let Some((_, digest)) = image.reference.split_once('@') {
            self.moved_to = None;
            return Ok(digest.to_owned());
        }
        let status = &plugin.status;
        let is_reported = status.image.as_deref() == Some(image.reference.as_str());
        let reported = status.digest.as_ref().filter(|_| is_reported);
        if !shared.given.leads() {
            // Two hosts that both ask could get two answers.
            self.resolved = None;
            let waits = "the tag is not resolved by the leader yet";
            return reported
                .cloned()
                .ok_or_else(|| Stop::at("Pulled", "WaitsForLeader", waits));
        }
        let resolved = self.resolved.take();
        let resolved = resolved.filter(|(of, ..)| *of == image.reference);
        let (mut digest, mut looked) = match (resolved, reported) {
            (Some((_, digest, looked)), _) => (digest, looked),
            // It was resolved before, by this host or by another one.
            (None, Some(digest)) => {
                self.moved_to = status.moved_to.clone();
                (digest.clone(), Instant::now())
            }
            (None, None) => {
                self.moved_to = None;
                (resolve(images, image).await?, Instant::now())
            }
        };
        if looked.elapsed() >= interval(plugin)? {
            looked = Instant::now();
            // A registry that is away changes nothing.
            if let Ok(now) = images.resolve(image).await {
                match plugin.spec.image_policy {
                    ImagePolicy::Follow => {
                        self.moved_to = None;
                        digest = now;
                    }
                    ImagePolicy::Once => self.moved_to = (now != digest).then_some(now),
                }
            }
        }
        self.resolved = Some((image.reference.clone(), digest.clone(), looked));
        Ok(digest)
    }
}

/// How often a tag is looked at.
fn interval(plugin: &Plugin) -> Result<Duration, Stop> {
    let interval = plugin.spec.image_interval.as_deref();
    let interval = interval.map(quantity::duration).transpose();
    let interval = interval.map_err(|why| pulled(format!("spec.imageInterval: {why}")))?;
    Ok(interval.unwrap_or(INTERVAL))
}

async fn resolve(images: &dyn Images, image: &Image) -> Result<String, Stop> {
    let resolved = images.resolve(image).await;
    resolved.map_err(|why| Stop::at("Pulled", "ResolveFailed", why))
}

/// docker's `config.json` out of each pull secret.
async fn logins(
    shared: &Shared,
    plugin: &Plugin,
    watched: &mut Watched,
) -> Result<Vec<Vec<u8>>, Stop> {
    let mut logins = Vec::new();
    for secret in &plugin.spec.pull_secrets {
        let informers = &shared.given.plugins.informers;
        let found = watched.get(informers, Kind::Secret, &secret.name).await;
        let found = found.map_err(pulled)?;
        let data = found
            .get("data")
            .and_then(|data| data.get(".dockerconfigjson"));
        let login = data
            .and_then(Value::as_str)
            .and_then(|text| BASE64_STANDARD.decode(text).ok());
        logins.push(login.ok_or_else(|| {
            let name = &secret.name;
            pulled(format!(
                "Secret {name} has no .dockerconfigjson: it is no pull secret"
            ))
        })?);
    }
    Ok(logins)
}
