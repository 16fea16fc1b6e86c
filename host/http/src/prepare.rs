//! Checks a request against the grants, and makes of it what is sent, except for the headers whose
//! values have to be read first. This module must not know addresses or connections.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use vmhost_core::{
    HTTP_CONNECTION_HEADERS, HttpCall, HttpError, HttpGrant, HttpHeader, HttpRequest, HttpScheme,
};

use crate::allow::{self, Allow};
use crate::target::Target;
use crate::{grant, idempotency};

/// Maximum size of a request's body in bytes.
pub const REQUEST_MAX: usize = 1 << 20;

/// Maximum size of a response's body in bytes.
pub const RESPONSE_MAX: usize = 4 << 20;

/// Maximum number of headers of a request, and the maximum size of all of them in bytes.
const HEADERS: usize = 64;
const HEADER_BYTES: usize = 32 << 10;

/// Headers by which some servers take another method or path than those that were granted.
const OVERRIDES: [&str; 5] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
];

/// A request that may be sent, as far as the grants decide.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) target: Target,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether private addresses may be connected to.
    pub(crate) private: bool,
    /// Whether headers of the grant would go through the internet without TLS.
    pub(crate) exposed: bool,
    /// The headers of the grant, whose values the caller reads.
    pub added: Vec<HttpHeader>,
}

impl Prepared {
    /// Prepares a request of a plugin. The error says what is not granted or malformed.
    pub(crate) fn new(
        plugin: &str,
        grants: &[HttpGrant],
        flags: &[Allow],
        call: &HttpCall,
    ) -> Result<Self, HttpError> {
        let request = &call.request;
        if request.body.len() > REQUEST_MAX {
            return Err(HttpError::TooLarge(REQUEST_MAX as u32));
        }
        let target = Target::parse(&request.url)?;
        let Some(grant) = grant::find(grants, &request.method, &target) else {
            return Err(HttpError::Denied(not_granted(grants, request, &target)));
        };
        if !allow::allows(flags, &target) {
            return Err(HttpError::Denied(format!(
                "the operator does not allow {}:{} (--allow-http)",
                target.host, target.port
            )));
        }
        let Ok(method) = Method::from_bytes(request.method.as_bytes()) else {
            return Err(HttpError::Invalid("the method is malformed".to_owned()));
        };
        let mut headers = headers(request, grant)?;
        if !request.is_safe()
            && !headers.contains_key(idempotency::HEADER)
            && let Some(key) = idempotency::key(plugin, call)
            && let Ok(key) = HeaderValue::try_from(key)
        {
            headers.insert(HeaderName::from_static(idempotency::HEADER), key);
        }
        if !headers.contains_key(header::USER_AGENT) {
            let agent = concat!("vmhost/", env!("CARGO_PKG_VERSION"));
            headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        }
        let private = grant.allow_private && grant.names_one_host() && allow::names(flags, &target);
        let is_plain = target.scheme == HttpScheme::Http;
        Ok(Self {
            private,
            exposed: is_plain && !private && !grant.headers.is_empty(),
            added: grant.headers.clone(),
            body: request.body.clone(),
            headers,
            method,
            target,
        })
    }

    /// Adds a header of the grant with its value, which errors and debug texts never show.
    pub fn add(&mut self, header: &HttpHeader, value: &[u8]) -> Result<(), HttpError> {
        // A file that became a Secret often ends in a line break.
        let text = [header.prefix.as_bytes(), value.trim_ascii_end()].concat();
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_bytes(&text)) else {
            return Err(HttpError::NotSent(format!(
                "the value of the header {} is not one: it has a line break or a control character",
                header.name
            )));
        };
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }
}

/// Tells what of a request is not granted.
fn not_granted(grants: &[HttpGrant], request: &HttpRequest, target: &Target) -> String {
    let place = format!(
        "{}://{}:{}{}",
        target.scheme.as_str(),
        target.host,
        target.port,
        vmhost_core::cut(&target.path, 256)
    );
    let method = vmhost_core::cut(&request.method, 16);
    if grants.is_empty() {
        "the plugin's description has no http".to_owned()
    } else if grant::knows_place(grants, target) {
        format!(
            "the plugin's description does not grant the method {method} for {place} (http[].methods)"
        )
    } else {
        format!("the plugin's description does not grant {method} {place} (http)")
    }
}

