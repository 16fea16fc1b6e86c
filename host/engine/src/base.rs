//! A component that contains a language's interpreter without a policy. Given the policy's source,
//! it becomes the component of that policy.
//!
//! The host loads the source once into an instance, then copies the instance's memory into a copy
//! of the component (wizer, <https://docs.rs/wasmtime-wizer>). So the interpreter is compiled for
//! the first policy only, and a policy's top-level code runs at build time. This module must not
//! know the language.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Handle;
use vmhost_core::Limits;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Instance, InstancePre, Lift, WasmList};
use wasmtime::{Store, Trap};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

use crate::code::Code;
use crate::engine::{Engine, off_the_runtime};
use crate::error::{CallError, LoadError};
use crate::instance::{ended, limited, within};
use crate::state::HostState;
use crate::tier::{Tier, chain};
use crate::world::World;

/// Limits on loading a policy. They are generous: the load runs on the author's machine, and no
/// call waits for it.
const LIMITS: Limits = Limits {
    call_timeout: Duration::from_secs(60),
    memory: 256 << 20,
    reuse: 1,
    returned: 1 << 30,
    read: 0,
    component: u64::MAX,
};

/// An interpreter that is ready to load a policy.
pub struct Base {
    engine: Engine,
    wasm: Bytes,
    load: &'static str,
    pre: InstancePre<HostState>,
    /// Keeps alive the tier that the interpreter was compiled for.
    _tier: Arc<Tier>,
}

/// Why a policy was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// The interpreter reports an error; the policy's author must act.
    #[error("{0}")]
    Refused(String),
    /// The policy's top-level code does not end.
    #[error("the policy did not load within {0:?}: check its top level for an endless loop")]
    Deadline(Duration),
    /// The policy's top-level code needs too much memory.
    #[error("the policy asked for {wanted} bytes of memory while it was loaded, more than {limit}")]
    Memory {
        /// The requested total, in bytes.
        wanted: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The interpreter trapped while it loaded the policy.
    #[error("the policy broke its interpreter: {0}")]
    Broke(CallError),
    /// The component cannot be a base: it does not export the load function, or has state that
    /// wizer cannot save.
    #[error("the interpreter's state cannot be saved: {0}")]
    Unfit(String),
}

impl From<CallError> for BaseError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Deadline(timeout) => Self::Deadline(timeout),
            CallError::Memory { wanted, limit } => Self::Memory { wanted, limit },
            error => Self::Broke(error),
        }
    }
}

impl Base {
    /// Compiles an interpreter. `load` names its export
    /// `func(source: string) -> result<_, string>`.
    pub async fn new(
        engine: &Engine,
        wasm: impl Into<Bytes>,
        load: &'static str,
    ) -> Result<Self, LoadError> {
        let wasm = wasm.into();
        let tier = engine.tier(Code::Baseline)?;
        let compiled = off_the_runtime({
            let (tier, wasm) = (tier.clone(), wasm.clone());
            move || {
                let (_, instrumented) = Wizer::new().instrument_component(&wasm)?;
                linked(&tier, &Component::new(&tier.engine, instrumented)?)
            }
        });
        let pre = compiled
            .await?
            .map_err(|error| LoadError::Invalid(chain(&error)))?;
        Ok(Self {
            engine: engine.clone(),
            wasm,
            load,
            pre,
            _tier: tier,
        })
    }

    /// Loads a policy's source into a fresh instance, and returns a component with the resulting
    /// state. Takes tens of milliseconds.
    pub async fn snapshot(&self, source: &str) -> Result<Vec<u8>, BaseError> {
        let pre = &self.pre;
        let mut store = limited(pre.engine(), &LIMITS, Arc::default(), World::Real);
        let _active = self.engine.ticker().enter();
        let instantiated = within(LIMITS.call_timeout, pre.instantiate_async(&mut store)).await;
        let instance = ended(&store, LIMITS.call_timeout, instantiated)?;
        let load = instance
            .get_typed_func::<(&str,), (Result<(), String>,)>(&mut store, self.load)
            .map_err(|error| BaseError::Unfit(format!("{}: {}", self.load, chain(&error))))?;
        let called = within(LIMITS.call_timeout, load.call_async(&mut store, (source,))).await;
        let (loaded,) = ended(&store, LIMITS.call_timeout, called)?;
        loaded.map_err(BaseError::Refused)?;
        // Reading the state gets a deadline of its own.
        store.data_mut().deadline = Instant::now() + LIMITS.call_timeout;
        let state = State {
            store,
            instance,
            problem: None,
        };
        let (wasm, runtime) = (self.wasm.clone(), Handle::current());
        off_the_runtime(move || runtime.block_on(written(&wasm, state)))
            .await
            .map_err(|error| BaseError::Unfit(error.to_string()))?
    }
}

