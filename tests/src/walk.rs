//! A page that is run: the `sh` blocks below its headings, by one shell. Whatever that starts ends
//! with the test. This module must not know what a page is about.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::guard::Guard;
use crate::host::without_settings;
use crate::report;
use crate::wait::eventually_within;

/// The lines of the shell's output that a failing test shows.
const SHOWN: usize = 150;

/// A page's blocks below one heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The heading, without its marks.
    pub heading: String,
    /// The commands.
    pub commands: String,
}

/// Returns the steps of a page, in order. Headings without commands are left out.
pub fn steps(page: &str) -> Result<Vec<Step>> {
    let mut steps = vec![Step::default()];
    let mut block: Option<&str> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), block) {
            (Some(language), None) => block = Some(language),
            (Some(_), Some(_)) => block = None,
            (None, None) if line.starts_with('#') => steps.push(Step {
                heading: line.trim_start_matches('#').trim().to_owned(),
                ..Step::default()
            }),
            (None, Some("sh")) => {
                let step = steps.last_mut().context("there is a first step")?;
                step.commands += line;
                step.commands.push('\n');
            }
            (None, _) => {}
        }
    }
    ensure!(block.is_none(), "a block of the page does not end");
    steps.retain(|step| !step.commands.is_empty());
    Ok(steps)
}

/// A shell that runs steps in a folder.
pub struct Shell {
    command: Command,
    folder: PathBuf,
}

impl Shell {
    /// A shell in this folder, which is free of the machine's settings.
    pub fn new(folder: &Path) -> Shell {
        let mut command = Command::new("bash");
        without_settings(&mut command);
        command.args(["-euxo", "pipefail"]).current_dir(folder);
        Shell {
            command,
            folder: folder.to_owned(),
        }
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Shell {
        self.command.env(name, value);
        self
    }

    /// Runs the steps. All commands must succeed within this time.
    pub async fn run(mut self, steps: &[Step], within: Duration) -> Result<()> {
        let mut text = String::new();
        for step in steps {
            text += &format!(": '## {}'\n{}", step.heading, step.commands);
        }
        let (script, log) = (self.folder.join(".script"), self.folder.join(".log"));
        fs::write(&script, text).with_context(|| script.display().to_string())?;
        let output = File::create(&log).with_context(|| log.display().to_string())?;
        self.command
            .arg(&script)
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("sharing the log")?)
            .stderr(output);
        let mut guard = Guard::spawn_group(&mut self.command)?;
        let ended = eventually_within(within, "the page ends", async || guard.try_wait()).await;
        let log = fs::read(&log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        report::attach("the shell's output", report::tail(&log, SHOWN));
        let status: ExitStatus = ended?;
        if !status.success() {
            let step = log.lines().rev().find_map(|line| line.strip_prefix("+ : "));
            bail!("{}: {status}", step.unwrap_or("before the first step"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sh_blocks_are_commands() {
        let page = "# A\n\n```sh\n# a comment\none\n```\n## B\ntext\n```yaml\n# no: heading\n```\n\
            ### C\n```sh\ntwo\n```\nmore\n```sh\nthree\n```\n";
        let step = |heading: &str, commands: &str| Step {
            heading: heading.to_owned(),
            commands: commands.to_owned(),
        };
        let wanted = [step("A", "# a comment\none\n"), step("C", "two\nthree\n")];
        assert_eq!(steps(page).unwrap(), wanted);
        assert!(steps("```sh\none\n").is_err());
    }

    #[tokio::test]
    async fn what_a_shell_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let step = |commands: &str| Step {
            heading: "first".to_owned(),
            commands: commands.to_owned(),
        };
        let steps = [step("sleep 600 &\necho $! >pid\n"), step("false\n")];
        let shell = Shell::new(folder.path());
        let failed = shell.run(&steps, Duration::from_secs(60)).await;
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("first"), "{error}");
        let id = fs::read_to_string(folder.path().join("pid")).unwrap();
        let id: u32 = id.trim().parse().unwrap();
        eventually_within(
            Duration::from_secs(60),
            "the process has ended",
            async || {
                // A process that nobody has waited for yet has no memory any more.
                let status = fs::read_to_string(format!("/proc/{id}/status"));
                let lives = status.is_ok_and(|text| text.contains("VmSize"));
                Ok((!lives).then_some(()))
            },
        )
        .await
        .unwrap();
    }
}
