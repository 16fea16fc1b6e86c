//! The machine and the time of the race.

use std::fs;
use std::process::Command;

/// Returns the facts below the table.
pub fn facts(kubernetes: &str, rounds: u32) -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".into());
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_else(|| "?".into());
    vec![
        format!(
            "{}, {rounds} rounds",
            first_line("date", &["-u", "+%d %B %Y %H:%M UTC"])
        ),
        format!(
            "{cores} cores ({model}), {memory}, Linux {}",
            first_line("uname", &["-rm"])
        ),
        format!("kube-apiserver {kubernetes} on the same machine, 4 workers each"),
        format!(
            "{}, {}",
            first_line("rustc", &["--version"]),
            first_line("go", &["version"])
        ),
    ]
}

/// Returns the first line of a command's output, or that the command is missing.
pub fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line = text.as_deref().and_then(|text| text.lines().next());
    line.map_or_else(|| format!("no {program}"), str::to_owned)
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
