//! The one door through which a policy reads the cluster: the engine calls it, the host's stores stand behind it.

use crate::key::{Gvk, ObjectName};
use crate::object::Snapshot;

/// Why a read could not be answered. Mirrors `read-error` of `wit/v1/cluster.wit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The controller does not watch this kind or namespace.
    NotWatched(String),
    /// The answer is larger than this many bytes.
    TooLarge(u32),
    /// The question makes no sense.
    Invalid(String),
}

/// Which objects to list. Mirrors `query` of `wit/v1/cluster.wit`.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// The kind.
    pub kind: Gvk,
    /// One namespace; none: all.
    pub namespace: Option<String>,
    /// A label selector; none: all.
    pub label_selector: Option<String>,
    /// At most so many objects.
    pub limit: usize,
    /// The `next` of the page before: list what sorts behind it.
    pub after: Option<String>,
}

/// One answer.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Ordered by namespace and name.
    pub objects: Vec<Snapshot>,
    /// Pass it as `after` for the next page; none: the last.
    pub next: Option<String>,
}

/// Reads from stores that are synced. Never waits.
pub trait ObjectReader: Send + Sync {
    /// One object; `Ok(None)`: it does not exist.
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError>;
    /// Objects of one kind.
    fn list(&self, query: &ListQuery) -> Result<Page, ReadError>;
}
