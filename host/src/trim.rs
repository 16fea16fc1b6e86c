//! Gives the code back that only starting needed: command line, kubeconfig, linking, discovery.
//!
//! The kernel maps sixteen pages of the binary for each one that is touched and keeps them mapped: of 23 MiB resident after the start of
//! a build without LTO, 13.6 were code. What still runs is mapped again at its next call, from the page cache. Nothing else is touched: no data, no other file, no guest.

use std::ffi::c_void;
use std::fs;
use std::ops::Range;
use std::time::Duration;

use rustix::mm::{Advice, madvise};

/// Pauses between its turns: behind a start without objects, one with many, and the first work.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(8),
    Duration::from_secs(50),
];

/// A few times after the start, then never.
pub fn start() {
    tokio::spawn(async {
        for pause in PAUSES {
            tokio::time::sleep(pause).await;
            if let Err(error) = give_back() {
                tracing::debug!("the code that starting needed stays mapped: {error}");
            }
        }
    });
}

fn give_back() -> std::io::Result<()> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let binary = fs::read_link("/proc/self/exe")?;
    for code in code_of(&maps, &binary.to_string_lossy()) {
        #[allow(
            unsafe_code,
            reason = "clean pages of a file that is mapped privately, read-only and executable: dropped, they come back from the file as they were"
        )]
        // Safety: code has no relocations (they are in other segments), so that the pages are the file's and nothing is lost.
        unsafe {
            madvise(code.start as *mut c_void, code.len(), Advice::LinuxDontNeed)?;
        }
    }
    Ok(())
}

/// The address ranges of the binary's code: `r-xp` of this file.
fn code_of(maps: &str, binary: &str) -> Vec<Range<usize>> {
    let range = |line: &str| {
        let mut words = line.split_whitespace();
        let (range, kind) = (words.next()?, words.next()?);
        if kind != "r-xp" || words.nth(3)? != binary {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let address = |hex| usize::from_str_radix(hex, 16).ok();
        Some(address(start)?..address(end)?)
    };
    maps.lines().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0000000-55d0c0400000 r--p 00000000 fe:00 7  /usr/bin/vmhost
55d0c0400000-55d0c0500000 r-xp 00400000 fe:00 7                          /usr/bin/vmhost
55d0c0500000-55d0c0600000 rw-p 00500000 fe:00 7  /usr/bin/vmhost
7f0000000000-7f0000100000 r-xp 00000000 fe:00 9  /usr/lib/libc.so.6
7f0000200000-7f0000300000 r-xp 00000000 00:00 0
";

    #[test]
    fn only_the_binarys_own_code_is_given_back() {
        let code = code_of(MAPS, "/usr/bin/vmhost");
        assert_eq!(code.len(), 1);
        assert_eq!(code[0], 0x55d0_c040_0000..0x55d0_c050_0000);
    }

    #[test]
    fn what_runs_afterwards_runs() {
        give_back().unwrap();
        assert!(code_of(MAPS, "/usr/bin/other").is_empty());
    }
}
