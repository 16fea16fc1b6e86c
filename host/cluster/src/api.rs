//! One request to the API server: sent, timed, and its refusal read. Every module of this crate that talks to the server does it through here.
//!
//! It owns what HTTP and `Status` mean. It must not know kinds, stores, or when to try again.

use std::error::Error as StdError;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;

use crate::connect::Connection;
use crate::transport::Body;

/// The longest answer that is held in memory whole. The largest one is a page of a list: 500 objects of 1.5 MiB (etcd's limit of a request) would be
/// 750 MiB; a page of that kind is refused, and no page seen in practice comes near a third of it.
pub(crate) const ANSWER_MAX: usize = 256 << 20;

/// The longest refusal that is read; a `Status` is a few hundred bytes, a proxy's page some KiB.
const REFUSAL_MAX: usize = 64 << 10;

/// How much of a refusal that is no `Status` goes into a message.
const REFUSAL_SHOWN: usize = 200;

/// How long a refusal's body may take after its head.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(4);

/// Longest `Retry-After` that is believed; longer waits are the caller's back-off.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// A request that has no answer, or whose answer is a refusal.
#[derive(Debug)]
pub(crate) enum CallError {
    /// It did not leave: no connection, no credentials, no valid request.
    NotSent(BoxError),
    /// It may have arrived; the answer did not.
    Network(BoxError),
    /// The answer did not come in time.
    Timeout(Duration),
    /// The answer is longer than anything expected.
    TooLarge(usize),
    /// The server says no.
    Refused(Refused),
}

/// A `Status`, or what a proxy said in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    pub code: u16,
    pub reason: String,
    pub message: String,
    pub causes: Vec<RefusedCause>,
    pub retry_after: Option<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct RefusedCause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct StatusText {
    kind: String,
    code: u16,
    reason: String,
    message: String,
    details: Option<StatusDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct StatusDetails {
    causes: Vec<RefusedCause>,
    retry_after_seconds: u64,
}

impl Refused {
    /// Reads what the server said. Never fails: what is no `Status` becomes the message.
    pub(crate) fn read(code: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let header = headers
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse().ok());
        let mut refused = match serde_json::from_slice::<StatusText>(body) {
            Ok(status) if status.kind == "Status" => Self::from_status(status),
            _ => Self {
                message: shown(body),
                ..Self::default()
            },
        };
        refused.code = code;
        refused.retry_after = header
            .map(Duration::from_secs)
            .or(refused.retry_after)
            .map(|wait| wait.min(RETRY_AFTER_MAX));
        if refused.message.is_empty() {
            refused.message = format!("HTTP {code}");
        }
        refused
    }

    /// A `Status` that came as an `ERROR` event of a watch.
    pub(crate) fn from_event(object: &str) -> Self {
        match serde_json::from_str::<StatusText>(object) {
            Ok(status) => Self::from_status(status),
            Err(_) => Self {
                message: shown(object.as_bytes()),
                ..Self::default()
            },
        }
    }

    fn from_status(status: StatusText) -> Self {
        let details = status.details.unwrap_or_default();
        let after = details.retry_after_seconds;
        Self {
            code: status.code,
            reason: status.reason,
            message: status.message,
            causes: details.causes,
            retry_after: (after > 0).then(|| Duration::from_secs(after).min(RETRY_AFTER_MAX)),
        }
    }

    /// Is the position of a list or watch too old to go on from?
    pub(crate) fn is_expired(&self) -> bool {
        self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone")
    }
}

/// The first line of a text that is no `Status`.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    line.chars().take(REFUSAL_SHOWN).collect()
}

impl CallError {
    /// One line that says what happened, with the source where there is one.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::NotSent(source) | Self::Network(source) => chain(source.as_ref()),
            Self::Timeout(after) => format!("no answer within {after:?}"),
            Self::TooLarge(limit) => format!("the answer is longer than {limit} bytes"),
            Self::Refused(refused) => {
                format!("{} ({} {})", refused.message, refused.code, refused.reason)
            }
        }
    }
}

/// An error and its sources on one line, without those that a text repeats.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let text = error.to_string();
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        next = error.source();
    }
    line.replace(['\n', '\r'], " ")
}

