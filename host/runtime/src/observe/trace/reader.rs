//! Reads of a plugin's call, each with a span. A turn without a trace does not use this reader, so
//! that its reads cost nothing more.
//!
//! This module must not know where an answer comes from.

use std::borrow::Cow;
use std::sync::Arc;

use vmhost_core::{
    Gvk, HttpAnswer, HttpCall, HttpError, HttpResponse, HttpTurn, ListQuery, LiveRead, ObjectName,
    ObjectReader, Page, ReadError, Snapshot,
};
use vmhost_otlp::Kind;

use super::{Open, TurnTrace, name};

/// The methods of HTTP, by the names that OpenTelemetry's conventions know.
const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// A reader that adds a span for each read to the trace of its turn.
pub(crate) struct TracedReader {
    reader: Arc<dyn ObjectReader>,
    trace: Arc<TurnTrace>,
}

impl TracedReader {
    pub(crate) fn new(reader: Arc<dyn ObjectReader>, trace: Arc<TurnTrace>) -> Self {
        Self { reader, trace }
    }

    fn opened_get(&self, span: Kind, kind: &Gvk, name: &ObjectName) -> Option<Open> {
        let mut open = self.trace.open_read(span, "get")?;
        open.about(kind, name);
        open.set("vmhost.read.live", span == Kind::Client);
        Some(open)
    }

    fn opened_list(&self, span: Kind, query: &ListQuery) -> Option<Open> {
        let mut open = self.trace.open_read(span, "list")?;
        open.set("vmhost.object.kind", name(&query.kind.to_string()));
        if let Some(namespace) = &query.namespace {
            open.set("k8s.namespace.name", name(namespace));
        }
        open.set("vmhost.read.live", span == Kind::Client);
        Some(open)
    }

    fn opened_http(&self, call: &HttpCall) -> Option<Open> {
        let mut open = self.trace.open_read(Kind::Client, "http")?;
        // A policy may put any text there.
        let method = METHODS.into_iter().find(|of| *of == call.request.method);
        open.set("http.request.method", method.unwrap_or("_OTHER"));
        // Without the path, which may hold a key.
        let (host, port) = server(call.request.place());
        open.set("server.address", name(host));
        if let Some(port) = port {
            open.set("server.port", port);
        }
        Some(open)
    }
}

impl ObjectReader for TracedReader {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        let open = self.opened_get(Kind::Internal, kind, name);
        let answer = self.reader.get(kind, name);
        if let Some(open) = open {
            found(open, &answer);
        }
        answer
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        let open = self.opened_list(Kind::Internal, query);
        let answer = self.reader.list(query);
        if let Some(open) = open {
            listed(open, &answer);
        }
        answer
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        let open = self.opened_get(Kind::Client, &kind, &name);
        within(open, self.reader.get_live(kind, name), found)
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        let open = self.opened_list(Kind::Client, &query);
        within(open, self.reader.list_live(query), listed)
    }

    fn reserved(&self, name: &str) -> Option<String> {
        self.reader.reserved(name)
    }

    fn begins(&self, turn: &HttpTurn) {
        self.reader.begins(turn);
    }

    fn http(&self, call: HttpCall) -> HttpAnswer {
        let open = self.opened_http(&call);
        within(open, self.reader.http(call), responded)
    }
}

/// A read whose requests belong to the span, which ends with the answer. A read that is cut off
/// leaves no span.
fn within<T, E>(
    open: Option<Open>,
    read: LiveRead<T, E>,
    end: fn(Open, &Result<T, E>),
) -> LiveRead<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let Some(open) = open else {
        return read;
    };
    LiveRead::new(read.admitted(), move |answer| async move {
        let answer = open.scope(answer).await;
        end(open, &answer);
        answer
    })
}

/// The server in `SCHEME://SERVER[:PORT]/...`. It has no user.
fn server(place: &str) -> (&str, Option<u16>) {
    let rest = place.split_once("://").map_or(place, |(_, rest)| rest);
    let server = rest.split('/').next().unwrap_or_default();
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (server, None),
    };
    // An address of IPv6 has colons too, and brackets.
    let host = if port.is_some() { host } else { server };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

fn found(mut open: Open, answer: &Result<Option<Snapshot>, ReadError>) {
    if let Ok(object) = answer {
        open.set("vmhost.read.found", object.is_some());
    }
    open.end(answer.as_ref().err().map(word));
}

fn listed(mut open: Open, answer: &Result<Page, ReadError>) {
    if let Ok(page) = answer {
        open.set("vmhost.read.objects", page.objects.len() as u64);
    }
    open.end(answer.as_ref().err().map(word));
}

fn responded(mut open: Open, answer: &Result<HttpResponse, HttpError>) {
    let error = match answer {
        Ok(response) => {
            open.set("http.response.status_code", response.status);
            // As OpenTelemetry's conventions for clients say.
            (response.status >= 400).then(|| response.status.to_string().into())
        }
        Err(error) => Some(Cow::Borrowed(match error {
            HttpError::Denied(_) => "denied",
            HttpError::Invalid(_) => "invalid",
            HttpError::NotSent(_) => "not sent",
            HttpError::NoAnswer(_) => "no answer",
            HttpError::TooLarge(_) => "too large",
        })),
    };
    open.end(error);
}

fn word(error: &ReadError) -> Cow<'static, str> {
    Cow::Borrowed(match error {
        ReadError::NotWatched(_) => "not watched",
        ReadError::TooLarge(_) => "too large",
        ReadError::Invalid(_) => "invalid",
        ReadError::Unavailable(_) => "unavailable",
    })
}

#[cfg(test)]
mod tests {
    use vmhost_core::HttpRequest;

    use super::*;

    #[test]
    fn a_server_has_neither_a_user_nor_a_path() {
        for (url, host, port) in [
            ("https://a.com/x?key=s3cret", "a.com", None),
            ("https://me:s3cret@a.com:8443/x", "a.com", Some(8443)),
            ("https://a.com?key=s3cret", "a.com", None),
            ("http://[fd00::1]:80/", "fd00::1", Some(80)),
            ("http://[fd00::1]", "fd00::1", None),
            ("s3", "s3", None),
        ] {
            let request = HttpRequest {
                url: url.to_owned(),
                ..HttpRequest::default()
            };
            assert_eq!(server(request.place()), (host, port), "{url}");
        }
    }
}
