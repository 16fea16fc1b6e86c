//! `vmhost apiserver`: runs the embedded API server alone, or for another command. This module must
//! not know plugins.

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use vmhost_apiserver::{Options, Server, State};
use vmhost_cluster::{ConnectOptions, connect};

use super::args::apiserver::ApiserverArgs;
use super::files::write_private;
use super::manifests;
use crate::exit::Exit;
use crate::output::print;
use crate::signals::StopSignals;

/// The exit code of a command that a signal ended is this plus the signal, as in a shell.
const BY_SIGNAL: i32 = 128;

/// Runs until a signal ends the process, or the command of `--for-command` ends.
pub(crate) async fn command(args: &ApiserverArgs) -> Result<()> {
    let mut stop = StopSignals::new()?;
    let state = match &args.state {
        Some(folder) => State::open(folder).context("--state")?,
        None => State::new(),
    };
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let mut options = Options::at(addr);
    options.rbac = args.rbac;
    let server = Server::start(state.clone(), options).await;
    let server = server.context("the API server (--port)")?;
    let ended = tokio::select! {
        ended = run(args, &server, &mut stop) => ended,
        () = state.failed() => Err(anyhow!("--state: the folder cannot be written")),
    };
    server.stop().await;
    ended
}

async fn run(args: &ApiserverArgs, server: &Server, stop: &mut StopSignals) -> Result<()> {
    let out = &args.kubeconfig_out;
    let kubeconfig = write_private(out, &server.kubeconfig());
    let kubeconfig =
        kubeconfig.with_context(|| format!("cannot write {} (--kubeconfig-out)", out.display()))?;
    tokio::select! {
        created = create(args, &kubeconfig) => created?,
        () = stop.first() => return Ok(()),
    }
    if let Some((program, arguments)) = args.command.split_first() {
        return run_command(program, arguments, &kubeconfig, stop).await;
    }
    print(&format!("https://{}", server.addr()));
    print(&format!("export KUBECONFIG={}", kubeconfig.display()));
    stop.first().await;
    Ok(())
}

/// Creates the objects of `--crds`.
async fn create(args: &ApiserverArgs, kubeconfig: &Path) -> Result<()> {
    let objects = manifests::read(&args.crds).context("--crds")?;
    if objects.is_empty() {
        return Ok(());
    }
    let options = ConnectOptions {
        kubeconfig: Some(PathBuf::from(kubeconfig)),
        context: None,
    };
    let cluster = connect(&options).await?.manifests();
    manifests::apply(&cluster, &objects, |_| {}).await
}

/// Runs a command to its end. A signal to this process is handed on to it.
async fn run_command(
    program: &OsStr,
    arguments: &[OsString],
    kubeconfig: &Path,
    stop: &mut StopSignals,
) -> Result<()> {
    let mut child = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot run {} (--for-command)", program.display()))?;
    loop {
        let status = tokio::select! {
            status = child.wait() => status?,
            () = stop.first() => {
                terminate(&child);
                continue;
            }
        };
        return match code(status) {
            0 => Ok(()),
            code => Err(Exit::with(code).into()),
        };
    }
}

fn terminate(child: &Child) {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(id) = id.and_then(Pid::from_raw) {
        // An error means that it has just ended.
        let _ = kill_process(id, Signal::TERM);
    }
}

fn code(status: ExitStatus) -> u8 {
    let by_signal = status.signal().map(|signal| BY_SIGNAL + signal);
    let code = status.code().or(by_signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}
