//! One request as the proxy saw it.

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
    /// The `User-Agent`, or nothing.
    pub user_agent: String,
    /// The `Content-Type`, or nothing: it tells the kinds of PATCH apart.
    pub content_type: String,
    /// `Bearer ...`; empty without.
    pub authorization: String,
    /// The whole body.
    pub body: Bytes,
    /// The status code of the answer, once there is one. `None` as well if its answer was lost.
    pub answered: Option<u16>,
    /// Its place in the order of all beginnings and ends.
    pub began: usize,
    /// The same for its end: when the server's answer came. `usize::MAX` if none did.
    pub ended: usize,
}

impl Request {
    /// A query parameter.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether this opens a watch.
    pub fn is_watch(&self) -> bool {
        self.method == "GET" && matches!(self.param("watch"), Some("true" | "1"))
    }

    /// Whether this may change something.
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// Whether the path names objects of `plural`: the collection, an object or a subresource.
    pub fn concerns(&self, plural: &str) -> bool {
        self.path.split('/').any(|part| part == plural)
    }

    /// Whether this reads a collection of `plural` without watching it.
    pub fn is_list(&self, plural: &str) -> bool {
        self.method == "GET" && !self.is_watch() && self.path.ends_with(&format!("/{plural}"))
    }

    /// Whether this writes to objects of `plural`.
    pub fn writes(&self, plural: &str) -> bool {
        self.is_write() && self.concerns(plural)
    }

    /// The body as JSON; `Null` if it is none.
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

/// Decodes a query string. Kubernetes clients encode as forms do.
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