/// Builds a request; `path` begins with a slash and is percent-encoded already.
pub(crate) fn request(
    method: Method,
    path: &str,
    content_type: Option<&'static str>,
    body: Bytes,
) -> Result<Request<Bytes>, CallError> {
    let uri = Uri::try_from(path).map_err(|error| CallError::NotSent(error.into()))?;
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    // Room for those that are added on the way.
    request.headers_mut().reserve(7);
    let accept = HeaderValue::from_static("application/json");
    request.headers_mut().insert(header::ACCEPT, accept);
    if let Some(content_type) = content_type {
        let content_type = HeaderValue::from_static(content_type);
        request
            .headers_mut()
            .insert(header::CONTENT_TYPE, content_type);
    }
    Ok(request)
}

/// `?a=b&c=d`, percent-encoded; empty without pairs.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(name);
        text.push('=');
        encode(value, &mut text);
    }
    text
}

/// Percent-encodes all but RFC 3986's unreserved characters and the colon (`system:node`), so that no name can leave its place in a path.
pub(crate) fn encode(value: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut plain = 0;
    for (at, byte) in value.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            continue;
        }
        // A piece is ASCII; between the bytes of another character there is none.
        out.push_str(value.get(plain..at).unwrap_or_default());
        plain = at + 1;
        out.push('%');
        out.push(HEX[usize::from(byte >> 4)] as char);
        out.push(HEX[usize::from(byte & 15)] as char);
    }
    out.push_str(value.get(plain..).unwrap_or_default());
}

impl Connection {
    /// Sends a request; the answer's head is a success, its body has still to come.
    pub(crate) async fn open(&self, request: Request<Bytes>) -> Result<Response<Body>, CallError> {
        let method = request.method().clone();
        let answer = self.transport().send(request).await;
        self.observe(
            answer.as_ref().map_or(0, |answer| answer.status().as_u16()),
            method.as_str(),
        );
        let answer = answer?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        let body =
            tokio::time::timeout(REFUSAL_TIMEOUT, Limited::new(body, REFUSAL_MAX).collect()).await;
        let body = body
            .ok()
            .and_then(Result::ok)
            .map(|body| body.to_bytes())
            .unwrap_or_default();
        Err(CallError::Refused(Refused::read(
            head.status.as_u16(),
            &head.headers,
            &body,
        )))
    }

    /// Sends a request and reads the whole answer, all within `limit`.
    pub(crate) async fn call(
        &self,
        request: Request<Bytes>,
        limit: Duration,
    ) -> Result<(HeaderMap, Bytes), CallError> {
        let whole = async {
            let (head, body) = self.open(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_MAX)
                .collect()
                .await
                .map_err(|error| {
                    if error.is::<LengthLimitError>() {
                        CallError::TooLarge(ANSWER_MAX)
                    } else {
                        CallError::Network(error)
                    }
                })?;
            Ok((head.headers, body.to_bytes()))
        };
        tokio::time::timeout(limit, whole)
            .await
            .unwrap_or(Err(CallError::Timeout(limit)))
    }

    /// GET, whole.
    pub(crate) async fn fetch(&self, path: &str, limit: Duration) -> Result<Bytes, CallError> {
        Ok(self
            .call(request(Method::GET, path, None, Bytes::new())?, limit)
            .await?
            .1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_whatever_it_is() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "2".parse().unwrap());
        let status = br#"{"kind":"Status","code":409,"reason":"Conflict","message":"m","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"one\"","field":".spec.size"}],"retryAfterSeconds":7}}"#;
        let refused = Refused::read(409, &HeaderMap::new(), status);
        assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"));
        assert_eq!(refused.causes[0].field, ".spec.size");
        assert_eq!(refused.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(
            Refused::read(429, &headers, status).retry_after,
            Some(Duration::from_secs(2))
        );
        for (body, message) in [
            (
                &b"\n<html>Bad Gateway</html>"[..],
                "<html>Bad Gateway</html>",
            ),
            (b"", "HTTP 502"),
            (b"\xff{", "\u{fffd}{"),
        ] {
            let refused = Refused::read(502, &HeaderMap::new(), body);
            assert_eq!(
                (
                    refused.code,
                    refused.reason.as_str(),
                    refused.message.as_str()
                ),
                (502, "", message)
            );
        }
    }

    #[test]
    fn a_query_is_encoded() {
        assert_eq!(
            query(&[("labelSelector", "a in (b,c)"), ("x", "é/1")]),
            "?labelSelector=a%20in%20%28b%2Cc%29&x=%C3%A9%2F1"
        );
        assert_eq!(query(&[]), "");
    }
}
