//! Where machine code is compiled: in this process, or in a child process that returns an image and
//! frees the compiler's memory when it exits.
//!
//! A compiler touches some 10 MiB of code and heap that a process never gives back, for
//! milliseconds of work. It is also the only part of the engine that parses all bytes of an
//! untrusted component: a crash in the child leaves the host running. This module must not know how
//! an image is used.
//!
//! The protocol: the component on stdin, the image on stdout (a file), and an error text on stderr
//! with the exit code [`REFUSED`].

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::Once;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, nice, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::code::Code;
use crate::tier::compiling_engine;

/// The argument that makes a process the compiling child; the name of the [`Code`] follows.
const CHILD: &str = "compile-component";

/// The child's exit code for a component that cannot be compiled.
const REFUSED: u8 = 3;

/// The child's exit code for an image that cannot be written, for example because the disk is full.
const UNWRITTEN: u8 = 4;

/// Returns the time limit of a compilation. 243 KB compile in 44 ms (Winch) and 131 ms (Cranelift)
/// on two cores, which extrapolates to 12 s and 36 s for the largest component (64 MiB). Busy
/// guests were measured to make both ten times slower.
fn deadline(code: Code) -> Duration {
    Duration::from_secs(match code {
        Code::Baseline => 120,
        Code::Optimised => 600,
    })
}

/// The child's memory limit, to which a multiple of the component's size is added. Cranelift used
/// 11 MiB of heap for 197 KB: 60 bytes per byte.
const MEMORY: u64 = 1 << 30;
const MEMORY_A_BYTE: u64 = 128;

/// The signal that the kernel's out-of-memory killer sends.
const SIGKILL: i32 = Signal::KILL.as_raw();

/// How much of a child's stderr is read.
const REASON: u64 = 64 << 10;

/// Where components are compiled.
#[derive(Clone, Debug, Default)]
pub enum Compiler {
    /// In this process; for libraries and tests.
    #[default]
    Here,
    /// In a child process.
    Child(Child),
}

/// How a child is started.
#[derive(Clone, Debug)]
pub struct Child {
    program: PathBuf,
}

/// Why a child produced no image.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The child cannot be started.
    Start(std::io::Error),
    /// The component cannot be compiled.
    Refused(String),
    /// The image could not be written.
    Unwritten(String),
    /// Another process killed the child, usually the kernel when the machine's memory is short. A
    /// child that exceeds its own limit aborts instead.
    Killed(String),
    /// The child ended otherwise: it crashed, or exceeded its time or memory.
    Broke(String),
}

impl Compiler {
    /// Compiles in a child that runs this program. Its `main` must call [`as_child`] first.
    pub fn child() -> Self {
        // The link leads to the running program even if a newer file has its name by now. Only the
        // same version produces images that load here.
        let link = PathBuf::from("/proc/self/exe");
        match link.exists() {
            true => Self::Child(Child { program: link }),
            false => {
                std::env::current_exe().map_or(Self::Here, |program| Self::Child(Child { program }))
            }
        }
    }
}

impl Child {
    /// Compiles in another program. It must have the same version, and its `main` must call
    /// [`as_child`] first.
    pub fn of(program: PathBuf) -> Self {
        Self { program }
    }

    /// Compiles into `image`. Dropping the future kills the child.
    pub(crate) async fn compile(
        &self,
        code: Code,
        component: &[u8],
        image: File,
    ) -> Result<(), Failure> {
        let mut child = Command::new(&self.program)
            .arg0("vmhost")
            .args([CHILD, code.name()])
            // The child gets no tokens and no addresses.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(image)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Failure::Start)?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A child that ends before it has read everything reports the reason itself.
                let _ = stdin.write_all(component).await;
            }
        };
        let listen = async {
            let mut reason = Vec::new();
            if let Some(stderr) = stderr {
                let _ = stderr.take(REASON).read_to_end(&mut reason).await;
            }
            String::from_utf8_lossy(&reason).into_owned()
        };
        let all = async { tokio::join!(feed, listen, child.wait()) };
        let deadline = deadline(code);
        match tokio::time::timeout(deadline, all).await {
            Ok(((), reason, Ok(status))) => verdict(status, reason),
            Ok((_, _, Err(error))) => Err(Failure::Broke(error.to_string())),
            Err(_) => Err(Failure::Broke(format!("it took longer than {deadline:?}"))),
        }
    }
}

fn verdict(status: ExitStatus, reason: String) -> Result<(), Failure> {
    match status.code() {
        Some(0) => Ok(()),
        Some(code) if code == i32::from(REFUSED) => Err(Failure::Refused(reason)),
        Some(code) if code == i32::from(UNWRITTEN) => Err(Failure::Unwritten(reason)),
        _ => {
            let reason = vmhost_core::one_line(reason.trim());
            let reason = format!("the compiler ended with {status}: {reason}");
            Err(match status.signal() {
                Some(SIGKILL) => Failure::Killed(reason),
                _ => Failure::Broke(reason),
            })
        }
    }
}

/// Warns once that no child can be started.
pub(crate) fn warn_of_no_child(error: &std::io::Error) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::warn!(
            "compiler: cannot start a child process: {error}; compiling in this process"
        );
    });
}

/// Compiles and returns the exit code if this process is a compiling child; otherwise returns
/// `None`.
pub fn as_child(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(CHILD)) {
        return None;
    }
    let code = arguments
        .next()
        .and_then(|name| Code::of_name(name.to_str()?));
    let (exit, reason) = match compile_stdin(code?) {
        Ok(()) => return Some(ExitCode::SUCCESS),
        Err(Failure::Refused(reason)) => (REFUSED, reason),
        Err(Failure::Unwritten(reason) | Failure::Killed(reason) | Failure::Broke(reason)) => {
            (UNWRITTEN, reason)
        }
        Err(Failure::Start(error)) => (UNWRITTEN, error.to_string()),
    };
    let _ = std::io::stderr().write_all(reason.as_bytes());
    Some(ExitCode::from(exit))
}

fn compile_stdin(code: Code) -> Result<(), Failure> {
    let mut component = Vec::new();
    std::io::stdin()
        .read_to_end(&mut component)
        .map_err(Failure::Start)?;
    step_back(code, component.len() as u64);
    let refused = |error: wasmtime::Error| Failure::Refused(error.root_cause().to_string());
    let image = compiling_engine(code)
        .and_then(|engine| engine.precompile_component(&component))
        .map_err(refused)?;
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(&image)
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::Unwritten(error.to_string()))
}

/// Lowers the child's CPU priority below the guests' and makes it the first victim when memory is
/// short. Ignores what the machine does not permit.
fn step_back(code: Code, size: u64) {
    // Calls wait for baseline code, which takes milliseconds.
    if code == Code::Optimised {
        let _ = nice(10);
    }
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let limit = MEMORY + MEMORY_A_BYTE * size;
    let old = getrlimit(Resource::Data);
    let limit = old.maximum.map_or(limit, |maximum| maximum.min(limit));
    let both = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    let _ = setrlimit(Resource::Data, both);
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
}
