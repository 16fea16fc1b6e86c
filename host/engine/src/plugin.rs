//! One generation of a policy: its description, its image, and the instances that serve its calls.
//!
//! A policy that nobody calls shrinks to its description: its instances are dropped, and its image too if a file holds it; the next call maps that again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use vmhost_core::{Description, Limits, MapRequest, ObjectName, ObjectReader, Outcome, Request};

use crate::cache::Stored;
use crate::engine::{Code, Engine, Image};
use crate::error::{CallError, LoadError};
use crate::instance::Instance;
use crate::still::World;
use crate::tier::SLOTS;

mod still;

/// Instances of one plugin at once: a quarter of all slots, so that no plugin takes those of the others.
const INSTANCES: usize = SLOTS as usize / 4;

/// Idle instances that are kept for the next calls.
const IDLE: usize = 64;

/// What the operator set for a plugin.
pub type Settings = HashMap<String, String>;

/// A component that described itself and can be called, from many tasks at once.
pub struct Plugin {
    engine: Engine,
    limits: Limits,
    settings: Arc<Settings>,
    description: Description,
    imports: Vec<String>,
    digest: String,
    size: usize,
    pool: Mutex<Pool>,
    /// One maps the image, the others wait.
    mapping: tokio::sync::Mutex<()>,
    live: Arc<AtomicUsize>,
    created: AtomicU64,
    unloads: AtomicU64,
}

/// The present image and the instances of it that wait for a call.
struct Pool {
    /// None: unloaded, until the next call.
    image: Option<Arc<Image>>,
    code: Code,
    stored: Option<Arc<Stored>>,
    /// Last in, first out: the memory of the newest is the warmest.
    idle: Vec<Counted>,
    /// When the image came or was called last.
    used: Instant,
}

/// An instance that is counted while it lives.
struct Counted {
    instance: Instance,
    /// Whose instance it is.
    image: Arc<Image>,
    live: Arc<AtomicUsize>,
}

