//! The data of a guest's store: an empty WASI context, its limits, and the running call. This
//! module must not know what a call is about.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use vmhost_core::{Limits, ObjectReader, Trace};
use wasmtime::ResourceLimiter;
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::error::MemoryDenied;
use crate::output::Output;
use crate::sending::Sending;
use crate::still::still;
use crate::tap::{Taps, tapped};
use crate::told::{Tape, tell};
use crate::waits::Waits;
use crate::world::World;

/// What the operator set for a plugin.
pub type Settings = HashMap<String, String>;

/// The data of a `Store`.
pub(crate) struct HostState {
    wasi: WasiCtx,
    table: ResourceTable,
    memory: Memory,
    /// What the guest has printed.
    pub(crate) output: Output,
    /// The deadline of the running call, before its waits for the host's own limits are added.
    pub(crate) deadline: Instant,
    /// The time that its calls have waited for the host's own limits.
    pub(crate) waits: Waits,
    /// Where the running call reads the cluster; `None` during `describe`.
    pub(crate) reader: Option<Arc<dyn ObjectReader>>,
    /// The HTTP requests of the running call; `None` if it may send none.
    pub(crate) sending: Option<Sending>,
    /// Notes the clock readings and random numbers that the guest draws.
    pub(crate) taps: Taps,
    /// The seed that the guest may ask for.
    pub(crate) seed: u128,
    /// The record that gives the guest its clock readings and random numbers, if the call has one.
    pub(crate) tape: Option<Tape>,
    /// What the running call has asked the host.
    pub(crate) trace: Trace,
    /// The largest answer to a read, in bytes.
    pub(crate) read_limit: usize,
    /// The number of log lines that the running call may still write.
    pub(crate) log_lines: u32,
    /// What the operator set for the plugin.
    pub(crate) settings: Arc<Settings>,
}

/// Counts all linear memories of a store together.
struct Memory {
    used: usize,
    limit: usize,
}

impl HostState {
    pub(crate) fn new(limits: &Limits, settings: Arc<Settings>, world: World) -> Self {
        let output = Output::default();
        // No files, environment, arguments or network: a guest has only what is granted here.
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(output.clone())
            .stderr(output.clone())
            .max_random_size(RANDOM)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        let (taps, seed, tape) = match world {
            World::Real => {
                let (taps, seed) = tapped(&mut wasi);
                (taps, seed, None)
            }
            World::Still => {
                still(&mut wasi);
                (Taps::default(), 0, None)
            }
            World::Told(told) => {
                let (taps, seed, tape) = tell(&mut wasi, told);
                (taps, seed, Some(tape))
            }
        };
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        Self {
            wasi: wasi.build(),
            table,
            memory: Memory {
                used: 0,
                limit: limits.memory,
            },
            output,
            deadline: Instant::now() + limits.call_timeout,
            waits: Waits::default(),
            reader: None,
            sending: None,
            taps,
            seed,
            tape,
            trace: Trace::default(),
            read_limit: limits.read,
            log_lines: LOG_LINES,
            settings,
        }
    }

    /// Returns the resource limiter of this store.
    pub(crate) fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.memory
    }
}

impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // A 64-bit memory may want nearly as much as can be counted.
        let others = self.used - current.min(self.used);
        let wanted = others.saturating_add(desired);
        if wanted > self.limit {
            // Returns an error instead of `Ok(false)`, which the guest would turn into an abort
            // that looks like a panic.
            return Err(MemoryDenied {
                wanted,
                limit: self.limit,
            }
            .into());
        }
        self.used = wanted;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }

    fn tables(&self) -> usize {
        TABLES
    }
}

/// The maximum number of elements of one table. The largest table seen has 7,696 (StarlingMonkey);
/// a million takes 8 MiB of host memory.
const TABLE_ELEMENTS: usize = 1 << 20;

/// The maximum number of core instances, memories and tables of one instance of a component. Each
/// takes a slot of the process. The largest guest seen has 14 core instances, and each C extension
/// of a Python policy is another.
const CORE_INSTANCES: usize = 128;
const MEMORIES: usize = 8;
const TABLES: usize = 16;

/// The maximum number of random bytes that a guest may ask for at once. No other guest runs on its
/// thread meanwhile, and no deadline interrupts it.
const RANDOM: u64 = 1 << 20;

/// The maximum number of log lines of one call. Later lines are dropped, because a flood would hide
/// the lines of other policies.
pub(crate) const LOG_LINES: u32 = 256;

/// The maximum number of WASI handles (streams, timers) of one instance. Each takes host memory.
const HANDLES: usize = 1024;

#[cfg(test)]
mod tests;
