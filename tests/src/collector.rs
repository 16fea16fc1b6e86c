//! An OpenTelemetry collector in this process: it takes OTLP over HTTP, and keeps all spans. Its
//! messages are its own, so that a wrong field number of the host is noticed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::host::HostCommand;
use crate::net;
use crate::wait::eventually;

/// The path of traces.
const TRACES: &str = "/v1/traces";

/// A running collector. Dropping the value stops it.
pub struct Collector {
    addr: SocketAddr,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
}

/// What arrived.
#[derive(Default)]
struct State {
    spans: Vec<Span>,
    resource: BTreeMap<String, String>,
    headers: HeaderMap,
    /// Whether requests are refused.
    refuses: bool,
    /// What no exporter should send.
    wrong: Vec<String>,
}

/// A span. Numbers of spans and traces are hexadecimal, as in `traceparent`.
#[derive(Clone, Debug)]
pub struct Span {
    /// The trace.
    pub trace: String,
    /// The span.
    pub id: String,
    /// The span above; empty for the first one.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// 1: internal, 2: server, 3: client.
    pub kind: i32,
    /// Nanoseconds since 1970.
    pub start: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// Its attributes, as texts.
    pub attributes: BTreeMap<String, String>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

impl Span {
    /// Returns an attribute, or an empty text.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

impl Collector {
    /// Listens on a free loopback port.
    pub async fn start() -> Result<Collector> {
        let listener = TcpListener::bind(net::loopback(0)).await;
        let listener = listener.context("binding the collector")?;
        let addr = listener.local_addr().context("reading its address")?;
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = shared.clone();
                let service = service_fn(move |request| answer(state.clone(), request));
                let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    // A host that is killed breaks its connection.
                    let _ = serving.await;
                });
            }
        });
        Ok(Collector {
            addr,
            state,
            accepting,
        })
    }

    /// Lets a host export to this collector, soon after each turn.
    pub fn watch(&self, host: HostCommand) -> HostCommand {
        let endpoint = format!("http://{}", self.addr);
        host.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .env("OTEL_BSP_SCHEDULE_DELAY", "20")
    }

    /// Refuses all requests from now on, or takes them again.
    pub fn refuse(&self, refuses: bool) {
        self.lock().refuses = refuses;
    }

    /// Returns all spans so far.
    pub fn spans(&self) -> Vec<Span> {
        self.lock().spans.clone()
    }

    /// Returns the attributes of the process that exports.
    pub fn resource(&self) -> BTreeMap<String, String> {
        self.lock().resource.clone()
    }

    /// Returns a header of the last export.
    pub fn header(&self, name: &str) -> String {
        let state = self.lock();
        let value = state.headers.get(name);
        let text = value.and_then(|value| value.to_str().ok());
        text.unwrap_or_default().to_owned()
    }

    /// Returns what no exporter should send.
    pub fn wrong(&self) -> Vec<String> {
        self.lock().wrong.clone()
    }

    /// Waits for a trace whose spans satisfy this, the first span first.
    pub async fn until_trace(
        &self,
        what: &str,
        wanted: impl Fn(&[Span]) -> bool,
    ) -> Result<Vec<Span>> {
        eventually(what, async || {
            let mut traces: BTreeMap<String, Vec<Span>> = BTreeMap::new();
            for span in self.spans() {
                traces.entry(span.trace.clone()).or_default().push(span);
            }
            let mut found = traces.into_values().map(|mut spans| {
                spans.sort_by_key(|span| (!span.parent.is_empty(), span.start, span.end));
                spans
            });
            Ok(found.find(|spans| wanted(spans)))
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let status = lock(&state).take(&head, body);
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = status;
    Ok(response)
}

impl State {
    fn take(&mut self, head: &http::request::Parts, body: Bytes) -> StatusCode {
        if self.refuses {
            return StatusCode::BAD_REQUEST;
        }
        let media = head.headers.get(header::CONTENT_TYPE);
        let is_protobuf = media.is_some_and(|media| media == "application/x-protobuf");
        if head.uri.path() != TRACES || !is_protobuf {
            self.wrong.push(format!("{} {media:?}", head.uri));
            return StatusCode::NOT_FOUND;
        }
        let export = match Export::decode(body) {
            Ok(export) => export,
            Err(error) => {
                self.wrong.push(error.to_string());
                return StatusCode::BAD_REQUEST;
            }
        };
        self.headers = head.headers.clone();
        for of_process in export.resource_spans {
            let resource = of_process.resource.unwrap_or_default();
            self.resource = texts(resource.attributes);
            let spans = of_process.scope_spans.into_iter().flat_map(|of| of.spans);
            self.spans.extend(spans.map(Span::from));
        }
        StatusCode::OK
    }
}

impl From<RawSpan> for Span {
    fn from(raw: RawSpan) -> Self {
        let status = raw.status.unwrap_or_default();
        Self {
            trace: hexadecimal(&raw.trace_id),
            id: hexadecimal(&raw.span_id),
            parent: hexadecimal(&raw.parent_span_id),
            name: raw.name,
            kind: raw.kind,
            start: raw.start,
            end: raw.end,
            attributes: texts(raw.attributes),
            error: (status.code == 2).then_some(status.message),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(attributes: Vec<Attribute>) -> BTreeMap<String, String> {
    let text = |value: AnyValue| {
        let flag = value.flag.map(|flag| flag.to_string());
        let number = value.number.map(|number| number.to_string());
        value.text.or(flag).or(number).unwrap_or_default()
    };
    let pairs = attributes.into_iter();
    pairs
        .map(|pair| (pair.key, text(pair.value.unwrap_or_default())))
        .collect()
}

#[derive(Clone, PartialEq, prost::Message)]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<RawSpan>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RawSpan {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start: u64,
    #[prost(fixed64, tag = "8")]
    end: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<Attribute>,
    #[prost(message, optional, tag = "15")]
    status: Option<RawStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RawStatus {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(bool, optional, tag = "2")]
    flag: Option<bool>,
    #[prost(int64, optional, tag = "3")]
    number: Option<i64>,
}