/// How many instances a plugin has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceStats {
    /// Alive, idle or in a call.
    pub live: usize,
    /// Idle.
    pub idle: usize,
    /// Made since the plugin was loaded.
    pub created: u64,
    /// Is the code there? Else the next call loads it.
    pub loaded: bool,
    /// How often the code was dropped.
    pub unloads: u64,
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
        image: Image,
        limits: Limits,
        settings: &HashMap<String, Settings>,
    ) -> Result<Self, LoadError> {
        let mut instance = Instance::new(engine, &image.pre, &limits, Arc::default(), World::Real)
            .await
            .map_err(LoadError::Instantiate)?;
        let text = instance
            .describe(engine, &limits)
            .await
            .map_err(LoadError::Describe)?
            .map_err(LoadError::Refused)?;
        let description = Description::parse(&text)?;
        let settings = Arc::new(settings.get(&description.name).cloned().unwrap_or_default());
        instance.configure(settings.clone());
        let live = Arc::new(AtomicUsize::new(1));
        let (digest, size, imports) = (image.digest.clone(), image.size, image.imports());
        let image = Arc::new(image);
        let mut pool = Pool::new(image.clone());
        // From here on it is counted, also when it is dropped at once.
        let warm = Counted {
            instance,
            image,
            live: live.clone(),
        };
        if warm.instance.calls_left > 0 {
            pool.idle.push(warm);
        }
        Ok(Self {
            engine: engine.clone(),
            limits,
            settings,
            description,
            imports,
            digest,
            size,
            pool: Mutex::new(pool),
            mapping: tokio::sync::Mutex::default(),
            live,
            created: AtomicU64::new(1),
            unloads: AtomicU64::new(0),
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
        self.give_back(counted);
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
        self.give_back(counted);
        Ok(names)
    }

    /// An instance of the present image, idle or new.
    async fn take(&self) -> Result<Counted, CallError> {
        let image = {
            let mut pool = self.pool();
            if let Some(idle) = pool.idle.pop() {
                return Ok(idle);
            }
            pool.image.clone()
        };
        let image = match image {
            Some(image) => image,
            None => self.map_again().await?,
        };
        self.fresh(image).await
    }

    /// An instance whose call ended well may serve another, unless its image was replaced or unloaded meanwhile.
    fn give_back(&self, counted: Counted) {
        let mut pool = self.pool();
        pool.used = counted.instance.used();
        if counted.instance.calls_left > 0 && pool.is_of(&counted.image) && pool.idle.len() < IDLE {
            pool.idle.push(counted);
        }
    }

    async fn fresh(&self, image: Arc<Image>) -> Result<Counted, CallError> {
        if self.live.load(Ordering::Relaxed) >= INSTANCES {
            return Err(CallError::Busy(format!(
                "the plugin has {INSTANCES} instances already"
            )));
        }
        let instance = Instance::new(
            &self.engine,
            &image.pre,
            &self.limits,
            self.settings.clone(),
            World::Real,
        )
        .await?;
        self.created.fetch_add(1, Ordering::Relaxed);
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(Counted {
            instance,
            image,
            live: self.live.clone(),
        })
    }

    /// The image of a plugin that was unloaded. Takes less than a millisecond if its file is in memory.
    async fn map_again(&self) -> Result<Arc<Image>, CallError> {
        let _one = self.mapping.lock().await;
        loop {
            let (stored, code) = {
                let pool = self.pool();
                if let Some(image) = &pool.image {
                    return Ok(image.clone());
                }
                (pool.stored.clone(), pool.code)
            };
            // What has no file is never unloaded.
            let stored = stored.ok_or_else(|| CallError::Busy("its code is nowhere".into()))?;
            let digest = self.digest.clone();
            let mapped = self.engine.map(stored, code, digest, self.size).await;
            let image = mapped.map_err(|error| CallError::Busy(error.to_string()))?;
            let mut pool = self.pool();
            // Else a better one has come meanwhile.
            if pool.image.is_none() && pool.code == code {
                let image = Arc::new(image);
                pool.put(image.clone());
                return Ok(image);
            }
        }
    }

    /// Puts a better image of the same component in the place of the present one. Calls in flight end on the old one. Changes nothing that a user sees.
    /// An image of other bytes is refused: false.
    pub fn install(&self, image: Image) -> bool {
        if image.digest != self.digest {
            return false;
        }
        let image = Arc::new(image);
        let mut pool = self.pool();
        if pool.image.is_none() && image.stored.is_some() {
            // Nobody has called it for long: it stays unloaded.
            (pool.code, pool.stored) = (image.code, image.stored.clone());
            return true;
        }
        let old = std::mem::take(&mut pool.idle);
        pool.put(image);
        drop(pool);
        drop(old);
        true
    }

    /// Drops idle instances that were called last before `before`; with the last instance, the code too, if a file holds it. What is left is the description.
    /// True: the code was dropped.
    pub fn rest(&self, before: Instant) -> bool {
        let mut pool = self.pool();
        let (old, warm): (Vec<_>, Vec<_>) = std::mem::take(&mut pool.idle)
            .into_iter()
            .partition(|counted| counted.instance.used() < before);
        pool.idle = warm;
        let busy = self.live.load(Ordering::Relaxed) > old.len();
        let unload = !busy && pool.used < before && pool.stored.is_some();
        let image = pool.image.take_if(|_| unload);
        drop(pool);
        drop(old);
        if image.is_none() {
            return false;
        }
        self.unloads.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// When it was called last, if its code is there.
    pub fn used(&self) -> Option<Instant> {
        let pool = self.pool();
        pool.image.as_ref().map(|_| pool.used)
    }

    /// What it says about itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// SHA-256 of the component, in hex.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// How the present image was compiled.
    pub fn code(&self) -> Code {
        self.pool().code
    }

    /// How many instances it has.
    pub fn instances(&self) -> InstanceStats {
        let pool = self.pool();
        InstanceStats {
            live: self.live.load(Ordering::Relaxed),
            idle: pool.idle.len(),
            created: self.created.load(Ordering::Relaxed),
            loaded: pool.image.is_some(),
            unloads: self.unloads.load(Ordering::Relaxed),
        }
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

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    fn new(image: Arc<Image>) -> Self {
        Self {
            code: image.code,
            stored: image.stored.clone(),
            image: Some(image),
            idle: Vec::new(),
            used: Instant::now(),
        }
    }

    fn put(&mut self, image: Arc<Image>) {
        *self = Self {
            idle: std::mem::take(&mut self.idle),
            ..Self::new(image)
        };
    }

    fn is_of(&self, image: &Arc<Image>) -> bool {
        self.image
            .as_ref()
            .is_some_and(|present| Arc::ptr_eq(present, image))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}
