//! The interface through which a plugin reads the cluster: the engine calls it, the host's stores
//! and API connection implement it. It must not know where an answer comes from.

use std::future::ready;
use std::pin::Pin;

use crate::http::{HttpCall, HttpError, HttpResponse, HttpTurn};
use crate::key::{Gvk, ObjectName};
use crate::object::Snapshot;

/// How the names of settings begin that the host itself gives to a call.
pub const RESERVED_SETTINGS: &str = "vmhost/";

/// Why a read could not be answered. Mirrors `read-error` of `wit/v1/cluster.wit`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReadError {
    /// The controller does not watch this kind or namespace.
    NotWatched(String),
    /// The answer is larger than this many bytes.
    TooLarge(u32),
    /// The query is malformed.
    Invalid(String),
    /// The API server did not answer, or refused the request.
    Unavailable(String),
}

/// Objects whose indexed field has this value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexMatch {
    /// The index's name in the description.
    pub name: String,
    /// The value.
    pub value: String,
}

/// Which objects to list. Mirrors `query` of `wit/v1/cluster.wit`.
#[derive(Clone, Debug, Hash)]
pub struct ListQuery {
    /// The kind.
    pub kind: Gvk,
    /// One namespace; `None` for all.
    pub namespace: Option<String>,
    /// A label selector; `None` for all objects.
    pub label_selector: Option<String>,
    /// Only objects with this value in an index. Not supported by live reads.
    pub index: Option<IndexMatch>,
    /// Only objects with this uid among their owner references. Not supported by live reads.
    pub owner: Option<String>,
    /// Maximum number of objects in the page.
    pub limit: usize,
    /// `next` of the previous page.
    pub after: Option<String>,
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The objects, ordered by namespace and name.
    pub objects: Vec<Snapshot>,
    /// The value of `after` for the next page; `None` on the last page.
    pub next: Option<String>,
}

/// A question that the host sends: a read to the API server, an HTTP request. The host's own limits
/// admit it first, then the other side answers. Awaiting the value waits for both.
pub struct LiveRead<T, E = ReadError>(Boxed<Boxed<Result<T, E>>>);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<T: Send + 'static, E: Send + 'static> LiveRead<T, E> {
    /// Builds a read from two steps: `admitted` waits only for the limits, `answer` sends the
    /// request with what `admitted` returned.
    #[expect(
        clippy::async_yields_async,
        reason = "admission and answer are awaited separately"
    )]
    pub fn new<P, R>(
        admitted: impl Future<Output = P> + Send + 'static,
        answer: impl FnOnce(P) -> R + Send + 'static,
    ) -> Self
    where
        R: Future<Output = Result<T, E>> + Send + 'static,
    {
        Self(Box::pin(async move {
            let answer: Boxed<Result<T, E>> = Box::pin(answer(admitted.await));
            answer
        }))
    }

    /// Builds a read that is already answered.
    pub fn answered(answer: Result<T, E>) -> Self {
        Self::new(ready(answer), ready)
    }
}

impl<T, E> LiveRead<T, E> {
    /// Waits for the limits. The caller awaits the returned future within the call's deadline; the
    /// future need not end by itself.
    pub async fn admitted(self) -> impl Future<Output = Result<T, E>> + Send {
        self.0.await
    }
}

impl<T: Send + 'static, E: Send + 'static> IntoFuture for LiveRead<T, E> {
    type Output = Result<T, E>;
    type IntoFuture = Boxed<Result<T, E>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.0.await.await })
    }
}

/// An HTTP request of a call, with its answer.
pub type HttpAnswer = LiveRead<HttpResponse, HttpError>;

/// What a running call may ask the host. Reads from stores never wait.
pub trait ObjectReader: Send + Sync {
    /// Reads one object; `Ok(None)` if it does not exist.
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError>;
    /// Lists objects of one kind.
    fn list(&self, query: &ListQuery) -> Result<Page, ReadError>;
    /// Reads one object from the API server.
    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>>;
    /// Lists objects of one kind from the API server.
    fn list_live(&self, query: ListQuery) -> LiveRead<Page>;

    /// A setting that the host itself gives to the call: one whose name begins with
    /// [`RESERVED_SETTINGS`]. Most calls have none.
    fn reserved(&self, _name: &str) -> Option<String> {
        None
    }

    /// A call of a plugin that imports `wit/http-v1` begins.
    fn begins(&self, _turn: &HttpTurn) {}

    /// Sends an HTTP request. Most readers send none.
    fn http(&self, _call: HttpCall) -> HttpAnswer {
        HttpAnswer::answered(Err(HttpError::not_here("this call sends no HTTP requests")))
    }
}
