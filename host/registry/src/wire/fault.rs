//! What an error answer of a registry says. This module must not know the request.

use http::StatusCode;
use reqwest::Response;
use serde::Deserialize;

use super::line::Line;
use crate::error::Error;

/// How much of an error answer is read.
const READ_MAX: u64 = 16 * 1024;

/// How much of it is shown.
const SHOWN_MAX: usize = 300;

/// An error answer, as the OCI distribution specification has it.
#[derive(Deserialize)]
struct Envelope {
    errors: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// Returns the answer if it is a success, else what it says.
pub(super) async fn success(
    line: &Line,
    response: Response,
    what: &'static str,
) -> Result<Response, Error> {
    match response.status() {
        status if status.is_success() => Ok(response),
        _ => Err(of(line, response, what).await),
    }
}

/// Returns the error of an answer that is no success.
async fn of(line: &Line, response: Response, what: &'static str) -> Error {
    let status = response.status();
    let reference = line.reference.to_string();
    let host = line.reference.registry().to_owned();
    if status == StatusCode::NOT_FOUND {
        return Error::NotFound {
            reference,
            host,
            what,
        };
    }
    let body = line.body(response, "error", READ_MAX).await;
    let why = said(&body.unwrap_or_default(), status);
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Denied {
            reference,
            host,
            account: line.login.account(),
            why,
        },
        status => Error::Answer {
            reference,
            host,
            code: status.as_u16(),
            why,
        },
    }
}

/// Returns the first error that the answer names, else its text, else the status.
fn said(body: &[u8], status: StatusCode) -> String {
    let envelope = serde_json::from_slice::<Envelope>(body).ok();
    let first = envelope.and_then(|envelope| envelope.errors.into_iter().next());
    let text = match first {
        Some(Entry { code, message }) if message.is_empty() => code,
        Some(Entry { code, message }) => format!("{code}: {message}"),
        None => String::from_utf8_lossy(body).trim().to_owned(),
    };
    let text = match text.is_empty() {
        true => status.canonical_reason().unwrap_or("no reason given"),
        false => &text,
    };
    vmhost_core::cut(&vmhost_core::one_line(text), SHOWN_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_answer_is_one_short_line() {
        let said = |body: &str| said(body.as_bytes(), StatusCode::BAD_REQUEST);
        let document = r#"{"errors":[{"code":"DENIED","message":"no\nway"},{"code":"X"}]}"#;
        assert_eq!(said(document), "DENIED: no way");
        assert_eq!(said(r#"{"errors":[{"code":"DENIED"}]}"#), "DENIED");
        assert_eq!(said(" nope\r\n"), "nope");
        assert_eq!(said(""), "Bad Request");
        assert!(said(&"x".repeat(5000)).len() <= SHOWN_MAX);
    }
}
