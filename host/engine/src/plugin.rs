//! One generation of a policy: its description, its image, and the instances that serve its calls.
//!
//! A policy that nobody calls shrinks to its description: its instances are dropped, and its image too if a file holds it; the next call maps that again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use vmhost_core::{
    Description, Limits, MapRequest, ObjectName, ObjectReader, Outcome, Request, one_line,
};

use crate::code::Code;
use crate::engine::{Engine, Image};
use crate::error::{CallError, LoadError};
use crate::instance::Instance;
use crate::script::Script;
use crate::state::Settings;
use crate::still::World;
use crate::tier::SLOTS;

pub(crate) mod pool;
mod still;

use pool::{Counted, InstanceStats, Numbered, Pool};

/// Instances of one plugin at once: a quarter of all slots, so that no plugin takes those of the others.
const INSTANCES: usize = SLOTS as usize / 4;

/// A component that described itself and can be called, from many tasks at once.
pub struct Plugin {
    engine: Engine,
    limits: Limits,
    settings: Arc<Settings>,
    description: Description,
    imports: Vec<String>,
    /// Digest of the component and of the script, if there is one.
    digest: String,
    /// Digest of the component.
    component: String,
    script: Option<Script>,
    size: usize,
    pool: Pool,
    /// One maps the image, the others wait.
    mapping: tokio::sync::Mutex<()>,
}

/// What `vmhost inspect` shows.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Size of the component in bytes.
    pub size: usize,
    /// SHA-256, in hex.
    pub digest: String,
    /// The contract that it speaks.
    pub contract: String,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// What it says about itself.
    pub description: Description,
}

impl Plugin {
    /// Instantiates an image and asks it to describe itself. Runs guest code on the calling runtime. `settings` are those of all plugins, by name: which of them
    /// are this one's is known when it has described itself, so that `describe` sees none.
    pub async fn load(
        engine: &Engine,
        image: Arc<Image>,
        limits: Limits,
        settings: &HashMap<String, Settings>,
    ) -> Result<Self, LoadError> {
        let instance = Instance::new(engine, &image.pre, &limits, Arc::default(), World::Real)
            .await
            .map_err(LoadError::Instantiate)?;
        Self::described(engine, image, limits, settings, instance, None).await
    }

    /// The same of an interpreter's image, of which each instance loads a script.
    pub async fn load_script(
        engine: &Engine,
        image: Arc<Image>,
        limits: Limits,
        settings: &HashMap<String, Settings>,
        script: Script,
    ) -> Result<Self, LoadError> {
        let world = World::Real;
        let started =
            Instance::with_script(engine, &image.pre, &limits, Arc::default(), world, &script);
        let (instance, loaded) = started.await.map_err(LoadError::Instantiate)?;
        loaded.problem()?;
        let script = Some(script.of_used(&loaded));
        Self::described(engine, image, limits, settings, instance, script).await
    }

    async fn described(
        engine: &Engine,
        image: Arc<Image>,
        limits: Limits,
        settings: &HashMap<String, Settings>,
        mut instance: Instance,
        script: Option<Script>,
    ) -> Result<Self, LoadError> {
        let text = instance
            .describe(engine, &limits)
            .await
            .map_err(LoadError::Describe)?
            .map_err(LoadError::Refused)?;
        let description = Description::parse(&text)?;
        let settings = Arc::new(settings.get(&description.name).cloned().unwrap_or_default());
        instance.configure(settings.clone());
        let (component, size, imports) = (image.digest.clone(), image.size, image.imports());
        let digest = match &script {
            Some(script) => script.digest(&component),
            None => component.clone(),
        };
        let pool = Pool::new(image);
        if let Some(image) = pool.image() {
            pool.give_back(pool.count(&image, instance));
        }
        Ok(Self {
            engine: engine.clone(),
            limits,
            settings,
            description,
            imports,
            digest,
            component,
            script,
            size,
            pool,
            mapping: tokio::sync::Mutex::default(),
        })
    }

    /// One turn: from a snapshot to effects. `started` is called when there is an instance, just before the guest runs.
    pub async fn call(
        &self,
        request: &Request<'_>,
        reader: Arc<dyn ObjectReader>,
        started: impl FnOnce(),
    ) -> Result<Outcome, CallError> {
        let mut counted = self.take().await?;
        started();
        let outcome = counted
            .instance
            .reconcile(&self.engine, &self.limits, request, reader)
            .await?;
        self.pool.give_back(counted);
        Ok(outcome)
    }

    /// Maps changes of other objects to keys. `started` as for [`Plugin::call`]. The inner error is the policy's own text.
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

    /// An instance of the present image, idle or new.
    async fn take(&self) -> Result<Counted, CallError> {
        if let Some(idle) = self.pool.pop() {
            return Ok(idle);
        }
        let of = self.image().await?;
        if self.pool.live() >= INSTANCES {
            return Err(CallError::Busy(format!(
                "the plugin has {INSTANCES} instances already"
            )));
        }
        let settings = self.settings.clone();
        let instance = self.start(&of.image, settings, World::Real).await?;
        Ok(self.pool.count(&of, instance))
    }

    /// Makes an instance.
    async fn start(
        &self,
        image: &Image,
        settings: Arc<Settings>,
        world: World,
    ) -> Result<Instance, CallError> {
        let (engine, limits) = (&self.engine, &self.limits);
        let Some(script) = &self.script else {
            return Instance::new(engine, &image.pre, limits, settings, world).await;
        };
        let started = Instance::with_script(engine, &image.pre, limits, settings, world, script);
        let (instance, loaded) = started.await?;
        // It has been loaded before without one: the policy depends on time or chance.
        loaded.problem().map_err(|error| CallError::Trap {
            reason: one_line(&error.to_string()).into_owned(),
        })?;
        Ok(instance)
    }

    /// The present image. That of a plugin that was unloaded is mapped again, which takes less than a millisecond if its file is in memory.
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
            // What has no file is never unloaded.
            let stored = stored.ok_or_else(|| CallError::Busy("its code is nowhere".into()))?;
            let component = self.component.clone();
            let mapped = self.engine.map(stored, code, component, self.size).await;
            let image = mapped.map_err(|error| CallError::Busy(error.to_string()))?;
            if let Some(image) = self.pool.put_back(image) {
                return Ok(image);
            }
        }
    }

    /// Puts a better image of the same component in the place of the present one. Calls in flight end on the old one. Changes nothing that a user sees.
    /// An image of other bytes is refused: false.
    pub fn install(&self, image: Arc<Image>) -> bool {
        if image.digest != self.component {
            return false;
        }
        self.pool.replace(image);
        true
    }

    /// Drops idle instances that were called last before `before`; with the last instance, the code too, if a file holds it. What is left is the description.
    /// True: the code was dropped.
    pub fn rest(&self, before: Instant) -> bool {
        self.pool.rest(before)
    }

    /// When it was called last, if its code is there.
    pub fn used(&self) -> Option<Instant> {
        self.pool.used()
    }

    /// What it says about itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// SHA-256 of the component, and of the script if there is one, in hex.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// SHA-256 of the component, in hex.
    pub fn component(&self) -> &str {
        &self.component
    }

    /// How the present image was compiled.
    pub fn code(&self) -> Code {
        self.pool.code()
    }

    /// How many instances it has.
    pub fn instances(&self) -> InstanceStats {
        self.pool.stats()
    }

    /// What `vmhost inspect` shows.
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
