//! The rules of a `clientConfig`.
//!
//! Follows k8s.io/apiserver `pkg/util/webhook/validation.go`. Must not know which webhook is
//! called.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::status::{Cause, INVALID, REQUIRED, cause};

const FORM: &str = "; desired format: https://host[/path]";

/// Adds what is wrong with a `clientConfig` at `at`.
pub(crate) fn check(config: &Value, at: &str, causes: &mut Vec<Cause>) {
    let text = |field: &str| config.get(field).and_then(Value::as_str);
    let service = config.get("service").filter(|service| service.is_object());
    match (text("url"), service) {
        (Some(given), None) => url(given, &format!("{at}.url"), causes),
        (None, Some(given)) => of_service(given, &format!("{at}.service"), causes),
        _ => {
            let why = "Required value: exactly one of url or service is required";
            causes.push(cause(REQUIRED, at, why));
        }
    }
    let bundle = text("caBundle").filter(|bundle| !bundle.is_empty());
    if bundle.is_some_and(|bundle| !is_bundle(bundle)) {
        let why = "unable to load root certificates: unable to parse bytes as PEM block";
        causes.push(invalid(format!("{at}.caBundle"), &json!("<omitted>"), why));
    }
}

fn invalid(field: String, value: &Value, why: &str) -> Cause {
    cause(INVALID, field, format!("Invalid value: {value}: {why}"))
}

fn is_bundle(text: &str) -> bool {
    let Ok(pem) = STANDARD.decode(text) else {
        return false;
    };
    let mut found = CertificateDer::pem_slice_iter(&pem).peekable();
    let blank = pem.iter().all(u8::is_ascii_whitespace);
    blank || (found.peek().is_some() && found.all(|certificate| certificate.is_ok()))
}

fn url(text: &str, at: &str, causes: &mut Vec<Cause>) {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let mut wrong = |value: &str, why: &str| {
        causes.push(invalid(at.to_owned(), &json!(value), why));
    };
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        wrong(scheme, &why);
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() || scheme.is_empty() {
        wrong("", &format!("host must be specified{FORM}"));
    }
    if !user.is_empty() {
        wrong(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        wrong(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        wrong(query, "query parameters are not permitted in the URL");
    }
}

fn of_service(service: &Value, at: &str, causes: &mut Vec<Cause>) {
    for field in ["name", "namespace"] {
        if service[field].as_str().unwrap_or_default().is_empty() {
            causes.push(cause(REQUIRED, format!("{at}.{field}"), "Required value"));
        }
    }
    let port = service.get("port").cloned().unwrap_or_else(|| json!(443));
    if !port
        .as_u64()
        .is_some_and(|port| (1..=65_535).contains(&port))
    {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(invalid(format!("{at}.port"), &port, why));
    }
    let path = service.get("path").and_then(Value::as_str);
    if let Some(path) = path.filter(|path| !path.starts_with('/')) {
        let why = "must start with a '/'";
        causes.push(invalid(format!("{at}.path"), &json!(path), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_has_one_address() {
        let fields = |config: Value| {
            let mut causes = Vec::new();
            check(&config, "c", &mut causes);
            causes.into_iter().map(|c| c.field).collect::<Vec<_>>()
        };
        let service = json!({ "name": "s", "namespace": "n", "path": "/p" });
        assert!(fields(json!({ "url": "https://h:1/p" })).is_empty());
        assert!(fields(json!({ "service": service })).is_empty());
        for (config, field) in [
            (json!({}), "c"),
            (json!({ "url": "https://h", "service": service }), "c"),
            (json!({ "url": "http://h" }), "c.url"),
            (json!({ "url": "https://u@h" }), "c.url"),
            (json!({ "url": "https://h/?q=1" }), "c.url"),
            (json!({ "url": "https:///p" }), "c.url"),
            (json!({ "service": { "name": "s" } }), "c.service.namespace"),
            (
                json!({ "url": "https://h", "caBundle": "bm8=" }),
                "c.caBundle",
            ),
        ] {
            assert_eq!(fields(config.clone()), [field], "{config}");
        }
    }
}
