//! **Call.** One generation of a policy: its description, its image, and the instances that serve
//! its calls.
//!
//! An idle policy shrinks to its description: its instances are dropped, and also its image if a
//! file holds it. The next call maps the image again. This module must not know which generation is
//! live.

use std::sync::Arc;
use std::time::Instant;

use vmhost_core::{
    Description, Limits, MapRequest, ObjectName, ObjectReader, Outcome, Request, Trace, one_line,
};

use crate::code::Code;
use crate::engine::Engine;
use crate::error::CallError;
use crate::image::Image;
use crate::instance::Instance;
use crate::script::Script;
use crate::state::Settings;
use crate::world::World;

mod load;
pub(crate) mod pool;
mod still;
mod told;

use pool::{Counted, InstanceStats, Numbered, Pool};

/// A component that has described itself. Many tasks can call it at once.
pub struct Plugin {
    engine: Engine,
    limits: Limits,
    settings: Arc<Settings>,
    description: Description,
    imports: Vec<String>,
    /// Digest of the component, and of the script if there is one.
    digest: String,
    component: String,
    script: Option<Script>,
    size: usize,
    pool: Pool,
    /// Held by the task that maps the image; other tasks wait.
    mapping: tokio::sync::Mutex<()>,
}

/// What `vmhost inspect` shows.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Size of the component in bytes.
    pub size: usize,
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// The contract that the component exports.
    pub contract: String,
    /// The interfaces that the component imports.
    pub imports: Vec<String>,
    /// What `describe` returned.
    pub description: Description,
}

impl Plugin {
    /// Runs one turn: from a snapshot to effects. Calls `started` when there is an instance, just
    /// before the guest runs. Writes into `trace`, which is empty, what the call asked the host,
    /// also if it failed.
    pub async fn call(
        &self,
        request: &Request<'_>,
        reader: Arc<dyn ObjectReader>,
        trace: &mut Trace,
        started: impl FnOnce(),
    ) -> Result<Outcome, CallError> {
        let mut counted = self.take().await?;
        started();
        let outcome = counted
            .instance
            .reconcile(&self.engine, &self.limits, request, reader, trace)
            .await?;
        self.pool.give_back(counted);
        Ok(outcome)
    }

    /// Maps changes of other objects to keys. Calls `started` like [`Plugin::call`]. The inner
    /// error is the policy's own text.
    pub async fn map_changes(
        &self,
        request: &MapRequest<'_>,
        reader: Arc<dyn ObjectReader>,
        started: impl FnOnce(),
    ) -> Result<Result<Vec<ObjectName>, String>, CallError> {
        let mut counted = self.take().await?;
        started();
        let names = counted
            .instance
            .map(&self.engine, &self.limits, request, reader)
            .await?;
        self.pool.give_back(counted);
        Ok(names)
    }

    /// Takes an idle instance of the current image, or creates one.
    async fn take(&self) -> Result<Counted, CallError> {
        match self.pool.pop() {
            Some(idle) => Ok(idle),
            // Boxed, so that the future of a call that finds one stays small: it is moved.
            None => Box::pin(self.create()).await,
        }
    }

    async fn create(&self) -> Result<Counted, CallError> {
        let of = self.image().await?;
        let most = of.image.most;
        if self.pool.live() >= most {
            return Err(CallError::Busy(format!(
                "the plugin has {most} instances already"
            )));
        }
        let settings = self.settings.clone();
        let instance = self.start(&of.image, settings, World::Real).await?;
        Ok(self.pool.count(&of, instance))
    }

    async fn start(
        &self,
        image: &Image,
        settings: Arc<Settings>,
        world: World,
    ) -> Result<Instance, CallError> {
        let (engine, limits) = (&self.engine, &self.limits);
        let Some(script) = &self.script else {
            return Instance::new(engine, image, limits, settings, world).await;
        };
        let started = Instance::with_script(engine, image, limits, settings, world, script);
        let (instance, loaded) = started.await?;
        // The script loaded without a problem before, so it depends on time or random numbers.
        loaded.problem().map_err(|error| CallError::Trap {
            reason: one_line(&error.to_string()).into_owned(),
        })?;
        Ok(instance)
    }

    /// Returns the current image. Maps the image of an unloaded plugin again, which takes less than
    /// a millisecond if the file is in memory.
    async fn image(&self) -> Result<Numbered, CallError> {
        if let Some(image) = self.pool.image() {
            return Ok(image);
        }
        let _one = self.mapping.lock().await;
        loop {
            if let Some(image) = self.pool.image() {
                return Ok(image);
            }
            let (stored, code) = self.pool.stored();
            // An image without a file is never unloaded.
            let stored = stored.ok_or_else(|| {
                CallError::Busy("its code is unloaded and no file holds it".into())
            })?;
            let component = self.component.clone();
            let mapped = self.engine.map(stored, code, component, self.size).await;
            let image = mapped.map_err(|error| CallError::Busy(error.to_string()))?;
            if let Some(image) = self.pool.put_back(image) {
                return Ok(image);
            }
        }
    }

    /// Replaces the current image with a better image of the same component. Calls in flight end on
    /// the old image. Returns false, and does nothing, if the image is of another component.
    pub fn install(&self, image: Arc<Image>) -> bool {
        if image.digest != self.component {
            return false;
        }
        self.pool.replace(image);
        true
    }

    /// Drops idle instances whose last call began before `before`. With the last instance, also
    /// drops the code if a file holds it; the description remains. Returns whether the code was
    /// dropped.
    pub fn rest(&self, before: Instant) -> bool {
        self.pool.rest(before)
    }

    /// Puts the plugin away after its last call has started: drops idle instances now and busy ones
    /// when their calls end, and the code if a file holds it. A later call loads the code again.
    pub fn shelve(&self) {
        self.pool.shelve();
    }

    /// Returns when the plugin was last called, or `None` if its code is not loaded.
    pub fn used(&self) -> Option<Instant> {
        self.pool.used()
    }

    /// Returns what `describe` returned.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Returns the SHA-256 of the component, and of the script if there is one, in hex.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the settings that its instances are given.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.clone()
    }

    /// Returns the SHA-256 of the component, in hex.
    pub fn component(&self) -> &str {
        &self.component
    }

    /// Returns how the current image was compiled.
    pub fn code(&self) -> Code {
        self.pool.code()
    }

    /// Returns the counts of the plugin's instances.
    pub fn instances(&self) -> InstanceStats {
        self.pool.stats()
    }

    /// Returns what `vmhost inspect` shows.
    pub fn inspection(&self) -> Inspection {
        Inspection {
            size: self.size,
            digest: self.digest.clone(),
            contract: crate::CONTRACT.to_owned(),
            imports: self.imports.clone(),
            description: self.description.clone(),
        }
    }
}
