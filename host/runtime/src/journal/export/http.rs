//! `http.json` of a recorded case: the answers to the HTTP requests of its call. Headers that the
//! host added are not in a record. This module must not know which values are sensitive.

use std::collections::BTreeMap;
use std::str;

use serde_json::{Value, json};
use vmhost_core::{HttpError, HttpRequest, HttpResponse, HttpSent, Trace};

use super::texts;

/// The requests of a call with their answers, in order.
pub(super) fn entries(trace: &Trace) -> Vec<Value> {
    trace.http.iter().filter_map(entry).collect()
}

/// Tells how many answers the file lacks. `None` if it has all of them.
pub(super) fn lacking(trace: &Trace) -> Option<String> {
    let requests = trace.requests;
    let told = u32::try_from(entries(trace).len()).unwrap_or(u32::MAX);
    let lacking = requests.saturating_sub(told);
    (lacking > 0).then(|| {
        format!(
            "http.json lacks the answers to {lacking} of the call's {requests} HTTP requests: they were refused, are no text, or have a header or a member twice"
        )
    })
}

/// A request with its answer. `None` if a case cannot give the same answer.
fn entry(sent: &HttpSent) -> Option<Value> {
    let HttpRequest { method, url, .. } = &sent.request;
    let request = json!({ "method": method, "url": url });
    Some(match &sent.answer {
        Ok(response) => json!({ "request": request, "response": told(response)? }),
        Err(error) => json!({ "request": request, "error": told_error(error)? }),
    })
}

fn told(response: &HttpResponse) -> Option<Value> {
    let headers = response.headers.iter();
    let headers: BTreeMap<&str, &str> = headers
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let body = str::from_utf8(&response.body).ok()?;
    if headers.len() < response.headers.len() || texts::has_a_member_twice(body) {
        return None;
    }
    let mut told = json!({ "status": response.status });
    if !headers.is_empty() {
        told["headers"] = json!(headers);
    }
    if !body.is_empty() {
        // A text, so that its spaces and numbers stay as they are.
        told["body"] = body.into();
    }
    Some(told)
}

fn told_error(error: &HttpError) -> Option<Value> {
    match error {
        // A case fails if the host would refuse the request.
        HttpError::Denied(_) | HttpError::Invalid(_) => None,
        HttpError::NotSent(reason) => Some(json!({ "notSent": reason })),
        HttpError::NoAnswer(reason) => Some(json!({ "noAnswer": reason })),
        HttpError::TooLarge(limit) => Some(json!({ "tooLarge": limit })),
    }
}
