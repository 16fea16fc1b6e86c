//! The one door through which a policy reads the cluster: the engine calls it, the host's stores and connection stand behind it.

use std::future::ready;
use std::pin::Pin;

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
    /// The API server did not answer, or refused.
    Unavailable(String),
}

/// Objects whose indexed field has this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexMatch {
    /// The index, by the name that the description gave it.
    pub name: String,
    /// The value.
    pub value: String,
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
    /// Only those with a value in an index. Not of live reads.
    pub index: Option<IndexMatch>,
    /// Only those with this uid among their owner references. Not of live reads.
    pub owner: Option<String>,
    /// At most so many objects.
    pub limit: usize,
    /// The `next` of the page before.
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

/// A read that is sent to the API server: it is admitted when the host's own limits allow it, and
/// then answered. Awaiting it waits for both.
pub struct LiveRead<T>(Boxed<Boxed<Result<T, ReadError>>>);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<T: Send + 'static> LiveRead<T> {
    /// `admitted` waits for the limits only; `answer` sends the read with what it gave.
    #[expect(
        clippy::async_yields_async,
        reason = "admission and answer are awaited apart"
    )]
    pub fn new<P, R>(
        admitted: impl Future<Output = P> + Send + 'static,
        answer: impl FnOnce(P) -> R + Send + 'static,
    ) -> Self
    where
        R: Future<Output = Result<T, ReadError>> + Send + 'static,
    {
        Self(Box::pin(async move {
            let answer: Boxed<Result<T, ReadError>> = Box::pin(answer(admitted.await));
            answer
        }))
    }

    /// One that needs no server.
    pub fn answered(answer: Result<T, ReadError>) -> Self {
        Self::new(ready(answer), ready)
    }
}

impl<T> LiveRead<T> {
    /// Waits for the limits. What it gives is awaited within the call's deadline; it does not have
    /// to end by itself.
    pub async fn admitted(self) -> impl Future<Output = Result<T, ReadError>> + Send {
        self.0.await
    }
}

impl<T: Send + 'static> IntoFuture for LiveRead<T> {
    type Output = Result<T, ReadError>;
    type IntoFuture = Boxed<Result<T, ReadError>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.0.await.await })
    }
}

/// Reads of a running call. Those from stores never wait.
pub trait ObjectReader: Send + Sync {
    /// One object; `Ok(None)`: it does not exist.
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError>;
    /// Objects of one kind.
    fn list(&self, query: &ListQuery) -> Result<Page, ReadError>;
    /// One object, from the API server.
    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>>;
    /// Objects of one kind, from the API server.
    fn list_live(&self, query: ListQuery) -> LiveRead<Page>;
}
