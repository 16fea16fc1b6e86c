//! HTTP requests to services outside of the cluster (`wit/http-v1`): a builder for requests, and
//! responses with their status.
//!
//! The description must name the service ([`HttpGrant`](crate::HttpGrant)). In native tests
//! [`crate::testing::TestHost`] answers.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::http_bindings::vmhost::http::http::{self as raw, Header};

/// A request. Nothing is sent before [`HttpRequest::send`].
#[derive(Clone, Debug)]
pub struct HttpRequest(pub(crate) raw::Request);

/// A response, whatever its status: a 404 is one too.
#[derive(Clone, Debug)]
pub struct HttpResponse(pub(crate) raw::Response);

/// Why there is no response. `?` makes a transient failure of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// The description does not grant it, or the operator does not allow it.
    Denied(String),
    /// The request is malformed.
    Invalid(String),
    /// Nothing was sent; it may work later.
    NotSent(String),
    /// It was sent, and may have been carried out. Repeated by the next turn, it has the same
    /// `Idempotency-Key`.
    NoAnswer(String),
    /// The request or the response is larger than this many bytes.
    TooLarge(u32),
}

impl HttpRequest {
    /// A request with this method.
    pub fn new(method: &str, url: &str) -> Self {
        Self(raw::Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout_ms: None,
        })
    }

    /// A GET.
    pub fn get(url: &str) -> Self {
        Self::new("GET", url)
    }

    /// A POST.
    pub fn post(url: &str) -> Self {
        Self::new("POST", url)
    }

    /// A PUT.
    pub fn put(url: &str) -> Self {
        Self::new("PUT", url)
    }

    /// A PATCH.
    pub fn patch(url: &str) -> Self {
        Self::new("PATCH", url)
    }

    /// A DELETE.
    pub fn delete(url: &str) -> Self {
        Self::new("DELETE", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.0.headers.push(Header {
            name: name.into(),
            value: value.into(),
        });
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.0.body = body.into();
        self
    }

    /// Sets the body to this value as JSON, with its `content-type`.
    pub fn json(self, body: &impl Serialize) -> Result<Self> {
        let body = serde_json::to_vec(body)?;
        Ok(self.header("content-type", "application/json").body(body))
    }

    /// Sets how long the answer may take. Without it, or with more: what is left of the call's
    /// time.
    pub fn timeout_ms(mut self, ms: u32) -> Self {
        self.0.timeout_ms = Some(ms);
        self
    }

    /// Sends the request, and waits for the whole response.
    pub fn send(self) -> Result<HttpResponse, HttpError> {
        #[cfg(target_family = "wasm")]
        let answer = raw::send(&self.0).map_err(HttpError::from);
        #[cfg(not(target_family = "wasm"))]
        let answer = crate::testing::http::send(&self.0);
        answer.map(HttpResponse)
    }
}

impl HttpResponse {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// Returns whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.0.status)
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.0.headers.iter();
        let found = headers.find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value.as_str())
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.0.body
    }

    /// The body as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.body).into_owned()
    }

    /// The body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.0.body)
            .map_err(|error| Error::new(format!("the response is no such JSON: {error}")))
    }

    /// Returns the response if its status is 2xx, else an error with the status and the beginning
    /// of the body.
    pub fn success(self) -> Result<Self> {
        if self.is_success() {
            return Ok(self);
        }
        let text: String = self.text().chars().take(200).collect();
        Err(Error::new(format!("status {}: {text}", self.0.status)))
    }
}

impl From<raw::Error> for HttpError {
    fn from(error: raw::Error) -> Self {
        match error {
            raw::Error::Denied(reason) => Self::Denied(reason),
            raw::Error::Invalid(reason) => Self::Invalid(reason),
            raw::Error::NotSent(reason) => Self::NotSent(reason),
            raw::Error::NoAnswer(reason) => Self::NoAnswer(reason),
            raw::Error::TooLarge(limit) => Self::TooLarge(limit),
        }
    }
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Denied(reason) => write!(f, "the request is denied: {reason}"),
            Self::Invalid(reason) => write!(f, "the request is invalid: {reason}"),
            Self::NotSent(reason) => write!(f, "the request was not sent: {reason}"),
            Self::NoAnswer(reason) => write!(f, "the request has no answer: {reason}"),
            Self::TooLarge(limit) => {
                write!(
                    f,
                    "the request or its response is larger than {limit} bytes"
                )
            }
        }
    }
}

impl std::error::Error for HttpError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;
    use serde_json::{Value, json};

    #[test]
    fn a_request_is_answered_by_the_test_host() {
        let host = TestHost::new()
            .http("POST", "https://a.com/x", 201, r#"{"id":7}"#)
            .http("GET", "https://a.com/x", 404, "");
        let (_, lines) = host.run(|| {
            let post = HttpRequest::post("https://a.com/x").header("X-A", "b");
            let made = post.json(&json!({ "n": 1 })).unwrap().send().unwrap();
            assert_eq!((made.status(), made.is_success()), (201, true));
            assert_eq!(made.json::<Value>().unwrap()["id"], 7);
            let missing = HttpRequest::get("https://a.com/x").send().unwrap();
            assert_eq!(missing.header("X"), None);
            let error = missing.success().unwrap_err().to_string();
            assert_eq!(error, "status 404: ");
            let unknown = HttpRequest::delete("https://a.com/x").send().unwrap_err();
            assert!(matches!(unknown, HttpError::NotSent(_)), "{unknown}");
        });
        assert_eq!(
            lines,
            [
                "http: POST https://a.com/x {\"n\":1}",
                "http: GET https://a.com/x",
                "http: DELETE https://a.com/x",
            ]
        );
    }
}
