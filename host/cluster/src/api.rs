//! One request to the API server: sends it, limits its time, and parses a refusal. All modules of
//! this crate that talk to the server use this one.
//!
//! This module owns the meaning of HTTP and `Status`. It must not know kinds, stores, or when to
//! retry.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::connect::Connection;
use crate::error::Error;
use crate::status::Status;
use crate::transport::Body;

/// Maximum size of an answer that is held in memory, in bytes. The largest possible answer is a
/// page of a list: 500 objects of 1.5 MiB (etcd's request limit) would be 750 MiB. Such a page is
/// rejected; no page seen in practice reaches a third of this limit.
pub(crate) const ANSWER_MAX: usize = 256 << 20;

/// Maximum size of the version or of one namespace, in bytes; they have less than 64 KiB.
const SMALL_MAX: usize = 1 << 20;

/// Maximum size of a refusal's body, in bytes; a `Status` has a few hundred bytes, a proxy's page
/// some KiB.
const REFUSAL_MAX: usize = 64 << 10;

/// Timeout of a refusal's body, after its head.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(4);

/// Builds a request; `path` begins with a slash and is already percent-encoded.
pub(crate) fn request(
    method: Method,
    path: &str,
    content_type: Option<&'static str>,
    body: Bytes,
) -> Result<Request<Bytes>, Error> {
    let uri = Uri::try_from(path).map_err(|error| Error::NotSent(error.into()))?;
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    // Space for the headers that are added later.
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

/// Builds `?a=b&c=d`, percent-encoded; empty without pairs.
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

/// All characters but RFC 3986's unreserved ones and the colon (`system:node`), so that no name can
/// change the structure of a path.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// Percent-encodes a part of a path or query.
pub(crate) fn encode(value: &str, out: &mut String) {
    out.extend(utf8_percent_encode(value, ENCODED));
}

impl Connection {
    /// Sends a request. Returns a success whose body is not read yet.
    pub(crate) async fn open(&self, mut request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let method = request.method().clone();
        if let Some(told) = self.trace_headers() {
            for (name, text) in told.pairs() {
                if let Ok(value) = HeaderValue::try_from(text) {
                    request.headers_mut().insert(name, value);
                }
            }
        }
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
        Err(Error::Refused(Status::read(
            head.status.as_u16(),
            &head.headers,
            &body,
        )))
    }

    /// Sends a request and reads the whole answer within `limit`.
    pub(crate) async fn call(
        &self,
        request: Request<Bytes>,
        limit: Duration,
    ) -> Result<(HeaderMap, Bytes), Error> {
        self.call_for(ANSWER_MAX, request, limit).await
    }

    /// As [`Connection::call`], for an answer of at most `most` bytes.
    async fn call_for(
        &self,
        most: usize,
        request: Request<Bytes>,
        limit: Duration,
    ) -> Result<(HeaderMap, Bytes), Error> {
        let whole = async {
            let (head, body) = self.open(request).await?.into_parts();
            let body = Limited::new(body, most).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    Error::TooLarge(most)
                } else {
                    Error::Network(error)
                }
            })?;
            Ok((head.headers, body.to_bytes()))
        };
        tokio::time::timeout(limit, whole)
            .await
            .unwrap_or(Err(Error::Timeout(limit)))
    }

    /// Sends a GET and reads the whole answer within `limit`.
    pub(crate) async fn fetch(&self, path: &str, limit: Duration) -> Result<Bytes, Error> {
        Ok(self
            .call(request(Method::GET, path, None, Bytes::new())?, limit)
            .await?
            .1)
    }

    /// As [`Connection::fetch`], for an answer of a few KiB: a server that is not known yet cannot
    /// fill the memory with it.
    pub(crate) async fn fetch_small(&self, path: &str, limit: Duration) -> Result<Bytes, Error> {
        let request = request(Method::GET, path, None, Bytes::new())?;
        Ok(self.call_for(SMALL_MAX, request, limit).await?.1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::BoxFuture;
    use vmhost_core::{TRACEPARENT, TRACESTATE, TraceHeaders};

    use super::*;
    use crate::connect::TraceSource;

    struct Fixed(Option<&'static str>);

    impl TraceSource for Fixed {
        fn headers(&self) -> Option<TraceHeaders> {
            let (parent, state) = self.0?.split_once(' ')?;
            Some(TraceHeaders {
                parent: parent.to_owned(),
                state: Some(state.to_owned()).filter(|state| !state.is_empty()),
            })
        }
    }

    #[tokio::test]
    async fn a_request_tells_the_server_its_trace() {
        let serve = |request: Request<Bytes>| -> BoxFuture<'static, Response<Bytes>> {
            let of = |name: &str| {
                let value = request.headers().get(name);
                value.map_or("", |value| value.to_str().unwrap()).to_owned()
            };
            let told = format!("{} {}", of(TRACEPARENT), of(TRACESTATE));
            Box::pin(async move { Response::new(told.into()) })
        };
        let limit = Duration::from_secs(10);
        for trace in [Some("00-a "), Some("00-a x=y"), None] {
            let expected = trace.unwrap_or(" ");
            let connection = Connection::local(serve, "local").with_traces(Arc::new(Fixed(trace)));
            let body = connection.fetch("/version", limit).await.unwrap();
            assert_eq!(body, expected);
        }
    }

    #[test]
    fn a_refusal_is_read_whatever_it_is() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "2".parse().unwrap());
        let status = br#"{"kind":"Status","code":409,"reason":"Conflict","message":"m","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"one\"","field":".spec.size"}],"retryAfterSeconds":7}}"#;
        let refused = Status::read(409, &HeaderMap::new(), status);
        assert_eq!((refused.code, refused.reason.as_str()), (409, "Conflict"));
        assert_eq!(refused.causes[0].field, ".spec.size");
        assert_eq!(refused.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(
            Status::read(429, &headers, status).retry_after,
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
            let refused = Status::read(502, &HeaderMap::new(), body);
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
