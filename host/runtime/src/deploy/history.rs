//! The versions of each plugin that ran on this host, so that a rollback needs neither the old file
//! nor a compiler: the newest ones stay in memory, and all of them in a folder.
//!
//! | Module | Owns |
//! |---|---|
//! | [`keep`] | how many versions are kept, and where |
//! | [`past`] | the history of one plugin: its index, its files and its code in memory |
//! | [`index`] | which versions ran, which are kept, which are refused |
//! | [`folder`] | the files |
//! | [`start`] | what a start of the host does with a refused version |
//! | [`error`] | why there is no version to roll back to |
//! | [`report`] | the documents |
//! | [`blocking`] | the threads on which this is called |
//!
//! Functions whose comment says so read or write files: the threads for I/O and for guests must not
//! call them. This module must not know how a version is swapped.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use vmhost_core::chain_line;
use vmhost_engine::{Code, Plugin};

mod blocking;
pub(crate) mod error;
mod folder;
mod index;
pub mod keep;
mod past;
pub mod report;
mod start;

pub(crate) use blocking::with;
pub(crate) use start::Start;

use error::HistoryError;
use folder::{Folder, is_digest};
use index::{Index, Run, named};
use keep::Keep;
use report::{HistoryReport, Why};

/// The histories of all plugins.
pub struct History {
    keep: Keep,
    /// By the names of their places, see [`History::place`].
    plugins: Mutex<HashMap<String, Arc<Mutex<Past>>>>,
    /// The owners of plugins that were handed over, by the plugin's name.
    owners: Mutex<HashMap<String, String>>,
    /// Whether the log already names a folder that cannot be used.
    warned: AtomicBool,
}

/// The history of one plugin.
#[derive(Default)]
struct Past {
    index: Index,
    /// `None` if versions are kept in memory only.
    folder: Option<Folder>,
    /// The components of the versions by their digests, if there is no folder.
    components: HashMap<String, Vec<u8>>,
    /// Versions that ran in this process and do not run now, with their compiled code.
    shelf: Vec<Arc<Plugin>>,
    /// The refused version that the log has named since it was rolled back.
    told: Option<String>,
    /// The last candidate that was kept after its canary was aborted.
    aborted: Option<String>,
}

/// A version that ran before.
pub(crate) enum Version {
    /// The code is in memory. The bytes are empty if the code is already optimised, or if no file
    /// has them.
    Kept(Arc<Plugin>, Vec<u8>),
    /// The bytes of a version whose code is not in memory.
    Bytes(Vec<u8>),
}

impl History {
    /// Creates histories that are kept in this place. Reads nothing yet.
    pub(crate) fn new(keep: Keep) -> Self {
        Self {
            keep,
            plugins: Mutex::default(),
            owners: Mutex::default(),
            warned: AtomicBool::new(false),
        }
    }

    /// From now on the plugin of this name is this owner's. Its history leaves out the versions
    /// that ran for another owner: a rollback must not run one owner's code with another's grants.
    pub(crate) fn belongs(&self, plugin: &str, owner: &str) {
        self.owners
            .lock()
            .insert(plugin.to_owned(), owner.to_owned());
    }

    /// Returns whether this owner was the last one to whom the plugin of this name was said to
    /// belong.
    pub(crate) fn is_of(&self, plugin: &str, owner: &str) -> bool {
        let owners = self.owners.lock();
        owners.get(plugin).is_some_and(|last| last == owner)
    }

    /// The name of a plugin's place among the histories.
    fn place(&self, plugin: &str) -> String {
        match self.owners.lock().get(plugin) {
            None => plugin.to_owned(),
            Some(owner) => placed(plugin, owner),
        }
    }

    /// The component of a version that ran for this owner, whose the plugin need not be yet. `None`
    /// if it is not kept. Reads files, and none but those of versions, whatever the digest says.
    pub(crate) fn kept(&self, plugin: &str, owner: &str, digest: &str) -> Option<Vec<u8>> {
        if !is_digest(digest) {
            return None;
        }
        let past = self.past_at(plugin, placed(plugin, owner))?;
        let past = past.lock();
        past.read(digest).ok().filter(|bytes| !bytes.is_empty())
    }

    /// The component of a version of a plugin that runs or ran. `None` if it is not kept, as that
    /// of a script never is. Reads files, and none but those of versions, whatever the digest says.
    pub(crate) fn component(&self, plugin: &str, digest: &str) -> Option<Vec<u8>> {
        if !is_digest(digest) {
            return None;
        }
        let past = self.past(plugin)?;
        let past = past.lock();
        past.read(digest).ok().filter(|bytes| !bytes.is_empty())
    }

