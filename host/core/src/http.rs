//! HTTP requests of a call to services outside of the cluster: what is asked, by which turn, and
//! what came back. Mirrors `wit/http-v1`. Plain data.

use std::sync::Arc;
use std::time::Duration;

use crate::key::{Gvk, ObjectName};
use crate::object::Snapshot;

/// W3C's header that names the trace that a request belongs to.
pub const TRACEPARENT: &str = "traceparent";

/// W3C's header with what other systems noted about that trace.
pub const TRACESTATE: &str = "tracestate";

/// The headers that tell a server which trace a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeaders {
    /// The value of [`TRACEPARENT`].
    pub parent: String,
    /// The value of [`TRACESTATE`].
    pub state: Option<String>,
}

impl TraceHeaders {
    /// The names and values.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let state = self.state.as_deref();
        let state = state.map(|state| (TRACESTATE, state));
        std::iter::once((TRACEPARENT, self.parent.as_str())).chain(state)
    }
}

/// A request as the plugin wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// Names and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
    /// How long it may take. `None` for as long as the call may.
    pub timeout: Option<Duration>,
}

/// A response, whatever its status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Names, in lower case, and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Why there is no response. Mirrors `error` of `wit/http-v1`. No text contains a header that the
/// host added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// Not granted, not allowed, or not to this address.
    Denied(String),
    /// The request is malformed.
    Invalid(String),
    /// Nothing was sent.
    NotSent(String),
    /// It was sent, and no whole answer came.
    NoAnswer(String),
    /// The request or the response is larger than this many bytes.
    TooLarge(u32),
}

/// The turn that sends requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTurn {
    /// The controller's name in the plugin's description.
    pub controller: String,
    /// The kind of the key.
    pub kind: Gvk,
    /// The key.
    pub name: ObjectName,
    /// The object; `None` if it is gone, or if the key is no object.
    pub object: Option<Snapshot>,
}

/// One request of a running call.
#[derive(Clone, Debug)]
pub struct HttpCall {
    /// The request.
    pub request: HttpRequest,
    /// The turn that sends it.
    pub turn: Arc<HttpTurn>,
    /// How many others of the same method and URL the call has sent before.
    pub ordinal: u32,
    /// How long the answer may take, from when the request is sent.
    pub left: Duration,
}

/// A request with its answer, as a record of the call has it.
#[derive(Clone, Debug)]
pub struct HttpSent {
    /// The request.
    pub request: HttpRequest,
    /// What came back.
    pub answer: Result<HttpResponse, HttpError>,
}

impl HttpRequest {
    /// Returns whether the request only reads, as RFC 9110 defines the method.
    pub fn is_safe(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    /// The URL without user, query and fragment, which may hold secrets: for logs and records.
    pub fn place(&self) -> &str {
        let end = self.url.find(['?', '#']).unwrap_or(self.url.len());
        let place = self.url.get(..end).unwrap_or_default();
        let authority = place.split_once("://").map_or(place, |(_, rest)| rest);
        let host_end = authority.find('/').unwrap_or(authority.len());
        match authority.get(..host_end).and_then(|host| host.rfind('@')) {
            Some(at) => authority.get(at + 1..).unwrap_or_default(),
            None => place,
        }
    }
}

impl HttpSent {
    /// The bytes of its texts and bodies.
    pub(crate) fn bytes(&self) -> usize {
        let headers = |headers: &[(String, String)]| {
            let sizes = headers.iter().map(|(name, value)| name.len() + value.len());
            sizes.sum::<usize>()
        };
        let HttpRequest {
            method,
            url,
            headers: asked,
            body,
            timeout: _,
        } = &self.request;
        let answer = match &self.answer {
            Ok(response) => headers(&response.headers) + response.body.len(),
            Err(error) => error.text().len(),
        };
        256 + method.len() + url.len() + headers(asked) + body.len() + answer
    }
}

impl HttpError {
    fn text(&self) -> &str {
        match self {
            Self::Denied(text)
            | Self::Invalid(text)
            | Self::NotSent(text)
            | Self::NoAnswer(text) => text,
            Self::TooLarge(_) => "",
        }
    }

    /// The error of a call that sends no requests: a preview, or one without a host.
    pub fn not_here(why: &str) -> Self {
        Self::NotSent(why.to_owned())
    }
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Denied(reason) => write!(f, "denied: {reason}"),
            Self::Invalid(reason) => write!(f, "invalid: {reason}"),
            Self::NotSent(reason) => write!(f, "not sent: {reason}"),
            Self::NoAnswer(reason) => write!(f, "no answer: {reason}"),
            Self::TooLarge(limit) => write!(f, "larger than {limit} bytes"),
        }
    }
}

impl std::error::Error for HttpError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_no_secrets() {
        for (url, place) in [
            ("https://a.com/x/y?token=1#z", "https://a.com/x/y"),
            ("https://a.com", "https://a.com"),
            ("https://a.com#t", "https://a.com"),
            ("https://user:pass@a.com/x", "a.com/x"),
            ("https://a.com/x@y", "https://a.com/x@y"),
            ("user@b?c", "b"),
            ("", ""),
        ] {
            let request = HttpRequest {
                url: url.to_owned(),
                ..HttpRequest::default()
            };
            assert_eq!(request.place(), place, "{url}");
        }
    }

    #[test]
    fn only_reads_are_safe() {
        for (method, is_safe) in [
            ("GET", true),
            ("HEAD", true),
            ("POST", false),
            ("get", false),
        ] {
            let request = HttpRequest {
                method: method.to_owned(),
                ..HttpRequest::default()
            };
            assert_eq!(request.is_safe(), is_safe, "{method}");
        }
    }
}
