//! A webhook on loopback, in this process: it answers reviews as a test says, and remembers them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::authority::Authority;
use crate::net;

/// What a webhook does with a review.
pub enum Reply {
    /// Answers with JSON.
    Json(Value),
    /// Answers with this code and text.
    Code(u16, String),
    /// Does not answer.
    Never,
}

type Answer = dyn Fn(&str, &Value) -> Reply + Send + Sync;

/// A running webhook. Dropping the value stops it.
pub struct Webhook {
    addr: SocketAddr,
    authority: String,
    seen: Seen,
    accepting: JoinHandle<()>,
}

/// The reviews so far, each with its path.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, Value)>>>);

impl Seen {
    fn add(&self, path: &str, review: &Value) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((path.to_owned(), review.clone()));
    }
}

impl Webhook {
    /// Listens on a free loopback port. `answer` gets the path of a request and its review.
    pub async fn start(
        answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Result<Webhook> {
        let authority = Authority::new(&format!("webhook-{:08x}", fastrand::u32(..)))?;
        let tls = TlsAcceptor::from(authority.server(None)?);
        let listener = TcpListener::bind(net::loopback(0)).await;
        let listener = listener.context("binding the webhook")?;
        let addr = listener.local_addr().context("reading its address")?;
        let seen = Seen::default();
        let answer: Arc<Answer> = Arc::new(answer);
        let noted = seen.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, tls.clone(), answer.clone(), noted.clone()));
            }
        });
        Ok(Webhook {
            addr,
            authority: authority.pem(),
            seen,
            accepting,
        })
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.addr)
    }

    /// Returns the `clientConfig` for a path.
    pub fn config(&self, path: &str) -> Value {
        json!({ "url": self.url(path), "caBundle": STANDARD.encode(&self.authority) })
    }

    /// Returns the reviews that a path was sent, in their order.
    pub fn seen(&self, path: &str) -> Vec<Value> {
        let all = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.iter().filter(|(at, _)| at == path);
        own.map(|(_, review)| review.clone()).collect()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, answer: Arc<Answer>, seen: Seen) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let (answer, seen) = (answer.clone(), seen.clone());
        async move { Ok::<_, Infallible>(respond(request, &*answer, &seen).await) }
    });
    let builder = Builder::new(TokioExecutor::new());
    let _ = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(
    request: Request<Incoming>,
    answer: &Answer,
    seen: &Seen,
) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await;
    let body = body.map(http_body_util::Collected::to_bytes);
    let review: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
    seen.add(&path, &review);
    let (code, text) = match answer(&path, &review) {
        Reply::Json(value) => (200, value.to_string()),
        Reply::Code(code, text) => (code, text),
        Reply::Never => std::future::pending().await,
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT);
    let media = match code {
        200 => "application/json",
        _ => "text/plain",
    };
    let media = HeaderValue::from_static(media);
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

/// Returns the answer to an AdmissionReview.
pub fn admitted(review: &Value, mut response: Value) -> Reply {
    response["uid"] = review["request"]["uid"].clone();
    Reply::Json(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    }))
}

/// Returns the answer to an AdmissionReview that changes the object.
pub fn patched(review: &Value, patch: &Value) -> Reply {
    let response = json!({
        "allowed": true,
        "patchType": "JSONPatch",
        "patch": STANDARD.encode(patch.to_string()),
    });
    admitted(review, response)
}

/// Returns the answer to a ConversionReview: each object, converted, or why that is impossible.
pub fn converted(review: &Value, convert: impl Fn(Value, &str) -> Result<Value, String>) -> Reply {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let made: Result<Vec<Value>, String> = objects
        .into_iter()
        .map(|object| convert(object, desired))
        .collect();
    let response = match made {
        Ok(objects) => json!({
            "uid": request["uid"], "result": { "status": "Success" }, "convertedObjects": objects,
        }),
        Err(why) => json!({
            "uid": request["uid"], "result": { "status": "Failed", "message": why },
        }),
    };
    Reply::Json(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response,
    }))
}
