//! Keeps a cluster in a folder: an append-only file of its writes, and snapshots.
//!
//! A write is one line, which is written before the write is acknowledged. So a process that is
//! killed at any byte loses at most a write that nobody was told of. (A machine that loses power
//! may lose the last seconds.) When the file is large, a snapshot of all objects takes its place:
//!
//! ```text
//! snapshot-3  log-3                     what is there: the snapshot, and the writes since
//! snapshot-3  log-3  log-4              writes go on in log-4 while snapshot-4 is written
//! snapshot-3  log-3  log-4  snapshot-4  complete, since it has its name
//! snapshot-4  log-4                     the old ones are removed
//! ```
//!
//! Owns the files and their order. Must not know what an object means, or when a cluster is
//! written.

mod line;
mod snapshot;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::store::{Change, Store};

/// A log of at least this size, and of twice the size of the last snapshot, makes way for a
/// snapshot.
const SMALLEST: u64 = 16 << 20;

/// The open journal of a cluster.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    log: File,
    number: u64,
    /// The size of the log, in bytes.
    size: u64,
    /// The size of the log at which it makes way.
    limit: u64,
    snapshot: snapshot::Writer,
    /// Set when a line could not be written: the log may end in the middle of it.
    is_cut: bool,
    /// Held as long as the journal is open.
    _lock: File,
}

impl Journal {
    /// Opens a folder, and creates it if there is none. Returns the store that it holds.
    pub fn open(folder: &Path) -> Result<(Journal, Store), Error> {
        let failed = |source| Error::State {
            path: folder.to_owned(),
            source,
        };
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(folder).map_err(failed)?;
        let lock = lock(folder)?;
        let found = Found::in_folder(folder).map_err(failed)?;
        let mut store = Store::new();
        let mut limit = SMALLEST;
        if found.snapshot > 0 {
            let path = snapshot::path(folder, found.snapshot);
            let size = snapshot::read(&path, &mut store)?;
            limit = limit.max(size.saturating_mul(2));
        }
        let mut size = 0;
        for (at, number) in found.logs.iter().enumerate() {
            let is_last = at + 1 == found.logs.len();
            size = replay(&log_path(folder, *number), &mut store, is_last)?;
        }
        let number = found.logs.last().copied().unwrap_or(found.snapshot);
        let log = open_log(&log_path(folder, number)).map_err(failed)?;
        found.remove_old().map_err(failed)?;
        let journal = Journal {
            folder: folder.to_owned(),
            log,
            number,
            size,
            limit,
            snapshot: snapshot::Writer::default(),
            is_cut: false,
            _lock: lock,
        };
        Ok((journal, store))
    }

    /// Appends the changes of one write: all of them, or none if the process ends meanwhile. After
    /// an error nothing is appended any more: a line behind a cut one would make it damage, which
    /// costs the whole folder.
    pub fn append(&mut self, changes: &[Arc<Change>]) -> io::Result<()> {
        if self.is_cut {
            return Err(io::Error::other("an earlier write could not be kept"));
        }
        let text = line::of_changes(changes)?;
        if let Err(error) = self.log.write_all(&text) {
            self.is_cut = true;
            return Err(error);
        }
        self.size += text.len() as u64;
        Ok(())
    }

    /// Begins a snapshot if the log has become large.
    pub fn tidy(&mut self, store: &Store) -> io::Result<()> {
        if let Some(size) = self.snapshot.finished() {
            self.limit = SMALLEST.max(size.saturating_mul(2));
        }
        if self.size >= self.limit && self.snapshot.is_idle() {
            self.begin_snapshot(store)?;
        }
        Ok(())
    }

    /// Makes this store the one that the journal keeps, whatever was written before.
    pub fn replace(&mut self, store: &Store) -> io::Result<()> {
        self.begin_snapshot(store)?;
        let size = self.snapshot.wait()?;
        self.limit = SMALLEST.max(size.saturating_mul(2));
        Ok(())
    }

    /// Continues in a new log, and writes a snapshot of all that is before it.
    fn begin_snapshot(&mut self, store: &Store) -> io::Result<()> {
        let number = self.number + 1;
        self.log = open_log(&log_path(&self.folder, number))?;
        (self.number, self.size) = (number, 0);
        self.snapshot
            .begin(&self.folder, number, store.version(), store.all())
    }
}

/// The files of a folder that hold its cluster.
struct Found {
    /// The number of the newest snapshot; 0 if there is none.
    snapshot: u64,
    /// The logs since then, in their order.
    logs: Vec<u64>,
    old: Vec<PathBuf>,
}

impl Found {
    fn in_folder(folder: &Path) -> io::Result<Found> {
        let (mut snapshots, mut logs) = (Vec::new(), Vec::new());
        let mut old = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
            if let Some(number) = number(name.strip_prefix("snapshot-")) {
                snapshots.push(number);
            } else if let Some(number) = number(name.strip_prefix("log-")) {
                logs.push(number);
            } else if name.ends_with(snapshot::UNFINISHED) {
                old.push(folder.join(&*name));
            }
        }
        let newest = snapshots.iter().copied().max().unwrap_or(0);
        logs.sort_unstable();
        let outdated = |number: &&u64| **number < newest;
        old.extend(
            snapshots
                .iter()
                .filter(outdated)
                .map(|n| snapshot::path(folder, *n)),
        );
        old.extend(logs.iter().filter(outdated).map(|n| log_path(folder, *n)));
        logs.retain(|number| *number >= newest);
        Ok(Found {
            snapshot: newest,
            logs,
            old,
        })
    }

    fn remove_old(&self) -> io::Result<()> {
        self.old.iter().try_for_each(fs::remove_file)
    }
}

fn log_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("log-{number}"))
}

fn open_log(path: &Path) -> io::Result<File> {
    snapshot::private().create(true).append(true).open(path)
}

/// Makes sure that no other process uses the folder.
fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join("lock");
    let failed = |source| Error::State {
        path: path.clone(),
        source,
    };
    let mut options = snapshot::private();
    let file = options.create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::StateInUse(folder.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Repeats the writes of a log; returns its size. The last line of the last log may be cut: that
/// write was not acknowledged, and is removed.
fn replay(path: &Path, store: &mut Store, is_last: bool) -> Result<u64, Error> {
    let failed = |source| Error::State {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let mut reader = BufReader::new(&file);
    let (mut at, mut text) = (0, Vec::new());
    loop {
        text.clear();
        let length = reader.read_until(b'\n', &mut text).map_err(failed)? as u64;
        if length == 0 {
            return Ok(at);
        }
        if text.last() != Some(&b'\n') && is_last {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            file.set_len(at).map_err(failed)?;
            return Ok(at);
        }
        let damaged = || Error::StateDamaged {
            path: path.to_owned(),
            at,
        };
        for repeated in line::changes(&text).ok_or_else(damaged)? {
            if !repeated.into_store(store) {
                return Err(damaged());
            }
        }
        at += length;
    }
}
