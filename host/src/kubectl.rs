//! The command as a kubectl plugin. By the name `kubectl-vmhost` it is `kubectl vmhost`, and its
//! commands ask a host in the cluster; by the name `kubectl_complete-vmhost` it completes their
//! words. This module must not know what a command asks.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::canary::CanaryCommand;
use crate::cli::running::HostArgs;
use crate::cli::shadow::ShadowCommand;
use crate::cli::{Cli, Command};
use crate::output::print;

mod complete;
mod forward;

use forward::{Forward, Target};

/// The file name that makes `kubectl vmhost` out of the command.
const PLUGIN: &str = "kubectl-vmhost";
/// The file name by which kubectl asks for completions of `kubectl vmhost`.
const COMPLETER: &str = "kubectl_complete-vmhost";
/// Where the chart's base installs vmhost.
const DEPLOYMENT: &str = "vmhost-system/vmhost";

/// Returns whether the process was started as the plugin of kubectl.
pub(crate) fn is_plugin(mut arguments: impl Iterator<Item = OsString>) -> bool {
    is_named(arguments.next(), PLUGIN)
}

/// Prints completions and returns the exit code, if the process was started for that.
pub(crate) fn as_completer(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if !is_named(arguments.next(), COMPLETER) {
        return None;
    }
    let words: Vec<String> = arguments
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    print(&complete::answer(&command(), &words));
    Some(ExitCode::SUCCESS)
}

/// Opens a way to the host that the command asks, if that is in a cluster, and points the command
/// to it. The way is open until the value is dropped.
pub(crate) async fn reach(command: &mut Command, by_kubectl: bool) -> Result<Option<Forward>> {
    let Some(host) = host_of(command) else {
        return Ok(None);
    };
    let deployment = match (&host.address, &host.deployment) {
        (Some(_), _) => return Ok(None),
        (None, Some(given)) => given.clone(),
        (None, None) if by_kubectl => DEPLOYMENT.to_owned(),
        (None, None) => return Ok(None),
    };
    let target = Target::parse(&deployment, host.context.as_deref())?;
    let forward = Forward::open(&target).await?;
    host.address = Some(forward.address().to_owned());
    Ok(Some(forward))
}

/// The command line as kubectl's users type it.
pub(crate) fn command() -> clap::Command {
    Cli::command()
        .name(PLUGIN)
        .bin_name("kubectl vmhost")
        .arg_required_else_help(true)
}

/// Returns which host a command asks; `None` for commands that ask none.
fn host_of(command: &mut Command) -> Option<&mut HostArgs> {
    Some(match command {
        Command::Status(args) => &mut args.host,
        Command::Why(args) => &mut args.host,
        Command::Turns(args) => &mut args.host,
        Command::History(args) => &mut args.host,
        Command::Rollback(args) => &mut args.host,
        Command::Shadow(ShadowCommand::Start(args)) => &mut args.host,
        Command::Shadow(ShadowCommand::Status(args)) => &mut args.host,
        Command::Shadow(ShadowCommand::Stop(args)) => &mut args.host,
        Command::Canary(CanaryCommand::Start(args)) => &mut args.host,
        Command::Canary(CanaryCommand::Status(args)) => &mut args.host,
        Command::Canary(CanaryCommand::Promote(args) | CanaryCommand::Abort(args))
        | Command::Promote(args)
        | Command::Abort(args) => &mut args.host,
        Command::Workshop(workshop) => return workshop.host(),
        Command::Inspect(_)
        | Command::Rbac(_)
        | Command::Webhooks(_)
        | Command::Audit(_)
        | Command::Finalizers(_)
        | Command::Install(_)
        | Command::Package(_)
        | Command::Push(_)
        | Command::Pull(_)
        | Command::Sign(_)
        | Command::Verify(_) => return None,
    })
}

fn is_named(program: Option<OsString>, name: &str) -> bool {
    program.is_some_and(|program| {
        Path::new(&program)
            .file_name()
            .is_some_and(|file| file == name)
    })
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;
    #[cfg(feature = "dev")]
    use clap::Parser;

    use super::*;

    #[test]
    fn the_name_of_the_program_decides() {
        let started = |name: &str| [OsString::from(name), "status".into()].into_iter();
        assert!(is_plugin(started("/usr/local/bin/kubectl-vmhost")));
        assert!(!is_plugin(started("vmhost")));
        assert!(!is_plugin(std::iter::empty()));
        assert!(as_completer(started("kubectl-vmhost")).is_none());
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
        let lines: [&[&str]; 3] = [&["status"], &["promote", "vm"], &["abort", "vm"]];
        for line in lines {
            let words = ["kubectl-vmhost"].iter().chain(line);
            let parsed = command().try_get_matches_from(words);
            let mut cli = Cli::from_arg_matches(&parsed.unwrap()).unwrap();
            let asked = cli.command.as_mut().and_then(host_of).unwrap();
            assert!(asked.address.is_none() && asked.deployment.is_none());
        }
    }

    #[cfg(feature = "dev")]
    #[test]
    fn turns_are_recorded_of_a_host_in_a_cluster() {
        let record = ["vmhost", "record", "--failed", "--out", "cases"];
        let words = record.into_iter().chain(["--deployment", "a/b"]);
        let mut cli = Cli::try_parse_from(words).unwrap();
        let asked = cli.command.as_mut().and_then(host_of).unwrap();
        assert_eq!(asked.deployment.as_deref(), Some("a/b"));
    }
}