/// The policy's own headers.
fn headers(request: &HttpRequest, grant: &HttpGrant) -> Result<HeaderMap, HttpError> {
    let invalid = |reason: String| Err(HttpError::Invalid(reason));
    let sizes = request.headers.iter();
    let size: usize = sizes.map(|(name, value)| name.len() + value.len()).sum();
    if request.headers.len() > HEADERS || size > HEADER_BYTES {
        return Err(HttpError::TooLarge(HEADER_BYTES as u32));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let shown = vmhost_core::cut(name, 64);
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            return invalid(format!("{shown:?} is not the name of a header"));
        };
        // Some servers do not tell them apart.
        let dashed = |name: &str| name.replace('_', "-").to_ascii_lowercase();
        let plain = dashed(name.as_str());
        if HTTP_CONNECTION_HEADERS.contains(&plain.as_str()) {
            return invalid(format!("only the host sets the header {name}"));
        }
        if OVERRIDES.contains(&plain.as_str()) {
            return invalid(format!(
                "the header {name} could mean another method or path than is granted"
            ));
        }
        let is_added = |added: &HttpHeader| dashed(&added.name) == plain;
        if grant.headers.iter().any(is_added) {
            return invalid(format!(
                "the host adds the header {name}, as the description says"
            ));
        }
        let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) else {
            return invalid(format!("the value of the header {name} is malformed"));
        };
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idempotency::tests::call;

    fn grants() -> Vec<HttpGrant> {
        let text = r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","timer":{"once":true}}],"http":[
            {"host":"a.com","methods":["GET","POST"],"headers":[{"name":"Authorization","prefix":"Bearer ","setting":"token"}]},
            {"host":"in.cluster","scheme":"http","allowPrivate":true}]}"#;
        vmhost_core::Description::parse(text).unwrap().http
    }

    fn prepared(flags: &[&str], call: &HttpCall) -> Result<Prepared, HttpError> {
        let flags: Vec<Allow> = flags.iter().map(|flag| flag.parse().unwrap()).collect();
        Prepared::new("p", &grants(), &flags, call)
    }

    fn refused(call: &HttpCall) -> String {
        prepared(&[], call).unwrap_err().to_string()
    }

    #[test]
    fn what_changes_something_has_an_idempotency_key() {
        let post = call("POST", "https://a.com/", "u", 1);
        let sent = prepared(&[], &post).unwrap();
        assert!(sent.headers.contains_key(idempotency::HEADER));
        assert!(!sent.private && sent.added.len() == 1);
        let get = prepared(&[], &call("GET", "https://a.com/", "u", 1)).unwrap();
        assert!(!get.headers.contains_key(idempotency::HEADER));
        let mut own = post;
        own.request.headers = vec![("Idempotency-Key".to_owned(), "mine".to_owned())];
        let sent = prepared(&[], &own).unwrap();
        let keys: Vec<_> = sent.headers.get_all(idempotency::HEADER).iter().collect();
        assert_eq!(keys, ["mine"]);
    }

    #[test]
    fn a_refusal_names_what_is_missing() {
        for (method, url, says) in [
            (
                "GET",
                "https://b.com/x?secret",
                "does not grant GET https://b.com:443/x (http)",
            ),
            (
                "DELETE",
                "https://a.com/",
                "the method DELETE for https://a.com:443/",
            ),
            ("GET", "ftp://a.com/", "must begin with https"),
        ] {
            let text = refused(&call(method, url, "u", 1));
            assert!(text.contains(says) && !text.contains("secret"), "{text}");
        }
        let get = call("GET", "https://a.com/", "u", 1);
        let text = prepared(&["b.com"], &get).unwrap_err().to_string();
        assert!(
            text.contains("does not allow a.com:443 (--allow-http)"),
            "{text}"
        );
    }

    #[test]
    fn a_private_address_needs_both() {
        let inside = call("GET", "http://in.cluster/", "u", 1);
        assert!(!prepared(&[], &inside).unwrap().private);
        assert!(!prepared(&["*.cluster"], &inside).unwrap().private);
        assert!(prepared(&["in.cluster"], &inside).unwrap().private);
        let public = call("GET", "https://a.com/", "u", 1);
        assert!(!prepared(&["a.com"], &public).unwrap().private);
    }

    #[test]
    fn headers_of_the_host_are_not_the_policys() {
        for (name, value, says) in [
            ("Host", "b.com", "only the host sets the header host"),
            ("transfer-encoding", "chunked", "only the host sets"),
            ("Content_Length", "1", "only the host sets"),
            ("X-HTTP-Method-Override", "DELETE", "another method or path"),
            ("x_original_url", "/admin", "another method or path"),
            (
                "authorization",
                "mine",
                "the host adds the header authorization",
            ),
            ("a b", "x", "is not the name of a header"),
            ("x", "a\r\nb: c", "the value of the header x is malformed"),
        ] {
            let mut call = call("GET", "https://a.com/", "u", 1);
            call.request.headers = vec![(name.to_owned(), value.to_owned())];
            let text = refused(&call);
            assert!(text.contains(says), "{text}");
        }
        let mut large = call("POST", "https://a.com/", "u", 1);
        large.request.body = vec![0; REQUEST_MAX + 1];
        assert_eq!(refused(&large), "larger than 1048576 bytes");
    }

    #[test]
    fn an_added_value_is_shown_nowhere() {
        let mut sent = prepared(&[], &call("GET", "https://a.com/", "u", 1)).unwrap();
        let header = sent.added[0].clone();
        sent.add(&header, b"hunter2\n").unwrap();
        assert_eq!(sent.headers["authorization"], "Bearer hunter2");
        assert!(!format!("{sent:?}").contains("hunter2"));
        let error = sent.add(&header, b"hunter2\nx: y").unwrap_err().to_string();
        assert!(
            error.contains("Authorization") && !error.contains("hunter2"),
            "{error}"
        );
    }
}
