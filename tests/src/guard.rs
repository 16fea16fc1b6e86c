//! Child processes that never outlive the test process.
//!
//! A guard kills its child when it is dropped. But a server that tests share is in a static, which
//! is never dropped, and a test process may itself be killed. So each child also has a watchdog: a
//! shell that reads from a pipe whose other end only this process holds. However this process ends,
//! the pipe closes, and the shell kills the child and removes its folder.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

/// Signals are ignored, so that Ctrl-C in a terminal does not end the watchdog too early.
const WATCHDOG: &str =
    r#"trap '' INT TERM HUP; read -r _; kill -9 "$1" 2>/dev/null; [ -z "$2" ] || rm -rf -- "$2""#;

/// A running child and its watchdog.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    watchdog: Child,
    kills: Kills,
}

/// What ends with a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kills {
    Child,
    /// The child and what it has started, also after the child itself has ended.
    Group,
}

impl Guard {
    /// Starts `command`. The watchdog removes `folder` if this process ends without dropping the
    /// guard.
    pub fn spawn(command: &mut Command, folder: Option<&Path>) -> Result<Guard> {
        Guard::start(command, folder, Kills::Child)
    }

    /// Starts `command`. What it starts in its process group ends with the guard, too.
    pub fn spawn_group(command: &mut Command) -> Result<Guard> {
        Guard::start(command, None, Kills::Group)
    }

    fn start(command: &mut Command, folder: Option<&Path>, kills: Kills) -> Result<Guard> {
        // A process group of its own: Ctrl-C reaches the test process, and the guard kills the
        // child.
        let mut child = command
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {}", command.get_program().to_string_lossy()))?;
        let watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(kills.target(child.id()))
            .arg(folder.map_or_else(Default::default, |path| path.as_os_str().to_owned()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match watchdog {
            Ok(watchdog) => Ok(Guard {
                child,
                watchdog,
                kills,
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error).context("starting a watchdog shell")
            }
        }
    }

    /// Returns the child's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the child, to take its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns the exit status, once there is one.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("asking for the exit status")
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) -> Result<()> {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.id().to_string())
            .status()
            .context("running kill")?;
        ensure!(
            status.success(),
            "kill -{name} {} failed: {status}",
            self.id()
        );
        Ok(())
    }

    /// Sends SIGKILL, and waits until the process has ended.
    pub fn kill9(&mut self) {
        let _ = self.child.kill();
        // Before the child is reaped, because its id may then belong to another process.
        match self.kills {
            Kills::Child => drop(self.watchdog.kill()),
            // The end of its input makes the watchdog kill the group. Its shell's `kill` takes the
            // id of a group, which not every program of that name does.
            Kills::Group => drop(self.watchdog.stdin.take()),
        }
        let _ = self.watchdog.wait();
        let _ = self.child.wait();
    }
}

impl Kills {
    /// Returns what the watchdog's `kill` gets for a child with this process id. The child leads
    /// its group, whose id is the same.
    fn target(self, child: u32) -> String {
        match self {
            Kills::Child => child.to_string(),
            Kills::Group => format!("-{child}"),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.kill9();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_guard_leaves_no_process() {
        let guard = Guard::spawn(Command::new("sleep").arg("600"), None).unwrap();
        let id = guard.id();
        drop(guard);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }
}
