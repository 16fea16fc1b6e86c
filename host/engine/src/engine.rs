//! The process-wide engines, which turn bytes into a linked image.
//!
//! Two wasmtime engines share the same linker: Winch compiles new bytes fast, and Cranelift later
//! optimises them in the background. A `Store` belongs to one engine, so an image holds a reference
//! to its engine. The Winch engine exists only while one of its images does.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::cache::{Blank, Cache, CacheError, Stored};
use crate::code::Code;
use crate::compiler::{Compiler, Failure, warn_of_no_child};
use crate::epoch::Ticker;
use crate::error::{EngineError, LoadError};
use crate::image::{Image, Source, check_header};
use crate::tier::{Tier, chain};

/// Settings of the engine.
#[derive(Clone, Debug, Default)]
pub struct EngineConfig {
    /// The folder of compiled images; `None` if they are not kept.
    pub cache: Option<PathBuf>,
    /// Where components are compiled.
    pub compiler: Compiler,
}

/// Compiles and links components. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    baseline: Mutex<Weak<Tier>>,
    optimised: Arc<Tier>,
    compiler: Compiler,
    cache: Option<Cache>,
    /// The places of compilations that calls wait for.
    turns: Semaphore,
    /// The best image that a plugin holds of each component, by the component's digest.
    live: Mutex<HashMap<String, Weak<Image>>>,
    ticker: Ticker,
}

impl Engine {
    /// Creates the engines. Returns beside them why the cache folder is not used, if it cannot be.
    pub fn new(config: &EngineConfig) -> Result<(Self, Option<CacheError>), EngineError> {
        let optimised = Arc::new(Tier::new(Code::Optimised)?);
        let ticker = Ticker::start(optimised.engine.weak()).map_err(EngineError::Ticker)?;
        let (cache, problem) = match config.cache.as_deref().map(Cache::open).transpose() {
            Ok(cache) => (cache, None),
            Err(problem) => (None, Some(problem)),
        };
        Ok((
            Self(Arc::new(Inner {
                baseline: Mutex::default(),
                optimised,
                compiler: config.compiler.clone(),
                cache,
                turns: Semaphore::new(at_once()),
                live: Mutex::default(),
                ticker,
            })),
            problem,
        ))
    }

    /// Produces an image as fast as possible: takes the image that a plugin holds, or the cached
    /// image, or compiles with Winch. Must be called in a tokio runtime; does not block its
    /// threads.
    pub async fn compile(
        &self,
        bytes: impl Into<Bytes>,
        limit: u64,
    ) -> Result<Arc<Image>, LoadError> {
        let source = self.source(bytes.into(), limit).await?;
        if let Some(image) = self.look_up(&source, Code::Baseline).await? {
            return Ok(image);
        }
        // Never closed, so that an error cannot be.
        let _turn = self.0.turns.acquire().await.ok();
        // Another call may have compiled it in the meantime.
        if let Some(image) = self.look_up(&source, Code::Baseline).await? {
            return Ok(image);
        }
        let made = match self.make(&source, Code::Baseline).await {
            // Winch does not support all of WebAssembly. If the component itself is at fault,
            // Cranelift's error says why.
            Err(LoadError::Invalid(_) | LoadError::Compiler(_)) => {
                self.make(&source, Code::Optimised).await
            }
            made => made,
        };
        Ok(self.share(made?))
    }

    /// Produces and caches the best image. Like [`Engine::compile`], but can take seconds. Dropping
    /// the future ends a compilation in a child process.
    pub async fn optimise(
        &self,
        bytes: impl Into<Bytes>,
        limit: u64,
    ) -> Result<Arc<Image>, LoadError> {
        let source = self.source(bytes.into(), limit).await?;
        match self.look_up(&source, Code::Optimised).await? {
            Some(image) => Ok(image),
            None => Ok(self.share(self.make(&source, Code::Optimised).await?)),
        }
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.0.ticker
    }

    /// Checks the bytes and computes their digest.
    async fn source(&self, bytes: Bytes, limit: u64) -> Result<Source, LoadError> {
        check_header(&bytes, limit)?;
        off_the_runtime(move || {
            let digest = hex::encode(Sha256::digest(&bytes));
            Source { bytes, digest }
        })
        .await
    }

    /// Returns an image whose code is at least as good as `code`, if a plugin or the cache holds
    /// one.
    async fn look_up(&self, source: &Source, code: Code) -> Result<Option<Arc<Image>>, LoadError> {
        let live = self
            .0
            .live
            .lock()
            .get(&source.digest)
            .and_then(Weak::upgrade);
        if live
            .as_ref()
            .is_some_and(|image| image.code == Code::Optimised)
        {
            return Ok(live);
        }
        let (engine, source) = (self.clone(), source.clone());
        let cached = off_the_runtime(move || engine.cached(&source).transpose()).await??;
        Ok(match cached {
            Some(image) => Some(self.share(image)),
            None => live.filter(|_| code == Code::Baseline),
        })
    }

    /// Remembers the image for the next plugin of the same component, as long as a plugin holds it.
    fn share(&self, image: Image) -> Arc<Image> {
        let image = Arc::new(image);
        let mut live = self.0.live.lock();
        live.retain(|_, image| image.strong_count() > 0);
        if image.code == Code::Optimised || !live.contains_key(&image.digest) {
            live.insert(image.digest.clone(), Arc::downgrade(&image));
        }
        image
    }

