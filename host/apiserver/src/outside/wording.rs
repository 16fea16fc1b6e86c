//! The words of Go's client for what goes wrong with a call.
//!
//! Must not know which webhook is called.

use std::error::Error;
use std::io;

use http::StatusCode;
use hyper_util::client::legacy;
use rustls::CertificateError;
use serde_json::Value;

/// Why a webhook did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The connection ended before there was an answer.
    Closed,
    /// It cannot be reached, is not trusted, or is too slow.
    Sending(String),
    /// It answered with a code other than 2xx.
    Refused(String),
}

impl Failed {
    /// Returns the text of an error of kube-apiserver about this URL.
    pub fn text(&self, url: &str) -> String {
        match self {
            Failed::Closed => format!("Post {url:?}: EOF"),
            Failed::Sending(why) => format!("Post {url:?}: {why}"),
            Failed::Refused(why) => why.clone(),
        }
    }
}

/// Returns why a request has no answer. `host` is host and port of the other side.
pub(super) fn failure(error: &legacy::Error, host: &str) -> Failed {
    let mut refused = false;
    let mut last = error.to_string();
    let mut at: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = at {
        if let Some(hyper) = cause.downcast_ref::<hyper::Error>()
            && (hyper.is_incomplete_message() || hyper.is_canceled() || hyper.is_closed())
        {
            return Failed::Closed;
        }
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return Failed::Sending(untrusted(tls));
        }
        last = cause.to_string();
        let io = cause.downcast_ref::<io::Error>();
        refused |= io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused);
        // The source of such an error leaves out what it wraps.
        at = if let Some(inner) = io.and_then(io::Error::get_ref) {
            let inner: &(dyn Error + 'static) = inner;
            Some(inner)
        } else {
            cause.source()
        };
    }
    Failed::Sending(match refused {
        true => format!("dial tcp {host}: connect: connection refused"),
        false if error.is_connect() => format!("dial tcp {host}: {last}"),
        false => last,
    })
}

fn untrusted(error: &rustls::Error) -> String {
    let why = match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "certificate signed by unknown authority".to_owned()
        }
        rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => "certificate has expired or is not yet valid".to_owned(),
        rustls::Error::InvalidCertificate(other) => other.to_string(),
        other => return format!("tls: {other}"),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

/// Returns what kube-apiserver says about an answer with such a code.
pub(super) fn refusal(code: StatusCode, body: &[u8]) -> String {
    if let Ok(status) = serde_json::from_slice::<Value>(body)
        && status["kind"] == "Status"
        && let Some(message) = status["message"].as_str()
    {
        return message.to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let shown = match text.trim() {
        "" => "unknown",
        text => text,
    };
    match code.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => format!("forbidden: {shown}"),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later"
            .to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request"
            .to_owned(),
        500.. => format!("an error on the server ({shown:?}) has prevented the request from succeeding"),
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_those_of_the_client_of_kube_apiserver() {
        let of =
            |code: u16, body: &str| refusal(StatusCode::from_u16(code).unwrap(), body.as_bytes());
        assert_eq!(
            of(500, "boom\n"),
            "an error on the server (\"boom\") has prevented the request from succeeding"
        );
        assert_eq!(
            of(500, ""),
            "an error on the server (\"unknown\") has prevented the request from succeeding"
        );
        assert_eq!(of(500, r#"{"kind":"Status","message":"why"}"#), "why");
        assert_eq!(
            of(404, "x"),
            "the server could not find the requested resource"
        );
    }
}
