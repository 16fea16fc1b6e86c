//! Runs policies: the only owner of wasmtime.
//!
//! It owns how a component becomes a [`Plugin`] (compile, link, describe), how long and with how much memory its calls run, and what happens to an
//! instance after an error. It must not know Kubernetes, the workqueue or what becomes of an outcome: a call is a function from
//! [`vmhost_core::Request`] to [`vmhost_core::Outcome`].
//!
//! ```text
//! bytes --compile--> image --instantiate--> instance --call--> outcome
//!          |  .cwasm cache    (pool, reused)    ^
//!          |  in a child                        +-- deadline (epochs + time-out), memory limiter, copy limit, captured output
//!          +-- Winch first, Cranelift behind
//! ```
//! Beside that, interpreters. A `Base` loads a policy once and becomes that policy's component:
//! only builds need it, with the feature `base`. A [`Script`] is loaded by each instance of an
//! interpreter, so that nothing is compiled for it.
//!
//! What is absent: a `Store<HostState>` that was not made by [`instance`]; a call without a deadline; an instance that is used again after an error.

#[cfg(feature = "base")]
mod base;
mod bindings;
mod cache;
mod code;
mod compiler;
mod engine;
mod epoch;
mod error;
mod facts;
mod imports;
mod instance;
mod output;
mod plugin;
mod script;
mod state;
mod still;
mod tier;
mod waits;

#[cfg(feature = "base")]
pub use base::{Base, BaseError};
pub use cache::{CacheError, CacheUse};
pub use code::Code;
pub use compiler::{Child, Compiler, as_child};
pub use engine::{Engine, EngineConfig, Image};
pub use error::{CallError, EngineError, LoadError, ScriptError};
pub use facts::{Facts, INTERFACES};
pub use plugin::pool::InstanceStats;
pub use plugin::{Inspection, Plugin};
pub use script::{Script, ScriptFile};
pub use state::Settings;

/// The contract that this host speaks: package and version of `wit/v1`.
pub const CONTRACT: &str = "vmhost:plugin@1.0.0";