    /// As [`History::lift`], for this owner, whose the plugin need not be yet. Writes files.
    pub(crate) fn lift_of(&self, plugin: &str, owner: &str) {
        if let Some(past) = self.past_at(plugin, placed(plugin, owner)) {
            past.lock().lift(plugin);
        }
    }

    /// Keeps the bytes of a version that is about to run. Writes files.
    pub(crate) fn keep(&self, plugin: &Plugin, bytes: &[u8]) {
        self.keep_as(plugin, bytes, false);
    }

    /// Keeps the bytes of a candidate whose canary was aborted, until another one is or another
    /// version runs. Writes files.
    pub(crate) fn keep_aborted(&self, plugin: &Plugin, bytes: &[u8]) {
        self.keep_as(plugin, bytes, true);
    }

    fn keep_as(&self, plugin: &Plugin, bytes: &[u8], is_aborted: bool) {
        let name = &plugin.description().name;
        // If a plugin is a script, its component is only the interpreter. If a version was kept in
        // memory, its bytes may be unknown.
        if plugin.digest() != plugin.component() || bytes.is_empty() {
            return;
        }
        let Some(past) = self.past(name) else {
            return;
        };
        let mut past = past.lock();
        past.abort(plugin.digest(), is_aborted);
        let Some(folder) = &past.folder else {
            let components = &mut past.components;
            components.insert(plugin.digest().to_owned(), bytes.to_vec());
            return;
        };
        if let Err(error) = folder.put(plugin.digest(), bytes) {
            let folder = folder.path().display();
            tracing::warn!(
                plugin = name,
                "cannot keep the version in {folder}, so that a restart loses it: {error}"
            );
        }
    }

    /// Adds a version that runs from now on, and keeps the code of the one before, which it
    /// replaced for the reason `why`. Versions that are too old are dropped. `is_from_source` says
    /// that the plugin's source has this version: then no version is refused any more. Writes
    /// files.
    pub(crate) fn began(
        &self,
        now: &Arc<Plugin>,
        generation: u64,
        why: Why,
        before: Option<Arc<Plugin>>,
        is_from_source: bool,
    ) {
        let description = now.description();
        let Some(past) = self.past(&description.name) else {
            return;
        };
        let run = Run {
            digest: now.digest().to_owned(),
            version: description.version.clone(),
            generation,
            began: second(),
            ended: None,
            why: None,
            size: now.inspection().size as u64,
        };
        let mut past = past.lock();
        past.index.begin(run, why);
        past.index.accept(now.digest(), is_from_source);
        if let Some(before) = before {
            before.shelve();
            past.shelf.push(before);
        }
        past.drop_old(now.digest());
        past.write(&description.name, why != Why::Crash);
    }

    /// Refuses the version `from`, which is about to be replaced by the version `to`. Writes files.
    pub(crate) fn roll_back(&self, plugin: &str, from: &str, to: &str) {
        if let Some(past) = self.past(plugin) {
            let mut past = past.lock();
            past.index.roll_back(from, to);
            past.told = None;
            past.write(plugin, true);
        }
    }

    /// Ends all refusals of a plugin, since its source has other bytes now. Writes files.
    pub(crate) fn lift(&self, plugin: &str) {
        if let Some(past) = self.past(plugin) {
            past.lock().lift(plugin);
        }
    }

    /// Notes that the run of a plugin ends. Writes files.
    pub(crate) fn ended(&self, plugin: &str, why: Why) {
        if let Some(past) = self.past(plugin) {
            let mut past = past.lock();
            past.index.end(Some(second()), why);
            past.write(plugin, false);
        }
    }

    /// Notes that a plugin was removed, and closes its history, which is opened again when it is
    /// needed. Versions that only memory had are gone. Writes files.
    pub(crate) fn removed(&self, plugin: &str) {
        self.ended(plugin, Why::Removed);
        let place = self.place(plugin);
        let mut plugins = self.plugins.lock();
        // While another thread uses it, its folder is locked and could not be opened again.
        let is_idle = |past: &Arc<Mutex<Past>>| Arc::strong_count(past) == 1;
        if plugins.get(&place).is_some_and(is_idle) {
            plugins.remove(&place);
        }
    }

    /// Returns whether a version was rolled back. Reads files the first time, and waits while
    /// another thread reads or writes them.
    pub(crate) fn refuses(&self, plugin: &str, digest: &str) -> bool {
        self.past(plugin)
            .is_some_and(|past| past.lock().index.refuses(digest))
    }

    /// Returns whether any version of a plugin is refused. Reads files the first time.
    #[cfg(test)]
    fn refuses_any(&self, plugin: &str) -> bool {
        self.past(plugin)
            .is_some_and(|past| !past.lock().index.refused.is_empty())
    }

