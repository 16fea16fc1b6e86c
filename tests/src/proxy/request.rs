//! One request, as recorded by the proxy.

use std::fmt;

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `PATCH`, ...
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query's parameters, decoded, in order.
    pub query: Vec<(String, String)>,
    /// The `User-Agent`, or empty.
    pub user_agent: String,
    /// The `Content-Type`, or empty. It distinguishes the kinds of PATCH.
    pub content_type: String,
    /// `Bearer ...`, or empty.
    pub authorization: String,
    /// The `traceparent`, or empty.
    pub traceparent: String,
    /// The whole body.
    pub body: Bytes,
    /// The status code of the answer. `None` until there is one, or if the answer was dropped.
    pub answered: Option<u16>,
    /// Its place in the order of all starts and ends.
    pub began: usize,
    /// The place of its end, when the server's answer arrived. `usize::MAX` without an answer.
    pub ended: usize,
}

impl Request {
    /// Returns a query parameter.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns whether the request opens a watch.
    pub fn is_watch(&self) -> bool {
        self.method == "GET" && matches!(self.param("watch"), Some("true" | "1"))
    }

    /// Returns whether the request may change something.
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// Returns whether the path names objects of `plural`: the collection, an object or a
    /// subresource.
    pub fn concerns(&self, plural: &str) -> bool {
        self.path.split('/').any(|part| part == plural)
    }

    /// Returns whether the request reads a collection of `plural` without watching it.
    pub fn is_list(&self, plural: &str) -> bool {
        self.method == "GET" && !self.is_watch() && self.path.ends_with(&format!("/{plural}"))
    }

    /// Returns whether the request writes to objects of `plural`.
    pub fn writes(&self, plural: &str) -> bool {
        self.is_write() && self.concerns(plural)
    }

    /// Returns the body as JSON; `Null` if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        for (at, (key, value)) in self.query.iter().enumerate() {
            write!(f, "{}{key}={value}", if at == 0 { '?' } else { '&' })?;
        }
        match self.answered {
            Some(code) => write!(f, " -> {code}"),
            None => write!(f, " -> no answer"),
        }
    }
}

/// Decodes a query string, in the form encoding that Kubernetes clients use.
pub(super) fn parse_query(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (decode(key), decode(value)))
        .collect()
}

fn decode(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let query = parse_query("labelSelector=a%3Db%2Cc&watch=true&x=1+2&y");
        let pairs: Vec<(&str, &str)> = query
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("labelSelector", "a=b,c"),
                ("watch", "true"),
                ("x", "1 2"),
                ("y", "")
            ]
        );
    }
}
