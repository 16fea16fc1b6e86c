//! Starts the process: chooses the command, runs it, and returns the exit code. This module must
//! not know what a command does.

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches};
use tokio::runtime::Runtime;
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::idle;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::observe::log;
use vmhost_runtime::runtimes;

use crate::cli::common::{LogFormat, QUIET};
use crate::cli::{Cli, Command, environment};
use crate::{
    audit, canary, exit, finalizers, history, inspect, install, kubectl, package, rbac, registry,
    run, shadow, status, turns, webhooks, why, workshop,
};

/// Runs the `vmhost` command.
pub fn main() -> ExitCode {
    if let Some(exit) = vmhost_engine::as_child(std::env::args_os()) {
        return exit;
    }
    if let Some(exit) = workshop::as_tool(std::env::args_os()) {
        return exit;
    }
    if let Some(exit) = kubectl::as_completer(std::env::args_os()) {
        return exit;
    }
    let by_kubectl = kubectl::is_plugin(std::env::args_os());
    let command = match by_kubectl {
        true => kubectl::command(),
        false => Cli::command(),
    };
    let matches = environment::without_empty(command, &environment::is_empty).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match start(cli, by_kubectl) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let (code, error) = exit::of(error);
            if let Some(error) = error {
                #[allow(
                    clippy::print_stderr,
                    reason = "the last word of a command goes to stderr, whether the log was set up or not"
                )]
                {
                    eprintln!("error: {error:#}");
                }
            }
            code
        }
    }
}

fn start(mut cli: Cli, by_kubectl: bool) -> Result<()> {
    let (format, filter) = match &cli.command {
        None => cli.run.common.logging(),
        Some(Command::Workshop(workshop)) => workshop.logging(),
        Some(_) => QUIET,
    };
    let format = match format {
        LogFormat::Text => log::Format::Text,
        LogFormat::Json => log::Format::Json,
    };
    log::start(format, filter)?;
    idle::allow_open_files();
    let io = runtimes::io()?;
    let guests = runtimes::guests(std::thread::available_parallelism().map_or(2, usize::from))?;
    let result = io.block_on(async {
        // Ends with the command.
        let _forward = match &mut cli.command {
            Some(command) => kubectl::reach(command, by_kubectl).await?,
            None => None,
        };
        match cli.command {
            None => run::command(cli.run, &guests).await,
            Some(Command::Workshop(what)) => workshop::command(what, &guests).await,
            Some(Command::Inspect(args)) => inspect::command(&looking(&guests)?, &args).await,
            Some(Command::Rbac(args)) => rbac::command(&looking(&guests)?, &args).await,
            Some(Command::Webhooks(args)) => {
                webhooks::show::command(&looking(&guests)?, &args).await
            }
            Some(Command::Audit(args)) => audit::command(&args, guests.handle()).await,
            Some(Command::Finalizers(args)) => finalizers::command(&looking(&guests)?, &args).await,
            Some(Command::Push(args)) => registry::push::command(&looking(&guests)?, &args).await,
            Some(Command::Pull(args)) => registry::pull::command(&args).await,
            Some(Command::Sign(args)) => registry::sign::command(&args).await,
            Some(Command::Verify(args)) => registry::verify::command(&args).await,
            Some(Command::Status(args)) => status::command(&args).await,
            Some(Command::Why(args)) => why::command(&args).await,
            Some(Command::Turns(args)) => turns::command(&args).await,
            Some(Command::Shadow(what)) => shadow::command(&what).await,
            Some(Command::History(args)) => history::list(&args).await,
            Some(Command::Rollback(args)) => history::roll_back(&args).await,
            Some(Command::Canary(command)) => canary::command(&command).await,
            Some(Command::Promote(args)) => canary::promote(&args).await,
            Some(Command::Abort(args)) => canary::abort(&args).await,
            Some(Command::Install(args)) => install::command(&args).await,
            Some(Command::Package(args)) => package::command(&looking(&guests)?, &args).await,
        }
    });
    // A busy guest must not delay the exit.
    guests.shutdown_background();
    io.shutdown_background();
    result
}

/// Returns the loader of commands that load a component and run none of its controllers.
fn looking(guests: &Runtime) -> Result<Loader> {
    Loader::new(Config::inspecting(), guests.handle().clone())
}
