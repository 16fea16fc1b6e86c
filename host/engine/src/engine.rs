//! The process-wide engines and linkers: how bytes become a linked image.
//!
//! Two wasmtime engines with the same linker: Winch compiles new bytes fast, Cranelift compiles them well, later and in the background. A `Store` belongs
//! to one engine, so an image carries which.

use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig, Strategy};

use crate::bindings::v1;
use crate::cache::{Cache, CacheError};
use crate::epoch::Ticker;
use crate::error::LoadError;
use crate::state::HostState;

/// How the engine is set up.
#[derive(Clone, Debug, Default)]
pub struct EngineConfig {
    /// Where compiled images are kept; none: nowhere.
    pub cache: Option<PathBuf>,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Wasmtime refused its settings on this machine.
    #[error("wasmtime cannot be set up on this machine: {0}")]
    Setup(String),
    /// The ticker's thread could not be started.
    #[error("the epoch thread cannot be started")]
    Ticker(#[source] std::io::Error),
}

/// Compiles and links components. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    baseline: Tier,
    optimised: Tier,
    cache: Option<Cache>,
    ticker: Ticker,
}

struct Tier {
    engine: wasmtime::Engine,
    linker: Linker<HostState>,
}

/// How an image was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// By Winch, fast.
    Baseline,
    /// By Cranelift, or loaded from the cache, where only Cranelift's images are kept.
    Optimised,
}

/// A component that is compiled and linked: every import is resolved.
pub struct Image {
    pub(crate) pre: v1::PluginPre<HostState>,
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// Size of the component in bytes.
    pub size: usize,
    /// How it was compiled.
    pub code: Code,
}

impl Engine {
    /// Sets the engines up. The error beside them says why the cache folder is not used, if it is not.
    pub fn new(config: &EngineConfig) -> Result<(Self, Option<CacheError>), EngineError> {
        let baseline = Tier::new(Strategy::Winch)?;
        let optimised = Tier::new(Strategy::Cranelift)?;
        let ticker = Ticker::start(vec![baseline.engine.weak(), optimised.engine.weak()])
            .map_err(EngineError::Ticker)?;
        let (cache, problem) = match config.cache.as_deref().map(Cache::open).transpose() {
            Ok(cache) => (cache, None),
            Err(problem) => (None, Some(problem)),
        };
        Ok((
            Self(Arc::new(Inner {
                baseline,
                optimised,
                cache,
                ticker,
            })),
            problem,
        ))
    }

    /// Makes an image as fast as it can: from the cache, else with Winch. Blocks for milliseconds to seconds: call it off the runtime's threads.
    pub fn compile(&self, bytes: &[u8], limit: u64) -> Result<Image, LoadError> {
        check_header(bytes, limit)?;
        let digest = digest(bytes);
        if let Some(component) = self.cached(&digest) {
            return self
                .0
                .optimised
                .link(component, digest, bytes.len(), Code::Optimised);
        }
        match Component::new(&self.0.baseline.engine, bytes) {
            Ok(component) => self
                .0
                .baseline
                .link(component, digest, bytes.len(), Code::Baseline),
            // Winch lacks some of WebAssembly; Cranelift says what is wrong if it is not that.
            Err(_) => self.optimise(bytes, limit),
        }
    }

    /// Makes the best image, and stores it. Blocks for up to seconds: call it off the runtime's threads.
    pub fn optimise(&self, bytes: &[u8], limit: u64) -> Result<Image, LoadError> {
        check_header(bytes, limit)?;
        let digest = digest(bytes);
        let tier = &self.0.optimised;
        let component = match self.cached(&digest) {
            Some(component) => component,
            None => {
                let component = Component::new(&tier.engine, bytes).map_err(invalid)?;
                self.store(&digest, &component);
                component
            }
        };
        tier.link(component, digest, bytes.len(), Code::Optimised)
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.0.ticker
    }

    fn cached(&self, digest: &str) -> Option<Component> {
        let engine = &self.0.optimised.engine;
        let path = self.0.cache.as_ref()?.path(digest, engine);
        if !path.exists() {
            return None;
        }
        #[allow(
            unsafe_code,
            reason = "the file was written by this user's vmhost: `Cache::open` refuses folders that others can write to"
        )]
        let loaded = unsafe { Component::deserialize_file(engine, &path) };
        loaded.inspect_err(|error| tracing::warn!(file = %path.display(), "cached image ignored: {}", error.root_cause())).ok()
    }

    fn store(&self, digest: &str, component: &Component) {
        let Some(cache) = &self.0.cache else { return };
        let path = cache.path(digest, &self.0.optimised.engine);
        let stored = component.serialize().map_err(|error| error.to_string());
        if let Err(error) = stored.and_then(|image| {
            cache
                .store(&path, &image)
                .map_err(|error| error.to_string())
        }) {
            tracing::warn!("the compiled image is not cached: {error}");
        }
    }
}