    /// Returns whether this refused version has not been logged since it was rolled back. Counts it
    /// as logged from now on.
    pub(crate) fn is_news(&self, plugin: &str, digest: &str) -> bool {
        self.past(plugin).is_some_and(|past| {
            let mut past = past.lock();
            let is_news = past.told.as_deref() != Some(digest);
            past.told = Some(digest.to_owned());
            is_news
        })
    }

    /// Returns the digest of the version that a rollback runs: the one whose digest begins with
    /// `to`, or else the one before `current`. Reads files.
    pub(crate) fn choose(
        &self,
        plugin: &str,
        current: &str,
        to: Option<&str>,
    ) -> Result<String, HistoryError> {
        let past = self.past(plugin).ok_or(HistoryError::Off)?;
        let past = past.lock();
        let found = match to {
            None => past.before(current)?,
            Some(to) => past.index.find(to)?,
        };
        match found == current {
            true => Err(HistoryError::Runs(named(found))),
            false => Ok(found.to_owned()),
        }
    }

    /// Returns a version that ran: its plugin if that is in memory, else its bytes. `anew` prefers
    /// the bytes, for a plugin that has to be loaded under other terms. Reads files.
    pub(crate) fn version(
        &self,
        plugin: &str,
        digest: &str,
        anew: bool,
    ) -> Result<Version, HistoryError> {
        let past = self.past(plugin).ok_or(HistoryError::Off)?;
        let past = past.lock();
        let kept = past.on_shelf(digest).cloned();
        let kept = match kept.filter(|_| !anew) {
            Some(kept) => kept,
            None => match (past.read(digest), past.on_shelf(digest)) {
                (Ok(bytes), _) => return Ok(Version::Bytes(bytes)),
                (Err(_), Some(kept)) => kept.clone(),
                (Err(error), None) => return Err(error),
            },
        };
        let bytes = match kept.code() {
            // Needed to compile optimised code later.
            Code::Baseline => past.read(digest).unwrap_or_default(),
            Code::Optimised => Vec::new(),
        };
        Ok(Version::Kept(kept, bytes))
    }

    /// The history of a plugin as a document. Reads files.
    pub(crate) fn report(&self, plugin: &str) -> Result<HistoryReport, HistoryError> {
        let past = self.past(plugin).ok_or(HistoryError::Off)?;
        let past = past.lock();
        let folder = past.folder.as_ref();
        Ok(HistoryReport {
            plugin: plugin.to_owned(),
            folder: folder.map(|folder| folder.path().display().to_string()),
            runs: past.index.runs.iter().map(|run| past.shown(run)).collect(),
            refused: past.index.refused.iter().map(|one| named(one)).collect(),
        })
    }

    /// The history of a plugin, which is read when it is first needed. `None` if no history is
    /// kept.
    fn past(&self, plugin: &str) -> Option<Arc<Mutex<Past>>> {
        self.past_at(plugin, self.place(plugin))
    }

    fn past_at(&self, plugin: &str, place: String) -> Option<Arc<Mutex<Past>>> {
        if self.keep == Keep::Off {
            return None;
        }
        let mut plugins = self.plugins.lock();
        if let Some(past) = plugins.get(&place) {
            return Some(past.clone());
        }
        let past = Arc::new(Mutex::new(self.open(plugin, &place)));
        plugins.insert(place, past.clone());
        Some(past)
    }

    fn open(&self, plugin: &str, place: &str) -> Past {
        let Keep::Folder(root) = &self.keep else {
            return Past::default();
        };
        match Folder::open(root, place) {
            Ok(folder) => Past {
                index: folder.read_index(),
                folder: Some(folder),
                ..Past::default()
            },
            Err(error) => {
                let about = format!(
                    "{}; versions are kept in memory only, until this process ends",
                    chain_line(&error)
                );
                // One warning is enough: the folders of all plugins are in the same place.
                match self.warned.swap(true, Ordering::Relaxed) {
                    false => tracing::warn!(plugin, "{about}"),
                    true => tracing::debug!(plugin, "{about}"),
                }
                Past::default()
            }
        }
    }
}

/// The place of an owner's plugin, which is the name of a folder below that of all histories. No
/// plugin's name has an `@`.
fn placed(plugin: &str, owner: &str) -> String {
    let sound = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let [plugin, owner] =
        [plugin, owner].map(|text| text.chars().filter(sound).collect::<String>());
    format!("{plugin}@{owner}")
}

/// Formats the present time, without fractions of a second.
fn second() -> String {
    let now = Timestamp::now().as_second();
    Timestamp::from_second(now).map_or_else(|_| String::new(), |now| now.to_string())
}

#[cfg(test)]
mod tests;
