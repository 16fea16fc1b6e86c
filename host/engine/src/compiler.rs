//! Where machine code is made: in this process, or in a child that hands an image back and takes the compiler's memory with it.
//!
//! A compiler touches some 10 MiB of code and heap that a process never gives back, for work of milliseconds. And it is the one part of the engine that reads all
//! of a stranger's bytes: in a child, what blows up is the child. It must not know what becomes of an image.
//!
//! Between the two: the component on stdin, the image on stdout (a file), and why there is none on stderr, with the exit code [`REFUSED`].

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

/// The word by which a process knows that it is the child; the code's name follows.
const CHILD: &str = "compile-component";

/// The child's exit code for a component that cannot be compiled, and should be said so.
const REFUSED: u8 = 3;

/// The child's exit code for an image that cannot be written: a full disk.
const UNWRITTEN: u8 = 4;

/// How long a compilation may take. Extrapolated from 243 KB in 44 ms and 131 ms on two cores, the largest component (64 MiB) takes Winch 12 s and Cranelift 36 s;
/// busy guests were seen to make both ten times slower.
fn deadline(code: Code) -> Duration {
    Duration::from_secs(match code {
        Code::Baseline => 120,
        Code::Optimised => 600,
    })
}

/// Memory of the child: as much as this, and so much more for each byte of the component. Cranelift left 11 MiB of heap behind for 197 KB: 60 bytes a byte.
const MEMORY: u64 = 1 << 30;
const MEMORY_A_BYTE: u64 = 128;

/// The signal by which the kernel ends a process when memory is short.
const SIGKILL: i32 = Signal::KILL.as_raw();

/// What is read of a child's stderr.
const REASON: u64 = 64 << 10;

/// Where components are compiled.
#[derive(Clone, Debug, Default)]
pub enum Compiler {
    /// In this process: for libraries and tests.
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

/// Why a child made no image.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no child.
    Start(std::io::Error),
    /// The component cannot be compiled.
    Refused(String),
    /// The image could not be written.
    Unwritten(String),
    /// Another process killed the child: the kernel, when the machine's memory is short. What
    /// exceeds the child's own limit aborts instead.
    Killed(String),
    /// The child ended otherwise: it crashed, took too long or too much memory.
    Broke(String),
}

impl Compiler {
    /// In a child that runs this process's own program. Its `main` must ask [`as_child`] first.
    pub fn child() -> Self {
        // The link leads to the program that runs, even when a newer one has its name by now: only the same version makes images that fit.
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
    /// Another program, whose `main` asks [`as_child`] first and which is of the same version.
    pub fn of(program: PathBuf) -> Self {
        Self { program }
    }

    /// Compiles into `image`. Whoever drops the future kills the child.
    pub(crate) async fn compile(
        &self,
        code: Code,
        component: &[u8],
        image: File,
    ) -> Result<(), Failure> {
        let mut child = Command::new(&self.program)
            .arg0("vmhost")
            .args([CHILD, code.name()])
            // No tokens, no addresses.
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
                // A child that ends before it has read all says itself why.
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

/// Says once that there are no children.
pub(crate) fn warn_of_no_child(error: &std::io::Error) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::warn!(
            "components are compiled in this process, since no child could be started: {error}"
        );
    });
}

/// Is this process a child that compiles? Then it does, and this is its exit code.
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

/// Guests go first, and when memory is short the child goes. What the machine does not let it do is left.
fn step_back(code: Code, size: u64) {
    // Baseline code is waited for, and takes milliseconds.
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
