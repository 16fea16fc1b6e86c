//! An embedded and a real API server side by side: both get the same requests, and their answers
//! are compared.
//!
//! Owns what of an answer has to be the same. Must not know what is asked.

mod answer;

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};

pub use answer::{Answer, Nulls};

use crate::net::JSON;
use crate::real;
use crate::server::{Target, TestServer};

/// Clients of both servers, with all rights.
pub struct Pair {
    /// The embedded server, in this process.
    pub embedded: Client,
    /// The real server, which came first.
    pub real: Client,
    /// Lives as long as its client.
    _server: TestServer,
}

impl Pair {
    /// Starts an embedded server beside a real one.
    pub async fn beside(real: &TestServer) -> Result<Pair> {
        let embedded = TestServer::own(Target::Embedded, real::Options::default()).await?;
        let embedded = embedded.map_err(|why| anyhow!(why.0))?;
        Ok(Pair {
            embedded: embedded.client().await?,
            real: real.client().await?,
            _server: embedded,
        })
    }

    /// Returns both clients, the embedded server's first.
    pub fn clients(&self) -> [&Client; 2] {
        [&self.embedded, &self.real]
    }

    /// Sends a request to both, at the same time. Returns the embedded server's answer first.
    pub async fn ask(&self, ask: &Ask) -> Result<[Answer; 2]> {
        let (embedded, real) = tokio::try_join!(ask.send(&self.embedded), ask.send(&self.real))?;
        Ok([embedded, real])
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The method.
    pub method: Method,
    /// The path, with a query.
    pub path: String,
    /// The `Content-Type`; empty for none.
    pub media: &'static str,
    /// The `Accept`; empty for none.
    pub accept: &'static str,
    /// The body.
    pub body: String,
}

impl Ask {
    /// Returns a request without a body.
    pub fn plain(method: Method, path: impl Into<String>) -> Ask {
        Ask {
            method,
            path: path.into(),
            media: "",
            accept: "",
            body: String::new(),
        }
    }

    /// Returns a GET request.
    pub fn get(path: impl Into<String>) -> Ask {
        Ask::plain(Method::GET, path)
    }

    /// Returns a request with a body of this media type.
    pub fn with(method: Method, path: impl Into<String>, media: &'static str, body: &Value) -> Ask {
        Ask {
            media,
            body: body.to_string(),
            ..Ask::plain(method, path)
        }
    }

    /// Returns a POST request with JSON.
    pub fn post(path: impl Into<String>, body: &Value) -> Ask {
        Ask::with(Method::POST, path, JSON, body)
    }

    /// Returns a PATCH request.
    pub fn patch(path: impl Into<String>, media: &'static str, body: &Value) -> Ask {
        Ask::with(Method::PATCH, path, media, body)
    }

    /// Returns the request with an `Accept` header.
    pub fn accepting(self, accept: &'static str) -> Ask {
        Ask { accept, ..self }
    }

    /// Sends the request.
    pub async fn send(&self, client: &Client) -> Result<Answer> {
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(self.path.as_str());
        for (name, value) in [
            (header::CONTENT_TYPE, self.media),
            (header::ACCEPT, self.accept),
        ] {
            if !value.is_empty() {
                request = request.header(name, value);
            }
        }
        let body = kube::client::Body::from(self.body.clone().into_bytes());
        let response = client.send(request.body(body)?).await?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let text = |name: header::HeaderName| -> Vec<String> {
            let values = parts.headers.get_all(name).iter();
            values
                .filter_map(|value| value.to_str().ok().map(str::to_owned))
                .collect()
        };
        let mut warnings = text(header::WARNING);
        warnings.sort();
        Ok(Answer {
            code: parts.status.as_u16(),
            media: text(header::CONTENT_TYPE).concat(),
            warnings,
            waits: !text(header::RETRY_AFTER).is_empty(),
            body: serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes))),
        })
    }
}

/// Returns the places where two values differ. What is absent differs from null.
pub fn differences(embedded: &Value, real: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(embedded), Some(real), &mut found);
    found
}

fn compare(at: &str, embedded: Option<&Value>, real: Option<&Value>, found: &mut Vec<String>) {
    match (embedded, real) {
        (Some(Value::Object(embedded)), Some(Value::Object(real))) => {
            let names: BTreeSet<&String> = embedded.keys().chain(real.keys()).collect();
            for name in names {
                let at = format!("{at}/{name}");
                compare(&at, embedded.get(name), real.get(name), found);
            }
        }
        (Some(Value::Array(embedded)), Some(Value::Array(real)))
            if embedded.len() == real.len() =>
        {
            for (index, (embedded, real)) in embedded.iter().zip(real).enumerate() {
                compare(&format!("{at}/{index}"), Some(embedded), Some(real), found);
            }
        }
        (embedded, real) if embedded == real => {}
        (embedded, real) => {
            let shown = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
            let (embedded, real) = (shown(embedded), shown(real));
            found.push(format!("{at}: embedded {embedded}, real {real}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found_where_they_are() {
        let embedded = json!({ "a": [1, { "b": null }], "c": 1, "d": [1] });
        let real = json!({ "a": [1, {}], "c": 1, "d": [1, 2] });
        let expected = [
            "/a/1/b: embedded null, real nothing",
            "/d: embedded [1], real [1,2]",
        ];
        assert_eq!(differences(&embedded, &real), expected);
        assert!(differences(&real, &real).is_empty());
    }
}
