//! Finds the values of HTTP requests and answers that are sensitive by the names under which they
//! stand: in queries, headers and JSON. A body that is no JSON object or array does not show where
//! its values are, so all of it is one. This module must not know how an answer is told.

use serde_json::Value;
use vmhost_core::HttpSent;

use super::places::Found;

/// A name with one of these words, in any case and with or without dashes, has a sensitive value.
const WORDS: [&str; 13] = [
    "accesskey",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "kubeconfig",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "signature",
    "token",
];

/// The parameters of a query that have a sensitive value besides.
const PARAMETERS: [&str; 3] = ["code", "key", "sig"];

/// How the text of a key begins.
const PEM: &str = "-----BEGIN ";

/// Adds the values of a request's URL and headers, and of its answer.
pub(super) fn find(found: &mut Found<'_>, sent: &HttpSent) {
    query(found, &sent.request.url);
    headers(found, &sent.request.headers);
    match &sent.answer {
        Ok(response) => {
            headers(found, &response.headers);
            body(found, &response.body);
        }
        Err(error) => query(found, &error.to_string()),
    }
}

fn is_sensitive(name: &str) -> bool {
    let plain = name.replace(['-', '_', '.'], "").to_ascii_lowercase();
    WORDS.iter().any(|word| plain.contains(word))
}

fn query(found: &mut Found<'_>, url: &str) {
    for pair in url.split(['?', '&', '#']).skip(1) {
        let Some((name, value)) = pair.split_once('=') else {
            continue;
        };
        if is_sensitive(name) || PARAMETERS.contains(&name) {
            found.value(value);
        }
    }
}

fn headers(found: &mut Found<'_>, headers: &[(String, String)]) {
    for (name, value) in headers {
        if !is_sensitive(name) {
            // `Location` may have a query.
            query(found, value);
            continue;
        }
        found.value(value);
        if let Some((_, credential)) = value.split_once("Bearer ") {
            found.value(credential);
        }
    }
}

fn body(found: &mut Found<'_>, body: &[u8]) {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        Ok(mut json @ (Value::Object(_) | Value::Array(_))) => {
            members(found, &json);
            // It may hold a Secret.
            found.object(&mut json, None);
        }
        Ok(Value::Null | Value::Bool(_)) => {}
        Ok(Value::String(text)) => found.value(&text),
        Ok(Value::Number(_)) | Err(_) => found.value(&text),
    }
}

fn members(found: &mut Found<'_>, value: &Value) {
    match value {
        Value::Object(all) => {
            for (name, member) in all {
                match is_sensitive(name) {
                    true => named(found, member),
                    false => members(found, member),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| members(found, item)),
        Value::String(text) if text.starts_with(PEM) => found.value(text),
        Value::String(text) => query(found, text),
        _ => {}
    }
}

/// Adds all texts under a sensitive name.
fn named(found: &mut Found<'_>, value: &Value) {
    match value {
        // A kubeconfig has the token on a line of its own.
        Value::String(text) => found.value(text),
        Value::Array(items) => items.iter().for_each(|item| named(found, item)),
        Value::Object(all) => all.values().for_each(|member| named(found, member)),
        _ => {}
    }
}
