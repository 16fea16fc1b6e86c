//! An in-process API server for tests: a function from a request to an answer, behind a real
//! `kube::Client`. No network, no sleeping.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, BodyStream, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::connect::Connection;

/// An answer of the fake server.
pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// One request as a test sees it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub method: String,
    pub path: String,
    pub query: String,
    pub content_type: String,
    pub accept: String,
    pub body: String,
}

type Answers = dyn Fn(&Request<()>) -> Answer + Send + Sync;

#[derive(Clone)]
pub(crate) struct Fake {
    answers: Option<Arc<Answers>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// With paged lists: the rests of the streams whose beginnings were served as pages.
    begun: Option<Arc<Mutex<Vec<Begun>>>>,
}

/// A stream after its list: the watch of this path from this version on.
struct Begun {
    path: String,
    version: u64,
    rest: Answer,
}

impl Fake {
    pub(crate) fn new(answers: impl Fn(&Request<()>) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            answers: Some(Arc::new(answers)),
            seen: Arc::default(),
            begun: None,
        }
    }

    /// Serves a client that lists in pages: the beginning of a streaming list becomes a page, and
    /// the rest the watch from there on.
    pub(crate) fn in_pages(mut self) -> Self {
        self.begun = Some(Arc::default());
        self
    }

    /// Gives these answers in order; further requests never get an answer.
    pub(crate) fn script(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Mutex::new(answers.into_iter().collect::<VecDeque<_>>());
        Self::new(move |_| answers.lock().pop_front().unwrap_or_else(hang))
    }

    /// Breaks every connection after the request was sent.
    pub(crate) fn broken() -> Self {
        Self {
            answers: None,
            seen: Arc::default(),
            begun: None,
        }
    }

    pub(crate) fn connection(&self) -> Connection {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            async move { fake.answer(request).await }
        });
        // Streaming lists make scripts shorter: the answer that lists continues as the watch.
        Connection::from_client(kube::Client::new(service, "default"), "fake")
            .with_streaming_lists(self.begun.is_none())
    }

    async fn answer(&self, request: Request<Body>) -> Result<Answer, std::io::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(std::io::Error::other)?;
        let header = |name: &str| {
            head.headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
                .unwrap_or_default()
        };
        self.seen.lock().push(Seen {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            content_type: header("content-type"),
            accept: header("accept"),
            body: String::from_utf8_lossy(&body).into_owned(),
        });
        let Some(answers) = &self.answers else {
            return Err(std::io::Error::other("connection reset"));
        };
        let request = Request::from_parts(head, ());
        if let Some(rest) = self.rest_for(&request) {
            return Ok(rest);
        }
        let answer = answers(&request);
        if is::<Hang>(&answer) {
            std::future::pending::<()>().await;
        }
        if self.begun.is_some() && !watches(&request) && is::<Streamed>(&answer) {
            return Ok(self.page(request.uri().path(), answer).await);
        }
        Ok(answer)
    }

    /// Returns the stream after the page from which this watch continues.
    fn rest_for(&self, request: &Request<()>) -> Option<Answer> {
        let mut begun = self.begun.as_ref()?.lock();
        let (path, version) = (request.uri().path(), version(request)?);
        let same = |one: &Begun| one.path == path && one.version == version;
        let at = begun.iter().position(same)?;
        Some(begun.remove(at).rest)
    }

    /// Serves the lines of a stream as a page, up to the end of its list.
    async fn page(&self, path: &str, stream: Answer) -> Answer {
        let mut body = stream.into_body();
        let (mut text, mut items) = (String::new(), Vec::new());
        let version = loop {
            let Some((line, rest)) = text.split_once('\n') else {
                let frame = body.frame().await.expect("a list ends").unwrap();
                text += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
                continue;
            };
            let event: Event<'_> = serde_json::from_str(line).unwrap();
            let object = event.object.get().to_owned();
            let ends = event.kind == "BOOKMARK";
            text = rest.to_owned();
            if ends {
                let object: serde_json::Value = serde_json::from_str(&object).unwrap();
                let version = object["metadata"]["resourceVersion"].as_str().unwrap();
                break version.parse().unwrap();
            }
            items.push(object);
        };
        let text = Ok(http_body::Frame::data(Bytes::from(text)));
        let rest = stream::once(async { text }).chain(BodyStream::new(body));
        let rest = Response::new(StreamBody::new(rest).boxed_unsync());
        let list = format!(
            r#"{{"kind":"List","metadata":{{"resourceVersion":"{version}"}},"items":[{}]}}"#,
            items.join(",")
        );
        let begun = Begun {
            path: path.to_owned(),
            version,
            rest,
        };
        self.begun.as_ref().unwrap().lock().push(begun);
        json(200, &list)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }
}

#[derive(Clone)]
struct Hang;

/// Marks an answer that is a watch, or a list that continues as a watch.
#[derive(Clone)]
struct Streamed;

fn is<T: Send + Sync + 'static>(answer: &Answer) -> bool {
    answer.extensions().get::<T>().is_some()
}

/// One line of a stream.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Returns whether the request opens a watch, including one that lists.
pub(crate) fn watches(request: &Request<()>) -> bool {
    let mut pairs = request.uri().query().unwrap_or_default().split('&');
    pairs.any(|pair| pair == "watch=true")
}

/// The version from which a watch continues.
pub(crate) fn version(request: &Request<()>) -> Option<u64> {
    let mut pairs = request.uri().query().unwrap_or_default().split('&');
    pairs
        .find_map(|pair| pair.strip_prefix("resourceVersion="))?
        .parse()
        .ok()
}

/// Builds an answer that never arrives.
pub(crate) fn hang() -> Answer {
    let mut answer = plain(200, "");
    answer.extensions_mut().insert(Hang);
    answer
}

pub(crate) fn json(code: u16, body: &str) -> Answer {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes())).boxed_unsync();
    Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

pub(crate) fn plain(code: u16, body: &str) -> Answer {
    Response::builder()
        .status(code)
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())).boxed_unsync())
        .unwrap()
}

pub(crate) fn status(code: u16, reason: &str, message: &str) -> Answer {
    let body = serde_json::json!({"kind":"Status","apiVersion":"v1","status":"Failure","code":code,"reason":reason,"message":message});
    json(code, &body.to_string())
}

/// Builds a watch that the test writes to: each item is a piece of the body. Dropping the sender
/// ends the watch.
pub(crate) fn streaming() -> (mpsc::Sender<String>, Answer) {
    let (sender, receiver) = mpsc::channel::<String>(64);
    let pieces = stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((
            Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(piece))),
            receiver,
        ))
    });
    let mut answer = Response::new(StreamBody::new(pieces).boxed_unsync());
    answer.extensions_mut().insert(Streamed);
    (sender, answer)
}
