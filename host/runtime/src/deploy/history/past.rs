//! The history of one plugin: its index, its files, and the code that is kept in memory. This
//! module must not know other plugins, or how a version is swapped.

use std::io::ErrorKind;
use std::sync::Arc;

use vmhost_engine::Plugin;

use super::Past;
use super::error::HistoryError;
use super::index::{Run, named};
use super::report::RunReport;

impl Past {
    /// The newest version besides `current` that is not refused and whose code or bytes are kept.
    pub(super) fn before(&self, current: &str) -> Result<&str, HistoryError> {
        self.index.before(current, |digest| self.has(digest))
    }

    /// The newest version besides `current` that is not refused and whose bytes can be read, with
    /// these bytes.
    pub(super) fn read_before(&self, current: &str) -> Result<(String, Vec<u8>), HistoryError> {
        let mut first = None;
        loop {
            let found = match self.before(current) {
                Ok(found) => found,
                Err(error) => return Err(first.unwrap_or(error)),
            };
            match self.read(found) {
                Ok(bytes) => return Ok((found.to_owned(), bytes)),
                // The file was torn and has been removed, so the next round finds an older version.
                Err(error) if !self.has(found) => {
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn has(&self, digest: &str) -> bool {
        let in_folder = self
            .folder
            .as_ref()
            .is_some_and(|folder| folder.has(digest));
        in_folder || self.on_shelf(digest).is_some()
    }

    pub(super) fn on_shelf(&self, digest: &str) -> Option<&Arc<Plugin>> {
        self.shelf.iter().find(|plugin| plugin.digest() == digest)
    }

    pub(super) fn read(&self, digest: &str) -> Result<Vec<u8>, HistoryError> {
        let gone = || HistoryError::Gone(named(digest));
        let Some(folder) = &self.folder else {
            return self.components.get(digest).cloned().ok_or_else(gone);
        };
        folder.read(digest).map_err(|error| match error.kind() {
            ErrorKind::NotFound => gone(),
            _ => HistoryError::Unreadable {
                digest: named(digest),
                why: error.to_string(),
            },
        })
    }

    pub(super) fn lift(&mut self, plugin: &str) {
        if !self.index.refused.is_empty() {
            self.index.refused.clear();
            self.write(plugin, true);
        }
    }

    /// Notes whether the version that is about to be kept is a candidate that was aborted. Drops
    /// the component of the one before: aborts without end would fill memory or disk.
    pub(super) fn abort(&mut self, digest: &str, is_aborted: bool) {
        let before = self.aborted.take().filter(|before| before != digest);
        if !is_aborted {
            self.aborted = before;
            return;
        }
        self.aborted = Some(digest.to_owned());
        let Some(before) = before.filter(|one| !self.index.kept().contains(&one.as_str())) else {
            return;
        };
        self.components.remove(&before);
        if let Some(folder) = &self.folder
            && let Err(error) = folder.remove(&before)
        {
            tracing::debug!("cannot remove the component of an aborted candidate: {error}");
        }
    }

    /// Drops code and components that are not kept any more, and the code of the running version,
    /// which its generation holds.
    pub(super) fn drop_old(&mut self, current: &str) {
        let kept = self.index.kept();
        self.shelf.retain(|plugin| {
            let digest = plugin.digest();
            digest != current && kept.contains(&digest)
        });
        let components = &mut self.components;
        components.retain(|digest, _| kept.contains(&digest.as_str()));
    }

    /// Writes the index, and removes the files of versions that are not kept any more.
    pub(super) fn write(&self, plugin: &str, durable: bool) {
        let Some(folder) = &self.folder else {
            return;
        };
        let written = folder.write_index(&self.index, durable);
        if let Err(error) = written.and_then(|()| folder.retain(&self.index.kept())) {
            let folder = folder.path().display();
            tracing::warn!(
                plugin,
                "cannot write the history {folder}, so that a restart does not know the last change, such as a rollback: {error}"
            );
        }
    }

    pub(super) fn shown(&self, run: &Run) -> RunReport {
        let in_folder = self.folder.as_ref();
        // The running version is not on the shelf, but its code is in memory.
        let kept = if run.why.is_none() || self.on_shelf(&run.digest).is_some() {
            "memory"
        } else if in_folder.is_some_and(|folder| folder.has(&run.digest)) {
            "file"
        } else {
            "no"
        };
        RunReport {
            digest: named(&run.digest),
            version: run.version.clone(),
            generation: run.generation,
            began: run.began.clone(),
            ended: run.ended.clone(),
            why: run.why,
            size: run.size,
            kept: kept.to_owned(),
        }
    }
}
