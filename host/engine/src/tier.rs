//! One wasmtime engine with its linker: loads and links compiled components, and limits how many
//! instances live. This module must not know what a component describes.

use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy,
};

use crate::bindings::{http_v1, v1};
use crate::cache::Stored;
use crate::code::Code;
use crate::error::{EngineError, LoadError};
use crate::state::HostState;

/// An engine, and a linker with what its guests may import.
pub(crate) struct Tier {
    pub(crate) code: Code,
    pub(crate) engine: wasmtime::Engine,
    pub(crate) linker: Linker<HostState>,
}

impl Tier {
    pub(crate) fn new(code: Code) -> Result<Self, EngineError> {
        // Without pooling if the address space is too small for it (a container with a limit on
        // virtual memory).
        let engine = wasmtime::Engine::new(
            config(code).allocation_strategy(InstanceAllocationStrategy::Pooling(pooling())),
        )
        .or_else(|_| wasmtime::Engine::new(&config(code)))
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
        http_v1::http::add_to_linker::<_, HasSelf<_>>(&mut linker, |state: &mut HostState| state)
            .map_err(setup)?;
        Ok(Self {
            code,
            engine,
            linker,
        })
    }

    /// Maps an image: its pages are shared with the page cache, and read on first use.
    pub(crate) fn load(&self, stored: &Stored) -> wasmtime::Result<Component> {
        let path = stored.path();
        #[allow(
            unsafe_code,
            reason = "the file was written by this user's vmhost: `Cache::open` refuses folders that others can write to, and one in memory has no name"
        )]
        let mapped = unsafe { Component::deserialize_file(&self.engine, &path) };
        // A file system mounted with noexec: read the bytes instead.
        mapped.or_else(|error| match std::fs::read(path) {
            Ok(image) => self.load_bytes(&image),
            Err(_) => Err(error),
        })
    }

    /// Loads a copy of an image.
    pub(crate) fn load_bytes(&self, image: &[u8]) -> wasmtime::Result<Component> {
        #[allow(
            unsafe_code,
            reason = "the bytes come from this process's or its child's compiler, or from a file as above"
        )]
        unsafe {
            Component::deserialize(&self.engine, image)
        }
    }

    /// Resolves every import.
    pub(crate) fn link(
        &self,
        component: &Component,
    ) -> Result<v1::PluginPre<HostState>, LoadError> {
        check_contract(&self.engine, component)?;
        let pre = self
            .linker
            .instantiate_pre(component)
            .map_err(|error| LoadError::Import(chain(&error)))?;
        v1::PluginPre::new(pre).map_err(|error| LoadError::OtherContract {
            found: chain(&error),
        })
    }
}

/// Returns an engine that compiles images for the tier of this code, and runs none.
pub(crate) fn compiling_engine(code: Code) -> wasmtime::Result<wasmtime::Engine> {
    wasmtime::Engine::new(&config(code))
}

fn config(code: Code) -> Config {
    let mut config = Config::new();
    config.strategy(match code {
        Code::Baseline => Strategy::Winch,
        Code::Optimised => Strategy::Cranelift,
    });
    if code == Code::Baseline {
        // Speeds up Cranelift's trampolines, thousands in a Go policy: they take a tenth of the
        // time.
        config.cranelift_opt_level(OptLevel::None);
    }
    config.epoch_interruption(true);
    // Wasm frames are not worth an unwind at each trap: a panic's text is in the captured output.
    config.wasm_backtrace_max_frames(None);
    config.generate_address_map(false);
    config
}

/// Slots are address space, not memory. Resetting a slot by copying over the touched pages instead
/// of unmapping it lets fresh instances scale to several threads (measured: 17,300 instances per
/// second without, 32,100 with, and twice that on two threads).
fn pooling() -> PoolingAllocationConfig {
    let mut pooling = PoolingAllocationConfig::default();
    pooling
        .linear_memory_keep_resident(1 << 20)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto)
        // An unused slot keeps the pages of its last guest: with a hundred idle plugins, those of a
        // hundred guests.
        .max_unused_warm_slots(WARM_SLOTS)
        .total_core_instances(SLOTS * 8)
        .total_component_instances(SLOTS)
        .total_memories(SLOTS)
        .total_tables(SLOTS * 2)
        .total_stacks(SLOTS);
    pooling
}

/// The number of slots that stay warm for their last guest: as many as a plugin with fresh
/// instances uses at once.
const WARM_SLOTS: u32 = 8;

/// The maximum number of instances of the process: more than the 1,024 workers that one controller
/// may have. The largest guest seen has 14 core instances; a usual guest has 3.
pub(crate) const SLOTS: u32 = 2048;

/// Checks that the component exports the contract. Wasmtime's own error does not name the version
/// that was found.
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

fn setup(error: wasmtime::Error) -> EngineError {
    EngineError::Setup(chain(&error))
}

/// Joins all causes in one line, unlike `{:?}`, which adds a backtrace of the host.
pub(crate) fn chain(error: &wasmtime::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
