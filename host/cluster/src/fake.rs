//! An API server in this process, for tests: a function from a request to an answer, behind a real `kube::Client`. No network, no sleeping.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use tokio::sync::mpsc;

use crate::connect::Connection;

/// What a fake answers with.
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
}

impl Fake {
    pub(crate) fn new(answers: impl Fn(&Request<()>) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            answers: Some(Arc::new(answers)),
            seen: Arc::default(),
        }
    }

    /// Answers in this order; a request too many never gets an answer.
    pub(crate) fn script(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Mutex::new(answers.into_iter().collect::<VecDeque<_>>());
        Self::new(move |_| answers.lock().unwrap().pop_front().unwrap_or_else(hang))
    }

    /// Breaks every connection after the request was sent.
    pub(crate) fn broken() -> Self {
        Self {
            answers: None,
            seen: Arc::default(),
        }
    }

    pub(crate) fn connection(&self) -> Connection {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            async move { fake.answer(request).await }
        });
        // A script is shorter so: the answer that lists goes on as the watch.
        Connection::from_client(kube::Client::new(service, "default"), "fake")
            .with_streaming_lists(true)
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
        self.seen.lock().unwrap().push(Seen {
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
        let answer = answers(&Request::from_parts(head, ()));
        if answer.extensions().get::<Hang>().is_some() {
            std::future::pending::<()>().await;
        }
        Ok(answer)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

#[derive(Clone)]
struct Hang;

/// No answer, ever.
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

/// A watch that the test writes to: each item is a piece of the body. Dropping the sender ends it.
pub(crate) fn streaming() -> (mpsc::Sender<String>, Answer) {
    let (sender, receiver) = mpsc::channel::<String>(64);
    let pieces = stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((
            Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(piece))),
            receiver,
        ))
    });
    (
        sender,
        Response::builder()
            .status(200)
            .body(StreamBody::new(pieces).boxed_unsync())
            .unwrap(),
    )
}
