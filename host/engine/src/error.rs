//! What can go wrong with a component, and with a call. Each variant says who has to act.

use std::time::Duration;

use vmhost_core::DescriptionError;

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

/// Why a component cannot be a plugin. The plugin's author, or whoever copied the file, has to act.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No bytes.
    #[error("the file is empty")]
    Empty,
    /// More bytes than are compiled.
    #[error("the file has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Its size in bytes.
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
    /// Truncated, invalid, or with a feature that is switched off.
    #[error("the component is damaged or not valid: {0}")]
    Invalid(String),
    /// The compiler gave up: too much memory or time, or a bug of its own. The same bytes end the
    /// same way.
    #[error("the component cannot be compiled: {0}")]
    Compiler(String),
    /// Memory, disk or processes are short. The operator of the machine has to act, or it passes.
    #[error("the component cannot be compiled now: {0}")]
    Shortage(String),
    /// Exports another contract, or none.
    #[error("the component does not export {}: {found}", crate::CONTRACT)]
    OtherContract {
        /// What it exports instead.
        found: String,
    },
    /// Imports something that the host lacks.
    #[error("the component imports what this host does not have: {0}")]
    Import(String),
    /// It could not be instantiated.
    #[error("the component cannot be instantiated: {0}")]
    Instantiate(CallError),
    /// Its interpreter does not run its script.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// `describe` failed.
    #[error("describe failed: {0}")]
    Describe(CallError),
    /// `describe` returned an error.
    #[error("the plugin does not describe itself: {0}")]
    Refused(String),
    /// `describe` returned nonsense.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The task that ran `describe` ended: a bug of the host, or the process is ending.
    #[error("describe was cut off: {0}")]
    CutOff(String),
}

impl LoadError {
    /// Returns whether the same bytes may load at another time.
    ///
    /// A passed deadline of `describe` counts: it is measured by the clock on the wall, which also
    /// runs while a busy machine does not let the guest run.
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

/// Why an interpreter does not run a script as a build of it would run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScriptError {
    /// What the policy printed and raised while it was loaded. Its author has to act.
    #[error("{0}")]
    Raised(String),
    /// It imports modules that the interpreter was built without. Another interpreter is needed.
    #[error("it imports {}, which its interpreter was built without", .0.join(", "))]
    Lacks(Vec<String>),
    /// It opens files while it is loaded. It has to be built, since an instance has no files.
    #[error("it opens {} while it is imported", .0.join(", "))]
    Opens(Vec<String>),
}

/// Why a call did not return an outcome. The instance is gone; the key is tried again on a fresh one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The guest trapped: a panic, an abort, a wild pointer, a recursion too deep.
    #[error("the plugin trapped: {reason}")]
    Trap {
        /// The trap, and the last lines that it printed.
        reason: String,
    },
    /// The call outlasted its deadline.
    #[error("the plugin did not return within {0:?} (--call-timeout)")]
    Deadline(Duration),
    /// The guest asked for more memory than it may have.
    #[error(
        "the plugin asked for {wanted} bytes of memory, more than the limit of {limit} (--memory-limit)"
    )]
    Memory {
        /// What it would have had, in bytes.
        wanted: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The guest passed something that cannot be taken: too much data, invalid UTF-8, a bad pointer.
    #[error("the plugin passed data that the host cannot take: {0}")]
    Malformed(String),
    /// All instance slots of the process are taken. Not the plugin's fault.
    #[error("no instance is free: {0}")]
    Busy(String),
}

impl CallError {
    /// Returns whether the same call may end otherwise at another time, with the guest and its
    /// input unchanged.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Deadline(_) | Self::Busy(_) => true,
            Self::Trap { .. } | Self::Memory { .. } | Self::Malformed(_) => false,
        }
    }

    /// One word, for metric labels.
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

/// The deadline passed while the guest was running: made by the epoch callback.
#[derive(Debug, thiserror::Error)]
#[error("the deadline has passed")]
pub(crate) struct DeadlinePassed;

/// The limiter said no.
#[derive(Debug, thiserror::Error)]
#[error("memory limit")]
pub(crate) struct MemoryDenied {
    pub(crate) wanted: usize,
    pub(crate) limit: usize,
}

/// Reads a wasmtime error. `printed` is what the guest printed during the call: panics say why only there.
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

/// Wasmtime's text, with what a guest's author should think of.
fn trap_text(trap: wasmtime::Trap) -> String {
    match trap {
        wasmtime::Trap::UnreachableCodeReached => {
            "panic or abort (unreachable code reached)".into()
        }
        wasmtime::Trap::StackOverflow => "call stack exhausted (a recursion too deep?)".into(),
        // A Rust or C guest keeps big frames on a shadow stack in its memory, which overflows into this trap.
        wasmtime::Trap::MemoryOutOfBounds => {
            "memory access out of bounds (a wild pointer, or a recursion too deep?)".into()
        }
        trap => trap.to_string(),
    }
}

/// The last lines that a guest printed, as a suffix for an error.
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
