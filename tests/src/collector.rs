//! An OpenTelemetry collector in this process: it takes OTLP over HTTP, and keeps all spans.
//!
//! Owns what arrived. Must not know what spans are about.

mod wire;

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use prost::Message;

use crate::host::HostCommand;
use crate::http_server::HttpServer;
use crate::wait::eventually;

/// The path of traces.
const TRACES: &str = "/v1/traces";

/// A running collector. Dropping the value stops it.
pub struct Collector {
    server: HttpServer,
    state: Arc<Mutex<State>>,
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

/// A span. The ids of spans and traces are hexadecimal, as in `traceparent`.
#[derive(Clone, Debug)]
pub struct Span {
    /// The id of its trace.
    pub trace: String,
    /// Its own id.
    pub id: String,
    /// The id of its parent; empty for the root.
    pub parent: String,
    /// The `tracestate`, or empty.
    pub state: String,
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
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        let server = HttpServer::start(move |head, body| {
            ready((lock(&shared).take(&head, body), Bytes::new()))
        });
        let server = server.await.context("starting a collector")?;
        Ok(Collector { server, state })
    }

    /// Lets a host export to this collector, soon after each turn.
    pub fn watch(&self, host: HostCommand) -> HostCommand {
        host.env("OTEL_EXPORTER_OTLP_ENDPOINT", self.server.url())
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

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Takes an export in, and returns the status code of the answer.
    fn take(&mut self, head: &Parts, body: Bytes) -> StatusCode {
        if self.refuses {
            return StatusCode::BAD_REQUEST;
        }
        let media = head.headers.get(header::CONTENT_TYPE);
        let is_protobuf = media.is_some_and(|media| media == "application/x-protobuf");
        if head.uri.path() != TRACES || !is_protobuf {
            self.wrong.push(format!("{} {media:?}", head.uri));
            return StatusCode::NOT_FOUND;
        }
        let body = match head.headers.get(header::CONTENT_ENCODING) {
            None => body,
            Some(way) => match unpacked(way, &body) {
                Ok(body) => body,
                Err(error) => {
                    self.wrong.push(error.to_string());
                    return StatusCode::UNSUPPORTED_MEDIA_TYPE;
                }
            },
        };
        let export = match wire::Export::decode(body) {
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

impl From<wire::Span> for Span {
    fn from(raw: wire::Span) -> Self {
        let status = raw.status.unwrap_or_default();
        Self {
            trace: hexadecimal(&raw.trace_id),
            id: hexadecimal(&raw.span_id),
            parent: hexadecimal(&raw.parent_span_id),
            state: raw.state,
            name: raw.name,
            kind: raw.kind,
            start: raw.start,
            end: raw.end,
            attributes: texts(raw.attributes),
            error: (status.code == 2).then_some(status.message),
        }
    }
}

/// Returns the body in a request that is compressed in this way.
fn unpacked(way: &HeaderValue, body: &Bytes) -> Result<Bytes> {
    /// The lengths of a head without names, and of the sums at the end.
    const HEAD: usize = 10;
    const SUMS: usize = 8;
    ensure!(way == "gzip", "{way:?}");
    let end = body.len().saturating_sub(SUMS);
    let packed = body.get(HEAD..end).context("it is too short for gzip")?;
    let unpacked = miniz_oxide::inflate::decompress_to_vec(packed);
    let unpacked = unpacked.map_err(|error| anyhow!("{error}"))?;
    Ok(unpacked.into())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(attributes: Vec<wire::Attribute>) -> BTreeMap<String, String> {
    let text = |value: wire::AnyValue| {
        let flag = value.flag.map(|flag| flag.to_string());
        let number = value.number.map(|number| number.to_string());
        value.text.or(flag).or(number).unwrap_or_default()
    };
    let pairs = attributes.into_iter();
    let pairs = pairs.map(|pair| (pair.key, text(pair.value.unwrap_or_default())));
    pairs.collect()
}
