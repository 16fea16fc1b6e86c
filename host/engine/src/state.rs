//! What a guest's store holds: an empty WASI context, its limits, and the call that is running.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use vmhost_core::{Limits, ObjectReader};
use wasmtime::ResourceLimiter;
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::error::MemoryDenied;
use crate::output::Output;
use crate::still::{World, still};
use crate::waits::Waits;

/// What the operator set for a plugin.
pub type Settings = HashMap<String, String>;

/// The data of a `Store`.
pub(crate) struct HostState {
    wasi: WasiCtx,
    table: ResourceTable,
    memory: Memory,
    /// What the guest printed.
    pub(crate) output: Output,
    /// When the running call has to be over. What it waits for the host's own limits is added.
    pub(crate) deadline: Instant,
    /// What its calls have waited for the host's own limits.
    pub(crate) waits: Waits,
    /// Where the running call reads the cluster; none during `describe`.
    pub(crate) reader: Option<Arc<dyn ObjectReader>>,
    /// The largest answer to a read, in bytes.
    pub(crate) read_limit: usize,
    /// Log lines that the running call may still write.
    pub(crate) log_lines: u32,
    /// What the operator set.
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
        // No files, no environment, no arguments, no network: what is not granted is absent.
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(output.clone())
            .stderr(output.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        if world == World::Still {
            still(&mut wasi);
        }
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
            read_limit: limits.read,
            log_lines: LOG_LINES,
            settings,
        }
    }

    /// The limiter of its store.
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
        let wanted = self.used - current.min(self.used) + desired;
        if wanted > self.limit {
            // An error instead of `Ok(false)`: the guest would turn that into an abort, which could not be told from a panic.
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
}

/// Elements of one table. The largest that was seen has 7,696 (StarlingMonkey); a million takes 8 MiB of the host.
const TABLE_ELEMENTS: usize = 1 << 20;

/// Log lines of one call. What comes behind is dropped: a policy that floods the log hurts everybody who reads it.
pub(crate) const LOG_LINES: u32 = 256;

/// WASI handles (streams, timers) of one instance: each is memory of the host's.
const HANDLES: usize = 1024;
