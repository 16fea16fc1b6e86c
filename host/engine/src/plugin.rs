//! One generation of a policy: its description, its image, and the instances that serve its calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use vmhost_core::{Description, Limits, MapRequest, ObjectName, ObjectReader, Outcome, Request};

use crate::engine::{Code, Engine, Image};
use crate::error::{CallError, LoadError};
use crate::instance::Instance;

/// Instances of one plugin at once: a quarter of all slots, so that no plugin takes those of the others.
const INSTANCES: usize = crate::engine::SLOTS as usize / 4;

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
    digest: String,
    size: usize,
    current: RwLock<Arc<Pool>>,
    live: Arc<AtomicUsize>,
    created: AtomicU64,
}

/// The instances of one image.
struct Pool {
    image: Image,
    /// Last in, first out: the memory of the newest is the warmest.
    idle: Mutex<Vec<Counted>>,
}

/// An instance that is counted while it lives.
struct Counted {
    instance: Instance,
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
        let mut instance = Instance::new(engine, &image.pre, &limits, Arc::default())
            .await
            .map_err(LoadError::Instantiate)?;
        let text = instance
            .describe(engine, &limits)
            .await
            .map_err(LoadError::Describe)?;
        let description = Description::parse(&text)?;
        let settings = Arc::new(settings.get(&description.name).cloned().unwrap_or_default());
        instance.configure(settings.clone());
        let live = Arc::new(AtomicUsize::new(1));
        let (digest, size) = (image.digest.clone(), image.size);
        let warm = Counted {
            instance,
            live: live.clone(),
        };
        let pool = Pool {
            image,
            idle: Mutex::new(if warm.instance.calls_left > 0 {
                vec![warm]
            } else {
                Vec::new()
            }),
        };
        Ok(Self {
            engine: engine.clone(),
            limits,
            settings,
            description,
            digest,
            size,
            current: RwLock::new(Arc::new(pool)),
            live,
            created: AtomicU64::new(1),
        })
    }

    /// One turn: from a snapshot to effects. `started` is called when there is an instance, just before the guest runs.
    pub async fn call(
        &self,
        request: &Request<'_>,
        reader: Arc<dyn ObjectReader>,
        started: impl FnOnce(),
    ) -> Result<Outcome, CallError> {
        let (pool, mut counted) = self.take().await?;
        started();
        let outcome = counted
            .instance
            .reconcile(&self.engine, &self.limits, request, reader)
            .await?;
        self.give_back(&pool, counted);
        Ok(outcome)
    }

    /// Maps changes of other objects to keys. `started` as for [`Plugin::call`]. The inner error is the policy's own text.
    pub async fn map_changes(
        &self,
        request: &MapRequest<'_>,
        reader: Arc<dyn ObjectReader>,
        started: impl FnOnce(),
    ) -> Result<Result<Vec<ObjectName>, String>, CallError> {
        let (pool, mut counted) = self.take().await?;
        started();
        let names = counted
            .instance
            .map(&self.engine, &self.limits, request, reader)
            .await?;
        self.give_back(&pool, counted);
        Ok(names)
    }

    /// An instance of the present image, idle or new.
    async fn take(&self) -> Result<(Arc<Pool>, Counted), CallError> {
        let pool = self
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let idle = pool.lock().pop();
        let counted = match idle {
            Some(counted) => counted,
            None => self.fresh(&pool).await?,
        };
        Ok((pool, counted))
    }

    /// An instance whose call ended well may serve another, unless its image was replaced meanwhile.
    fn give_back(&self, pool: &Arc<Pool>, counted: Counted) {
        if counted.instance.calls_left > 0
            && Arc::ptr_eq(
                pool,
                &self.current.read().unwrap_or_else(PoisonError::into_inner),
            )
        {
            let mut idle = pool.lock();
            if idle.len() < IDLE {
                idle.push(counted);
            }
        }
    }

    async fn fresh(&self, pool: &Pool) -> Result<Counted, CallError> {
        if self.live.load(Ordering::Relaxed) >= INSTANCES {
            return Err(CallError::Busy(format!(
                "the plugin has {INSTANCES} instances already"
            )));
        }
        let instance = Instance::new(
            &self.engine,
            &pool.image.pre,
            &self.limits,
            self.settings.clone(),
        )
        .await?;
        self.created.fetch_add(1, Ordering::Relaxed);
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(Counted {
            instance,
            live: self.live.clone(),
        })
    }

    /// Puts a better image of the same component in the place of the present one. Calls in flight end on the old one. Changes nothing that a user sees.
    /// An image of other bytes is refused: false.
    pub fn install(&self, image: Image) -> bool {
        if image.digest != self.digest {
            return false;
        }
        let pool = Arc::new(Pool {
            image,
            idle: Mutex::default(),
        });
        let old = std::mem::replace(
            &mut *self.current.write().unwrap_or_else(PoisonError::into_inner),
            pool,
        );
        old.lock().clear();
        true
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
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .image
            .code
    }

    /// How many instances it has.
    pub fn instances(&self) -> InstanceStats {
        let pool = self
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        InstanceStats {
            live: self.live.load(Ordering::Relaxed),
            idle: pool.lock().len(),
            created: self.created.load(Ordering::Relaxed),
        }
    }

    /// What `vmhost inspect` shows.
    pub fn inspection(&self) -> Inspection {
        Inspection {
            size: self.size,
            digest: self.digest.clone(),
            contract: crate::CONTRACT.to_owned(),
            imports: self
                .current
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .image
                .imports(),
            description: self.description.clone(),
        }
    }
}

impl Pool {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Counted>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}
