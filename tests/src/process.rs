//! The cost of a process, as counted by the kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// `USER_HZ`, which Linux guarantees to user space on all relevant architectures.
const TICKS_A_SECOND: f64 = 100.0;
/// A process is idle if it has not used a tick for this long.
const QUIET: Duration = Duration::from_millis(600);
/// The interval between two checks.
const LOOK: Duration = Duration::from_millis(100);
/// A process that is never idle is measured after this time.
const RESTLESS: Duration = Duration::from_secs(20);

/// Memory, in MiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// VmRSS.
    pub resident: f64,
    /// VmHWM: the highest it has been.
    pub peak: f64,
    /// RssAnon: allocated memory.
    pub anonymous: f64,
    /// Pss: counts shared pages in part. `None` if it cannot be read.
    pub proportional: Option<f64>,
    /// `memory.current` of its cgroup. `None` if there is no cgroup.
    pub group: Option<f64>,
}

/// A cgroup (version 2) for one process and its children, in which the kernel counts all memory
/// that they cause, including page cache and kernel structures.
pub struct Group(PathBuf);

impl Group {
    /// Creates a cgroup and moves a process there that has just started; memory from before stays
    /// counted in the old group. `None` if the machine does not permit that, or counts no memory.
    pub fn around(id: u32) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        // Beside the runner's group, because the kernel counts no memory below a group that has
        // processes.
        let above = Path::new(own).parent().unwrap_or(Path::new(""));
        let folder = Path::new("/sys/fs/cgroup").join(above);
        let folder = folder.join(format!("vmhost-race-{id}"));
        fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        group.memory()?;
        fs::write(group.0.join("cgroup.procs"), id.to_string()).ok()?;
        Some(group)
    }

    fn memory(&self) -> Option<f64> {
        let bytes = fs::read_to_string(self.0.join("memory.current")).ok()?;
        let bytes: f64 = bytes.trim().parse().ok()?;
        Some(bytes / f64::from(1 << 20))
    }
}

impl Drop for Group {
    /// A cgroup can only be removed after its processes have ended.
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Returns the CPU seconds, user and system, of the process and of its ended children.
pub fn cpu(id: u32) -> Result<f64> {
    let text = read(id, "stat")?;
    // The command's name, in parentheses, may contain spaces.
    let (_, fields) = text.rsplit_once(')').context("stat has no command")?;
    // From `state`, field 3: utime is 14, stime 15, cutime 16, cstime 17.
    let ticks: Vec<f64> = fields
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse().ok())
        .collect();
    anyhow::ensure!(ticks.len() == 4, "unexpected format of /proc/{id}/stat");
    Ok(ticks.iter().sum::<f64>() / TICKS_A_SECOND)
}

/// Returns the current memory of a process, and of its cgroup if that is given.
pub fn memory(id: u32, group: Option<&Group>) -> Result<Memory> {
    let status = read(id, "status")?;
    let of = |name: &str| kilobytes(&status, name).with_context(|| format!("no {name} of {id}"));
    let rollup = read(id, "smaps_rollup").ok();
    Ok(Memory {
        resident: of("VmRSS:")?,
        peak: of("VmHWM:")?,
        anonymous: of("RssAnon:")?,
        proportional: rollup.and_then(|text| kilobytes(&text, "Pss:")),
        group: group.and_then(Group::memory),
    })
}

/// Waits until the process is idle, and returns its CPU seconds.
pub async fn quiet(id: u32) -> Result<f64> {
    let start = Instant::now();
    let (mut last, mut since) = (cpu(id)?, start);
    while since.elapsed() < QUIET && start.elapsed() < RESTLESS {
        tokio::time::sleep(LOOK).await;
        let now = cpu(id)?;
        if now > last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(last)
}

fn read(id: u32, file: &str) -> Result<String> {
    fs::read_to_string(format!("/proc/{id}/{file}")).with_context(|| format!("{file} of {id}"))
}

fn kilobytes(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_time() {
        let id = std::process::id();
        let memory = memory(id, None).unwrap();
        assert!(memory.peak >= memory.resident && memory.resident >= memory.anonymous);
        assert!(cpu(id).unwrap() >= 0.0);
    }
}