/// Resolves the imports of an interpreter. Imports that neither WASI nor the contract provides
/// belong to its toolchain, and trap if called.
fn linked(tier: &Tier, component: &Component) -> wasmtime::Result<InstancePre<HostState>> {
    let mut linker = tier.linker.clone();
    for (name, import) in component.component_type().imports(&tier.engine) {
        let ours = name.starts_with("wasi:") || name.starts_with("vmhost:");
        if let (false, ComponentItem::ComponentInstance(interface)) = (ours, import.ty) {
            let mut traps = linker.instance(name)?;
            for (name, export) in interface.exports(&tier.engine) {
                if let ComponentItem::ComponentFunc(_) = export.ty {
                    traps.func_new(name, |_, _, _, _| Err(Trap::UnreachableCodeReached.into()))?;
                }
            }
        }
    }
    linker.instantiate_pre(component)
}

/// Returns the component with the state of an instance written into it.
async fn written(wasm: &[u8], mut state: State) -> Result<Vec<u8>, BaseError> {
    let wizer = Wizer::new();
    let (context, _) = wizer
        .instrument_component(wasm)
        .map_err(|error| unfit(&error))?;
    let written = wizer.snapshot_component(&context, &mut state).await;
    match state.problem {
        Some(problem) => Err(unfit(&problem)),
        None => written.map_err(|error| unfit(&error)),
    }
}

fn unfit(error: &wasmtime::Error) -> BaseError {
    BaseError::Unfit(chain(error))
}

/// An instance whose state wizer reads. Wizer's callbacks cannot return an error, so this keeps the
/// first error and hands wizer a dummy value instead; the result is then discarded.
struct State {
    store: Store<HostState>,
    instance: Instance,
    problem: Option<wasmtime::Error>,
}

impl State {
    async fn call<R: Lift + Send + Sync + 'static>(
        &mut self,
        interface: &str,
        name: &str,
    ) -> Option<R> {
        let called = self.try_call(interface, name).await;
        called
            .map_err(|error| self.problem.get_or_insert(error))
            .ok()
    }

    async fn try_call<R: Lift + Send + Sync + 'static>(
        &mut self,
        interface: &str,
        name: &str,
    ) -> wasmtime::Result<R> {
        let lacks = || wasmtime::Error::msg(format!("no {interface}#{name}"));
        let exported = |parent, name, state: &mut Self| {
            let found = state
                .instance
                .get_export_index(&mut state.store, parent, name);
            found.ok_or_else(lacks)
        };
        let interface = exported(None, interface, self)?;
        let index = exported(Some(&interface), name, self)?;
        let function = self
            .instance
            .get_typed_func::<(), (R,)>(&mut self.store, index)?;
        Ok(function.call_async(&mut self.store, ()).await?.0)
    }
}

impl ComponentInstanceState for State {
    async fn call_func_ret_list_u8(
        &mut self,
        interface: &str,
        name: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) {
        match self.call::<WasmList<u8>>(interface, name).await {
            Some(list) => contents(list.as_le_slice(&self.store)),
            None => contents(&[]),
        }
    }

    async fn call_func_ret_s32(&mut self, interface: &str, name: &str) -> i32 {
        self.call(interface, name).await.unwrap_or_default()
    }

    async fn call_func_ret_s64(&mut self, interface: &str, name: &str) -> i64 {
        self.call(interface, name).await.unwrap_or_default()
    }

    async fn call_func_ret_f32(&mut self, interface: &str, name: &str) -> u32 {
        let value: Option<f32> = self.call(interface, name).await;
        value.unwrap_or_default().to_bits()
    }

    async fn call_func_ret_f64(&mut self, interface: &str, name: &str) -> u64 {
        let value: Option<f64> = self.call(interface, name).await;
        value.unwrap_or_default().to_bits()
    }
}

#[cfg(test)]
mod tests;
