//! What can go wrong with a component, and with a call. Each variant says who must act.

use std::time::Duration;

use vmhost_core::DescriptionError;

/// Why the engine cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Wasmtime refused its settings on this machine.
    #[error("wasmtime cannot be set up on this machine: {0}")]
    Setup(String),
    /// The ticker's thread could not be started.
    #[error("the epoch thread cannot be started")]
    Ticker(#[source] std::io::Error),
}

/// Why a component cannot be a plugin. The plugin's author or the operator who copied the file must
/// act.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file is larger than the limit.
    #[error("the file has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The file's size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Not a WebAssembly binary.
    #[error("the file is not WebAssembly (it does not begin with \\0asm)")]
    NotWasm,
    /// A core module instead of a component.
    #[error(
        "the file is a core WebAssembly module, not a component: build it for wasm32-wasip2, or wrap it with `wasm-tools component new`"
    )]
    CoreModule,
    /// The component is truncated or invalid, or uses a disabled feature.
    #[error("the component is damaged or not valid: {0}")]
    Invalid(String),
    /// The compiler failed: it needs too much memory or time, or has a bug. The same bytes fail
    /// again.
    #[error("the component cannot be compiled: {0}")]
    Compiler(String),
    /// The machine is short of memory, disk space or processes. Its operator must act, or the
    /// shortage passes.
    #[error("the component cannot be compiled now: {0}")]
    Shortage(String),
    /// The component exports another contract or no contract.
    #[error("the component does not export {}: {found}", crate::CONTRACT)]
    OtherContract {
        /// What the component exports instead.
        found: String,
    },
    /// The component imports an interface that the host lacks.
    #[error("the component imports what this host lacks: {0}")]
    Import(String),
    /// The component cannot be instantiated.
    #[error("the component cannot be instantiated: {0}")]
    Instantiate(CallError),
    /// The interpreter does not run its script.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// `describe` failed.
    #[error("describe failed: {0}")]
    Describe(CallError),
    /// `describe` returned an error.
    #[error("describe returned an error: {0}")]
    Refused(String),
    /// `describe` returned an invalid description.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The task that ran `describe` ended: the process is exiting, or the host has a bug.
    #[error("describe was interrupted: {0}")]
    CutOff(String),
}

impl LoadError {
    /// Returns whether the same bytes may load at another time.
    ///
    /// A missed deadline of `describe` counts: it is measured in wall-clock time, which also passes
    /// while a busy machine does not schedule the guest.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Shortage(_) | Self::CutOff(_) => true,
            Self::Instantiate(error) | Self::Describe(error) => error.may_pass(),
            Self::Empty
            | Self::TooLarge { .. }
            | Self::NotWasm
            | Self::CoreModule
            | Self::Invalid(_)
            | Self::Compiler(_)
            | Self::OtherContract { .. }
            | Self::Import(_)
            | Self::Refused(_)
            | Self::Script(_)
            | Self::Description(_) => false,
        }
    }
}

/// Why an interpreter cannot run a script the way a build of that script would run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScriptError {
    /// What the policy printed and raised while it was loaded. Its author must act.
    #[error("{0}")]
    Raised(String),
    /// The policy imports modules that this interpreter was built without. It needs another
    /// interpreter.
    #[error("it imports {}, which its interpreter was built without", .0.join(", "))]
    Lacks(Vec<String>),
    /// The policy opens files while it is loaded. It must be built, because an instance has no
    /// files.
    #[error("it opens {} while it is imported", .0.join(", "))]
    Opens(Vec<String>),
}

/// Why a call did not return an outcome. The host drops the instance and retries the key on a fresh
/// one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The guest trapped: a panic, an abort, an invalid pointer or a recursion that is too deep.
    #[error("the plugin trapped: {reason}")]
    Trap {
        /// The trap, and the last lines that the guest printed.
        reason: String,
    },
    /// The call exceeded its deadline.
    #[error("the plugin did not return within {0:?} (--call-timeout)")]
    Deadline(Duration),
    /// The guest asked for more memory than its limit.
    #[error(
        "the plugin asked for {wanted} bytes of memory, more than the limit of {limit} (--memory-limit)"
    )]
    Memory {
        /// The requested total, in bytes.
        wanted: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The guest passed data that the host cannot accept: too large, invalid UTF-8 or an invalid
    /// pointer.
    #[error("the plugin passed data that the host cannot accept: {0}")]
    Malformed(String),
    /// All instance slots of the process are in use. The plugin is not at fault.
    #[error("no instance is free: {0}")]
    Busy(String),
}

impl CallError {
    /// Returns whether the same call may succeed at another time, with the guest and its input
    /// unchanged.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Deadline(_) | Self::Busy(_) => true,
            Self::Trap { .. } | Self::Memory { .. } | Self::Malformed(_) => false,
        }
    }

    /// Returns the kind as one word, for metric labels.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Trap { .. } => "trap",
            Self::Deadline(_) => "deadline",
            Self::Memory { .. } => "memory",
            Self::Malformed(_) => "malformed",
            Self::Busy(_) => "busy",
        }
    }
}

/// The epoch callback's error when the deadline has passed.
#[derive(Debug, thiserror::Error)]
#[error("the deadline has passed")]
pub(crate) struct DeadlinePassed;

/// The limiter's error when it denies memory.
#[derive(Debug, thiserror::Error)]
#[error("memory limit")]
pub(crate) struct MemoryDenied {
    pub(crate) wanted: usize,
    pub(crate) limit: usize,
}

/// Converts a wasmtime error. `printed` is the guest's output during the call: only there does a
/// panic give its reason.
pub(crate) fn call_error(error: &wasmtime::Error, timeout: Duration, printed: &str) -> CallError {
    if error.downcast_ref::<DeadlinePassed>().is_some() {
        return CallError::Deadline(timeout);
    }
    if let Some(denied) = error.downcast_ref::<MemoryDenied>() {
        return CallError::Memory {
            wanted: denied.wanted,
            limit: denied.limit,
        };
    }
    if let Some(limit) = error.downcast_ref::<wasmtime::PoolConcurrencyLimitError>() {
        return CallError::Busy(limit.to_string());
    }
    let printed = last_lines(printed);
    if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        return CallError::Trap {
            reason: format!("it called exit({}){printed}", exit.0),
        };
    }
    if let Some(trap) = error.downcast_ref::<wasmtime::Trap>() {
        return CallError::Trap {
            reason: format!("{}{printed}", trap_text(*trap)),
        };
    }
    CallError::Malformed(format!("{}{printed}", error.root_cause()))
}

/// Returns wasmtime's text with a hint for the guest's author.
fn trap_text(trap: wasmtime::Trap) -> String {
    match trap {
        wasmtime::Trap::UnreachableCodeReached => {
            "panic or abort (unreachable code reached)".into()
        }
        wasmtime::Trap::StackOverflow => "call stack exhausted (a recursion too deep?)".into(),
        // A Rust or C guest keeps large frames on a shadow stack in its memory. Its overflow ends
        // in this trap.
        wasmtime::Trap::MemoryOutOfBounds => {
            "memory access out of bounds (a wild pointer, or a recursion too deep?)".into()
        }
        trap => trap.to_string(),
    }
}

/// Returns the last lines that a guest printed, as a suffix for an error.
fn last_lines(printed: &str) -> String {
    const LINES: usize = 6;
    let lines: Vec<&str> = printed
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let tail = lines[lines.len().saturating_sub(LINES)..].join(" | ");
    let tail = vmhost_core::one_line(&tail);
    if tail.is_empty() {
        String::new()
    } else {
        format!(": {tail}")
    }
}
