//! `vmhost envtest`: controller-runtime's envtest on the embedded API server.
//!
//! envtest starts `etcd` and `kube-apiserver` from a folder, asks both whether they are healthy,
//! and stops them with SIGTERM. In the folder that this command writes, both names are links to
//! this binary, which acts as the program by whose name it is started. The objects live in
//! `kube-apiserver`; `etcd` only says that it is healthy.

mod etcd;
mod flags;
mod kube_apiserver;

use std::env::ArgsOs;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::runtime::Builder;

use self::flags::Flags;
use super::args::apiserver::EnvtestArgs;
use crate::folders;
use crate::output::print;

const KUBE_APISERVER: &str = "kube-apiserver";
const ETCD: &str = "etcd";
/// Threads for all requests: a test has few clients at a time.
const THREADS: usize = 2;

/// Writes the folder and prints its path.
pub(crate) fn command(args: &EnvtestArgs) -> Result<()> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let default = || folders::cache().map(|cache| cache.join("envtest"));
    let folder = args.dir.clone().or_else(default);
    let folder = folder.context("there is no home folder: use --dir")?;
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for name in [ETCD, KUBE_APISERVER] {
        link(&own, &folder.join(name))?;
    }
    // Only some tests use it, and they say when it is missing.
    if let Some(kubectl) = kubectl(&folder) {
        link(&kubectl, &folder.join("kubectl"))?;
    }
    let folder = folder.canonicalize()?;
    print(&folder.display().to_string());
    Ok(())
}

/// Makes a link, also if another process makes the same one.
fn link(target: &Path, link: &Path) -> Result<()> {
    let failed = || format!("cannot link {}", link.display());
    if fs::read_link(link).is_ok_and(|old| old == target) {
        return Ok(());
    }
    let mut fresh = OsString::from(link);
    fresh.push(format!(".{}", std::process::id()));
    match symlink(target, &fresh) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error).with_context(failed),
        _ => fs::rename(&fresh, link).with_context(failed),
    }
}

/// Finds kubectl on the PATH, but not the link in the folder itself.
fn kubectl(folder: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).filter(|place| place != folder);
    let mut files = folders.map(|place| place.join("kubectl"));
    files.find(|file| file.is_file())
}

/// Acts as the program by whose name this process was started; `None` if that is vmhost's.
pub(crate) fn as_tool(mut args: ArgsOs) -> Option<ExitCode> {
    let started = PathBuf::from(args.next()?);
    let name = started.file_name()?.to_str()?;
    if name != ETCD && name != KUBE_APISERVER {
        return None;
    }
    let flags = Flags::parse(args);
    let ended = match name {
        ETCD => run(etcd::HELP, &flags, etcd::run(&flags)),
        _ => run(kube_apiserver::HELP, &flags, kube_apiserver::run(&flags)),
    };
    Some(match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[allow(
                clippy::print_stderr,
                reason = "the programs have no log; envtest shows what they print"
            )]
            {
                eprintln!("{name} (vmhost): {error:#}");
            }
            ExitCode::FAILURE
        }
    })
}

fn run(help: &str, flags: &Flags, work: impl Future<Output = Result<()>>) -> Result<()> {
    if flags.has("help") {
        print(help.trim_end());
        return Ok(());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let ended = runtime.block_on(work);
    runtime.shutdown_background();
    ended
}
