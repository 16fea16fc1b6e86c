//! Serves the page for people: one file that loads nothing from other servers. This module must not
//! know which questions the page asks.
//!
//! The page shows texts of the cluster. If a mistake ever turned one of them into a part of the
//! document, the Content-Security-Policy would still run no script but the page's own, which it
//! names by its hash, and would send nothing to another host.

use std::net::SocketAddr;
use std::sync::LazyLock;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The path of the page.
pub const PAGE_PATH: &str = "/";

const PAGE: &str = include_str!("page.html");

static POLICY: LazyLock<String> = LazyLock::new(|| policy(PAGE));

/// Answers with the page.
pub(super) async fn serve() -> Response {
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    let resource = HeaderName::from_static("cross-origin-resource-policy");
    let permissions = HeaderName::from_static("permissions-policy");
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY.as_str()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (opener, "same-origin"),
        (resource, "same-origin"),
        (permissions, "camera=(), geolocation=(), microphone=()"),
        // Tomorrow, another version of the host may run at this address.
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, PAGE).into_response()
}

/// Returns the URL of the page. The token is in the fragment, which a browser does not send.
pub fn url(address: SocketAddr, token: Option<&str>) -> String {
    match token {
        Some(token) => format!("http://{address}/#token={token}"),
        None => format!("http://{address}/"),
    }
}

/// Returns the Content-Security-Policy of a page with one script and one style.
fn policy(page: &str) -> String {
    let hash = |tag: &str| STANDARD.encode(Sha256::digest(inside(page, tag)));
    let script = format!("script-src 'sha256-{}'", hash("script"));
    let style = format!("style-src 'sha256-{}'", hash("style"));
    let parts = [
        "default-src 'none'",
        script.as_str(),
        style.as_str(),
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ];
    parts.join("; ")
}

/// Returns the text inside the only element with this tag.
fn inside<'a>(page: &'a str, tag: &str) -> &'a str {
    let after = page.split_once(&format!("<{tag}>"));
    let text = after.and_then(|(_, rest)| rest.split_once(&format!("</{tag}>")));
    text.map_or("", |(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_hash_of_script_and_style() {
        let page = "<style>a {}</style><script>b();</script>";
        let policy = policy(page);
        for text in ["a {}", "b();"] {
            let hash = STANDARD.encode(Sha256::digest(text));
            assert!(policy.contains(&format!("'sha256-{hash}'")), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn the_page_has_one_script_and_one_style_and_no_way_out() {
        for tag in ["script", "style"] {
            assert_eq!(PAGE.matches(&format!("<{tag}")).count(), 1, "{tag}");
            assert!(!inside(PAGE, tag).is_empty(), "{tag}");
        }
        // The policy would stop all of these. A page without them does not depend on the policy.
        let ways = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "eval(",
            "new Function",
            "style=\"",
            "http://",
            "https://",
            " src=",
            "@import",
            "url(",
        ];
        for way in ways {
            assert!(!PAGE.contains(way), "{way}");
        }
    }

    #[test]
    fn the_token_is_in_the_fragment() {
        let address = SocketAddr::from(([127, 0, 0, 1], 8082));
        assert_eq!(
            url(address, Some("abc")),
            "http://127.0.0.1:8082/#token=abc"
        );
        assert_eq!(url(address, None), "http://127.0.0.1:8082/");
    }
}
