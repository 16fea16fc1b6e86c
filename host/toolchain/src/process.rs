//! Runs a tool so that dropping the future stops the tool and all processes that it has started.
//! This module knows no tool.

use std::io::{Read as _, Seek as _, Write as _};
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;

use crate::{Error, Result};

/// The result of a tool.
pub(crate) struct Output {
    /// The exit status.
    pub status: ExitStatus,
    /// What the tool printed to stdout.
    pub stdout: Vec<u8>,
}

/// Runs a tool until it exits, captures its stdout and passes on its stderr. Dropping the future
/// kills the tool and the processes that it has started (rustc, Go's compiler).
pub(crate) async fn run(command: &mut Command) -> Result<Output> {
    let program = command
        .as_std()
        .get_program()
        .to_string_lossy()
        .into_owned();
    let failed = |source| Error::Run {
        program: program.clone(),
        source,
    };
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let group = Group::of(child.id());
    let output = child.wait_with_output().await.map_err(failed)?;
    group.ended();
    Ok(Output {
        status: output.status,
        stdout: output.stdout,
    })
}

/// Runs a tool that reports errors on stdout; prints that to stderr if the tool fails.
pub(crate) async fn run_shown(command: &mut Command) -> Result<Output> {
    let output = run(command).await?;
    if !output.status.success() {
        let _ = std::io::stderr().write_all(&output.stdout);
    }
    Ok(output)
}

/// Runs a tool and captures its stderr, which follows the output in the result.
pub(crate) async fn run_kept(command: &mut Command) -> Result<(Output, String)> {
    let program = command
        .as_std()
        .get_program()
        .to_string_lossy()
        .into_owned();
    let failed = |source| Error::Run { program, source };
    // A file instead of a pipe, so that no task has to read it while the tool runs.
    let mut file = match tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file))) {
        Ok((theirs, ours)) => {
            command.stderr(Stdio::from(theirs));
            ours
        }
        Err(source) => return Err(failed(source)),
    };
    let output = run(command).await?;
    let mut text = Vec::new();
    let read = file.rewind().and_then(|()| file.read_to_end(&mut text));
    read.map_err(failed)?;
    Ok((output, String::from_utf8_lossy(&text).into_owned()))
}

/// The process group of one tool. Dropping it kills the group.
struct Group(Option<Pid>);

impl Group {
    fn of(id: Option<u32>) -> Self {
        let id = id.and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn a_tool_ends_with_its_status_and_its_output() {
        let output = run(&mut shell("echo out; exit 3")).await.unwrap();
        assert_eq!(
            (output.status.code(), &output.stdout[..]),
            (Some(3), &b"out\n"[..])
        );
        let error = run(&mut Command::new("no-such-tool-of-vmhost"))
            .await
            .err()
            .unwrap();
        assert_eq!(error.to_string(), "cannot run no-such-tool-of-vmhost");
    }

    #[tokio::test]
    async fn a_tool_that_is_dropped_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        // Complete before the children sleep.
        let script = format!(
            "sleep 60 & child=$!; echo $$ $child > {0}.new; mv {0}.new {0}; wait",
            pids.display()
        );
        let mut command = shell(&script);
        let running = run(&mut command);
        let started = async {
            while !pids.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = running => panic!("it ended by itself"),
            () = started => {}
        }
        let text = std::fs::read_to_string(&pids).unwrap();
        for pid in text.split_whitespace() {
            let gone = async {
                while is_running(pid) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), gone)
                .await
                .unwrap();
        }
    }

    /// Returns whether a process is running; a zombie is not.
    fn is_running(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
    }
}