impl Tier {
    fn new(strategy: Strategy) -> Result<Self, EngineError> {
        // Without pooling where the address space is too small for it (a container with a limit on virtual memory).
        let engine = wasmtime::Engine::new(
            config(strategy).allocation_strategy(InstanceAllocationStrategy::Pooling(pooling())),
        )
        .or_else(|_| wasmtime::Engine::new(&config(strategy)))
        .map_err(setup)?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).map_err(setup)?;
        v1::log::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut HostState| state)
            .map_err(setup)?;
        v1::config::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut HostState| state)
            .map_err(setup)?;
        v1::types::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut HostState| state)
            .map_err(setup)?;
        v1::cluster::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut HostState| state)
            .map_err(setup)?;
        Ok(Self { engine, linker })
    }

    fn link(
        &self,
        component: Component,
        digest: String,
        size: usize,
        code: Code,
    ) -> Result<Image, LoadError> {
        check_contract(&self.engine, &component)?;
        let pre = self
            .linker
            .instantiate_pre(&component)
            .map_err(|error| LoadError::Import(chain(&error)))?;
        let pre = v1::PluginPre::new(pre).map_err(|error| LoadError::OtherContract {
            found: chain(&error),
        })?;
        Ok(Image {
            pre,
            digest,
            size,
            code,
        })
    }
}

impl Image {
    /// The interfaces that it imports, by name.
    pub fn imports(&self) -> Vec<String> {
        let component = self.pre.instance_pre().component();
        component
            .component_type()
            .imports(component.engine())
            .map(|(name, _)| name.to_owned())
            .collect()
    }
}

fn config(strategy: Strategy) -> Config {
    let mut config = Config::new();
    config.strategy(strategy);
    config.epoch_interruption(true);
    // Frames for the log are not worth unwinding at each trap: a panic's text is in the captured output.
    config.wasm_backtrace_max_frames(None);
    config.generate_address_map(false);
    config
}

/// Slots are address space, not memory. Resetting one by copying what was touched instead of by unmapping is what lets fresh instances scale to several threads
/// (measured: 17,300 instances a second without, 32,100 with, and twice that on two threads).
fn pooling() -> PoolingAllocationConfig {
    let mut pooling = PoolingAllocationConfig::default();
    pooling
        .linear_memory_keep_resident(1 << 20)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto)
        .total_core_instances(SLOTS * 8)
        .total_component_instances(SLOTS)
        .total_memories(SLOTS)
        .total_tables(SLOTS * 2)
        .total_stacks(SLOTS);
    pooling
}

/// Instances of the process: more than the 1,024 workers that one controller may have. The largest guest that was seen has 14 core instances, a usual one 3.
pub(crate) const SLOTS: u32 = 2048;

fn check_header(bytes: &[u8], limit: u64) -> Result<(), LoadError> {
    const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];
    const CORE: [u8; 4] = [1, 0, 0, 0];
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    if bytes.len() as u64 > limit {
        return Err(LoadError::TooLarge {
            size: bytes.len() as u64,
            limit,
        });
    }
    match (bytes.get(..4), bytes.get(4..8)) {
        (Some(b"\0asm"), Some(version)) if version == COMPONENT => Ok(()),
        (Some(b"\0asm"), Some(version)) if version == CORE => Err(LoadError::CoreModule),
        (Some(b"\0asm"), _) => Err(LoadError::Invalid(
            "the header is neither a component's nor a module's".into(),
        )),
        _ => Err(LoadError::NotWasm),
    }
}

/// Does it export this contract? Wasmtime's own error would not say which version was found.
fn check_contract(engine: &wasmtime::Engine, component: &Component) -> Result<(), LoadError> {
    let (_, version) = crate::CONTRACT.split_once('@').unwrap_or_default();
    let major = version.split('.').next().unwrap_or_default();
    let mut exports = Vec::new();
    for (name, _) in component.component_type().exports(engine) {
        match name.split_once('@') {
            Some((v1::CONTROLLER, found)) if found.split('.').next() == Some(major) => {
                return Ok(());
            }
            _ => exports.push(name.to_owned()),
        }
    }
    let found = if exports.is_empty() {
        "it exports nothing".to_owned()
    } else {
        format!("it exports {}", exports.join(", "))
    };
    Err(LoadError::OtherContract { found })
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn invalid(error: wasmtime::Error) -> LoadError {
    LoadError::Invalid(error.root_cause().to_string())
}

fn setup(error: wasmtime::Error) -> EngineError {
    EngineError::Setup(chain(&error))
}

/// All causes in one line. Not `{:?}`, which adds a backtrace of the host.
fn chain(error: &wasmtime::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
