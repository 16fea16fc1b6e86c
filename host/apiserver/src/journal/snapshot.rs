//! Snapshots: all objects of a cluster at one version.
//!
//! Owns their file, and the thread that writes it while the cluster goes on. Must not know logs,
//! but for their removal when a snapshot has taken their place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use super::line::{self, Kept};
use crate::error::Error;
use crate::object::{Key, Stored};
use crate::store::Store;

/// The end of the name of a snapshot that is not complete.
pub(crate) const UNFINISHED: &str = ".unfinished";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: u64,
    objects: usize,
}

pub(crate) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("snapshot-{number}"))
}

/// Reads a snapshot into an empty store; returns its size.
pub(crate) fn read(path: &Path, store: &mut Store) -> Result<u64, Error> {
    let failed = |source| Error::State {
        path: path.to_owned(),
        source,
    };
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let mut at = 0;
    let mut text = Vec::new();
    let mut head: Option<Head> = None;
    let mut count = 0;
    loop {
        let damaged = || Error::StateDamaged {
            path: path.to_owned(),
            at,
        };
        text.clear();
        let length = reader.read_until(b'\n', &mut text).map_err(failed)? as u64;
        if length == 0 {
            let head = head.filter(|head| head.objects == count);
            store.loaded(head.ok_or_else(damaged)?.version);
            return Ok(at);
        }
        if head.is_none() {
            head = Some(line::document(&text).ok_or_else(damaged)?);
        } else {
            let kept: Kept = line::document(&text).ok_or_else(damaged)?;
            let key = Key::new(&kept.namespace, &kept.name);
            store.load(&kept.storage, key, kept.new);
            count += 1;
        }
        at += length;
    }
}

/// Writes snapshots, one at a time.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    running: Option<JoinHandle<io::Result<u64>>>,
}

impl Writer {
    pub fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// Returns the size of a snapshot that has been completed since the last time. One that failed
    /// is tried again when the log has grown; until then the files before it stay.
    pub fn finished(&mut self) -> Option<u64> {
        let running = self.running.take_if(|running| running.is_finished())?;
        match running.join() {
            Ok(Ok(size)) => Some(size),
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot write a snapshot; the log goes on");
                None
            }
            Err(_) => None,
        }
    }

    /// Begins to write a snapshot. Waits for the one before.
    pub fn begin(
        &mut self,
        folder: &Path,
        number: u64,
        version: u64,
        objects: Vec<(Arc<str>, Key, Stored)>,
    ) -> io::Result<()> {
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
        let folder = folder.to_owned();
        let write = move || write(&folder, number, version, &objects);
        let thread = std::thread::Builder::new().name("vmhost-snapshot".to_owned());
        self.running = Some(thread.spawn(write)?);
        Ok(())
    }

    /// Waits for the snapshot that is being written; returns its size.
    pub fn wait(&mut self) -> io::Result<u64> {
        match self.running.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            Some(Err(_)) => Err(io::Error::other("the thread of the snapshot panicked")),
            None => Ok(0),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The next process that opens the folder must find no thread that changes it.
        let _ = self.wait();
    }
}

/// Writes a snapshot, and removes the files that it takes the place of. Returns its size.
fn write(
    folder: &Path,
    number: u64,
    version: u64,
    objects: &[(Arc<str>, Key, Stored)],
) -> io::Result<u64> {
    let complete = path(folder, number);
    let unfinished = folder.join(format!("snapshot-{number}{UNFINISHED}"));
    let mut options = private();
    let file = options.create(true).write(true).truncate(true);
    let mut file = BufWriter::new(file.open(&unfinished)?);
    let head = Head {
        version,
        objects: objects.len(),
    };
    let mut size = 0;
    let mut put = |line: Vec<u8>| {
        size += line.len() as u64;
        file.write_all(&line)
    };
    put(line::of(&head)?)?;
    for (storage, key, object) in objects {
        put(line::of_object(storage, key, object)?)?;
    }
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    fs::rename(&unfinished, &complete)?;
    File::open(folder)?.sync_all()?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let of = name.strip_prefix("snapshot-").or(name.strip_prefix("log-"));
        let of = of.and_then(|text| text.parse::<u64>().ok());
        if of.is_some_and(|of| of < number) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(size)
}

/// Returns options by which a new file is for this user only, whatever its folder: it has Secrets.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}
