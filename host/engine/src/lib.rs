//! Runs policies. Only this crate uses wasmtime.
//!
//! It owns how a component becomes a [`Plugin`] (compile, link, describe), the time and memory
//! limits of calls, and the fate of an instance after an error. It must not know Kubernetes, the
//! workqueue or the use of an outcome: a call is a function from [`vmhost_core::Request`] to
//! [`vmhost_core::Outcome`].
//!
//! ```text
//! bytes --compile--> image --instantiate--> instance --call--> outcome
//!          |  .cwasm cache    (pool, reused)    ^
//!          |  in a child                        +-- deadline (epochs + time-out), memory limiter,
//!          +-- Winch first, Cranelift later         copy limit, captured output
//! ```
//! Beside that are two kinds of interpreters. A `Base` loads a policy once and becomes that
//! policy's component: only builds need it, with the feature `base`. A [`Script`] is loaded by each
//! instance of an interpreter, so that nothing is compiled for it.
//!
//! Three things cannot happen: a `Store<HostState>` that [`instance`] did not create, a call
//! without a deadline, and the reuse of an instance after an error.

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
mod image;
mod imports;
mod instance;
mod outgoing;
mod output;
mod plugin;
mod script;
mod sending;
mod state;
mod still;
mod tap;
mod tier;
mod told;
mod waits;
mod world;

#[cfg(feature = "base")]
pub use base::{Base, BaseError};
pub use cache::{CacheError, CacheUse};
pub use code::Code;
pub use compiler::{Child, Compiler, as_child};
pub use engine::{Engine, EngineConfig, at_once};
pub use error::{CallError, EngineError, LoadError, ScriptError};
pub use facts::{Facts, INTERFACES};
pub use image::Image;
pub use plugin::pool::InstanceStats;
pub use plugin::{Inspection, Plugin};
pub use script::{Script, ScriptFile};
pub use state::Settings;
pub use told::{Draws, Told};

/// The contract that this host implements: package and version of `wit/v1`.
pub const CONTRACT: &str = "vmhost:plugin@1.0.0";
