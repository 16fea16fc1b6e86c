//! Where a request goes: the parts of its URL that decide whether it may be sent.
//!
//! A URL that servers, proxies and clients could read differently is refused here. This module must
//! not know what is granted.

use std::net::IpAddr;

use http::Uri;
use percent_encoding::percent_decode_str;
use vmhost_core::{HttpError, HttpScheme};

/// Maximum length of a URL in bytes.
const URL_MAX: usize = 16 << 10;

/// How often a path may be encoded: servers behind servers decode it again.
const DECODINGS: usize = 3;

/// A URL in parts.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) uri: Uri,
    pub(crate) scheme: HttpScheme,
    /// In lower case, without brackets.
    pub(crate) host: String,
    /// The address, if the URL has one in place of a name.
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
    /// As written, without the query.
    pub(crate) path: String,
    /// Whether the path has a slash or backslash that is encoded.
    pub(crate) hides_slashes: bool,
}

impl Target {
    /// Takes a URL apart. The error says what is wrong with it.
    pub(crate) fn parse(url: &str) -> Result<Self, HttpError> {
        let invalid = |reason: &str| Err(HttpError::Invalid(reason.to_owned()));
        if url.len() > URL_MAX {
            return invalid("the URL is longer than 16 KiB");
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return invalid("the URL has characters that must be percent-encoded");
        }
        let Ok(uri) = Uri::try_from(url) else {
            return invalid("the URL is malformed");
        };
        let scheme = match uri.scheme_str() {
            Some("https") => HttpScheme::Https,
            Some("http") => HttpScheme::Http,
            _ => return invalid("the URL must begin with https:// or http://"),
        };
        let Some(authority) = uri.authority() else {
            return invalid("the URL has no host");
        };
        if authority.as_str().contains('@') {
            return invalid("the URL has a user: credentials are for the headers of a grant");
        }
        let host = authority.host().to_ascii_lowercase();
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let address: Option<IpAddr> = inner.unwrap_or(&host).parse().ok();
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if address.is_none() && (host.is_empty() || !host.chars().all(is_name)) {
            return invalid("the URL's host is not a name or an address");
        }
        // `example.com:` has no port although it has a colon.
        let after = authority.as_str().get(authority.host().len()..);
        let port = match (authority.port_u16(), after) {
            (Some(0), _) => return invalid("the URL's port is not one"),
            (Some(port), _) => port,
            (None, Some("")) => scheme.default_port(),
            (None, _) => return invalid("the URL's port is not one"),
        };
        let path = uri.path().to_owned();
        if climbs(&path) {
            return invalid("the URL's path has . or .. in it");
        }
        let lower = path.to_ascii_lowercase();
        let hides_slashes = ["%2f", "%5c", "%25"].iter().any(|of| lower.contains(of));
        Ok(Self {
            scheme,
            host: inner.unwrap_or(&host).to_owned(),
            address,
            port,
            path,
            hides_slashes,
            uri,
        })
    }
}

/// Returns whether a path has segments that mean another directory, also when it is decoded, or
/// when a server cuts a parameter (`..;x`) off.
fn climbs(path: &str) -> bool {
    let mut path = path.as_bytes().to_vec();
    for _ in 0..=DECODINGS {
        let mut segments = path.split(|byte| matches!(byte, b'/' | b'\\'));
        let is_dots = |segment: &[u8]| {
            let name = segment.split(|byte| *byte == b';').next();
            matches!(name, Some(b"." | b".."))
        };
        if segments.any(is_dots) {
            return true;
        }
        let text = String::from_utf8_lossy(&path).into_owned();
        let decoded: Vec<u8> = percent_decode_str(&text).collect();
        if decoded == path {
            return false;
        }
        path = decoded;
    }
    // A path that is encoded this often hides something.
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_parts() {
        for (url, scheme, host, port, path) in [
            (
                "https://api.example.com",
                "https",
                "api.example.com",
                443,
                "/",
            ),
            (
                "http://API.Example.com:8080/v1/x?y=1#z",
                "http",
                "api.example.com",
                8080,
                "/v1/x",
            ),
            ("https://[::1]:9/a", "https", "::1", 9, "/a"),
            ("https://10.0.0.1/", "https", "10.0.0.1", 443, "/"),
            ("https://a/b%20c", "https", "a", 443, "/b%20c"),
        ] {
            let target = Target::parse(url).unwrap();
            let parts = (target.scheme.as_str(), target.host.as_str(), target.port);
            assert_eq!((parts, target.path.as_str()), ((scheme, host, port), path));
            let is_address = host.parse::<IpAddr>().is_ok();
            assert_eq!(target.address.is_some(), is_address, "{url}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for url in [
            "",
            "api.example.com",
            "/v1",
            "ftp://a.com/",
            "file:///etc/passwd",
            "https:///x",
            "https://user:pass@a.com/",
            "https://a.com@b.com/",
            "https://a.com:/",
            "https://a.com:0/",
            "https://a.com:99999/",
            "https://a com/",
            "https://a.com/\u{e9}",
            "https://a.com/a/../b",
            "https://a.com/..",
            "https://a.com/./b",
            "https://a.com/a/%2e%2e/b",
            "https://a.com/a/%2E./b",
            "https://a.com/a/..%2fb",
            "https://a.com/a/%252e%252e/b",
            "https://a.com/a/..;x/b",
            "https://a.com/a/%2e%2e%5cb",
        ] {
            let error = Target::parse(url).unwrap_err();
            assert!(matches!(error, HttpError::Invalid(_)), "{url}: {error}");
        }
        assert!(Target::parse(&format!("https://a.com/{}", "x".repeat(URL_MAX))).is_err());
    }
}