    fn cached(&self, source: &Source) -> Option<Result<Image, LoadError>> {
        let Inner {
            cache, optimised, ..
        } = &*self.0;
        let stored = cache.as_ref()?.find(&source.digest, &optimised.engine)?;
        let loaded = optimised.load(&stored);
        let component = loaded
            .inspect_err(|error| {
                let digest = &source.digest;
                tracing::warn!("cached image of {digest} ignored: {}", error.root_cause());
            })
            .ok()?;
        Some(Image::link(optimised, component, source, Some(stored)))
    }

    async fn make(&self, source: &Source, code: Code) -> Result<Image, LoadError> {
        let engine = self.clone();
        let tier = off_the_runtime(move || engine.tier(code));
        let Compiler::Child(child) = &self.0.compiler else {
            return self.make_here(tier.await??, source).await;
        };
        let blank = self.blank(code)?;
        // The engine that will run the image is created while the child works.
        let (tier, compiled) = tokio::join!(tier, compile_into(child, code, source, blank));
        let tier = tier??;
        match compiled {
            Ok(blank) => self.finish(tier, source, blank),
            Err(Failure::Start(error)) => {
                warn_of_no_child(&error);
                self.make_here(tier, source).await
            }
            Err(Failure::Unwritten(reason)) => {
                tracing::warn!("compiled image is not cached: {reason}");
                let blank = Blank::in_memory().map_err(no_room)?;
                let blank = compile_into(child, code, source, blank).await;
                self.finish(tier, source, blank.map_err(broken)?)
            }
            Err(failure) => Err(broken(failure)),
        }
    }

    async fn make_here(&self, tier: Arc<Tier>, source: &Source) -> Result<Image, LoadError> {
        let (engine, bytes) = (tier.engine.clone(), source.bytes.clone());
        let image = off_the_runtime(move || engine.precompile_component(&bytes))
            .await?
            .map_err(|error| LoadError::Invalid(error.root_cause().to_string()))?;
        if self.keeps(tier.code)
            && let Ok(blank) = self.blank(tier.code)
            && blank.write(&image).is_ok()
        {
            return self.finish(tier, source, blank);
        }
        let component = tier.load_bytes(&image).map_err(not_loaded)?;
        Image::link(&tier, component, source, None)
    }

    /// Maps a written image, and caches it if its code is optimised.
    fn finish(&self, tier: Arc<Tier>, source: &Source, blank: Blank) -> Result<Image, LoadError> {
        let stored = match &self.0.cache {
            Some(cache) if self.keeps(tier.code) => cache
                .keep(blank, &source.digest, &tier.engine)
                .map_err(no_room)?,
            _ => blank.into_stored(),
        };
        let component = tier.load(&stored).map_err(not_loaded)?;
        Image::link(&tier, component, source, Some(stored))
    }

    fn keeps(&self, code: Code) -> bool {
        code == Code::Optimised && self.0.cache.is_some()
    }

    fn blank(&self, code: Code) -> Result<Blank, LoadError> {
        if let Some(cache) = self.0.cache.as_ref().filter(|_| self.keeps(code)) {
            match cache.blank() {
                Ok(blank) => return Ok(blank),
                Err(error) => tracing::warn!("compiled image is not cached: {error}"),
            }
        }
        Blank::in_memory().map_err(no_room)
    }

    pub(crate) async fn map(
        &self,
        stored: Arc<Stored>,
        code: Code,
        digest: String,
        size: usize,
    ) -> Result<Arc<Image>, LoadError> {
        let tier = self.tier(code)?;
        let mapped = off_the_runtime(move || {
            let component = tier.load(&stored).map_err(not_loaded)?;
            Image::linked(&tier, component, digest, size, Some(stored))
        });
        Ok(self.share(mapped.await??))
    }

    pub(crate) fn tier(&self, code: Code) -> Result<Arc<Tier>, LoadError> {
        if code == Code::Optimised {
            return Ok(self.0.optimised.clone());
        }
        let mut baseline = self.0.baseline.lock();
        if let Some(tier) = baseline.upgrade() {
            return Ok(tier);
        }
        let tier =
            Arc::new(Tier::new(code).map_err(|error| LoadError::Shortage(error.to_string()))?);
        self.0.ticker.add(tier.engine.weak());
        *baseline = Arc::downgrade(&tier);
        Ok(tier)
    }
}

/// How many components are compiled at once: more of them share the same processors, and each child
/// may take a gigabyte. Hundreds of plugins may come at the same time.
#[must_use]
pub fn at_once() -> usize {
    std::thread::available_parallelism()
        .map_or(2, usize::from)
        .max(2)
}

/// Lets a child write an image to the file, and returns the file.
async fn compile_into(
    child: &crate::compiler::Child,
    code: Code,
    source: &Source,
    blank: Blank,
) -> Result<Blank, Failure> {
    let file = blank.file().try_clone().map_err(Failure::Start)?;
    child.compile(code, &source.bytes, file).await?;
    Ok(blank)
}

pub(crate) async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoadError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| LoadError::Compiler(error.to_string()))
}

fn no_room(error: std::io::Error) -> LoadError {
    LoadError::Shortage(format!("there is no room for the image: {error}"))
}

pub(crate) fn not_loaded(error: wasmtime::Error) -> LoadError {
    LoadError::Shortage(format!("its image cannot be loaded: {}", chain(&error)))
}

fn broken(failure: Failure) -> LoadError {
    match failure {
        Failure::Refused(reason) => LoadError::Invalid(reason),
        Failure::Broke(reason) => LoadError::Compiler(reason),
        Failure::Start(error) => LoadError::Shortage(error.to_string()),
        Failure::Unwritten(reason) | Failure::Killed(reason) => LoadError::Shortage(reason),
    }
}
