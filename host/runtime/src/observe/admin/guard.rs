//! Refuses requests that name another machine in their `Host` header. A web page can make its own
//! host name point to this machine (DNS rebinding), and a browser would then let the page read the
//! answers; but the browser still sends the page's host name.
//!
//! This module must not know what is served.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Passes a request on, or answers 403. `bound` is the address that the host listens on.
pub(super) async fn check(State(bound): State<IpAddr>, request: Request, next: Next) -> Response {
    match refusal(&request, bound) {
        None => next.run(request).await,
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
    }
}

/// Returns the reason why a request is refused, if it is.
fn refusal<B>(request: &axum::http::Request<B>, bound: IpAddr) -> Option<String> {
    let target = request.uri().authority().map(Authority::as_str);
    // A header that is not text counts as an empty name, which is refused.
    let headers = request.headers().get_all(HOST).iter();
    let headers = headers.map(|value| value.to_str().unwrap_or_default());
    let named: Vec<&str> = target.into_iter().chain(headers).collect();
    if named.is_empty() {
        return Some("the request has no Host header\n".to_owned());
    }
    let foreign = named.into_iter().find(|name| !is_here(name, bound))?;
    Some(format!(
        "the Host header {foreign:?} is neither a loopback name or address nor {bound}, the address that this vmhost listens on: a web page may have sent the request; use localhost\n"
    ))
}

/// Returns whether a `Host` header names this machine. Any port is accepted, since a port may be
/// forwarded. A host that listens on all addresses accepts every address, because only a name can
/// be rebound.
fn is_here(name: &str, bound: IpAddr) -> bool {
    let authority = name.parse::<Authority>().ok();
    // Browsers never send user information in this header.
    let Some(authority) = authority.filter(|_| !name.contains('@')) else {
        return false;
    };
    let host = authority.host();
    let bracketed = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match bracketed.unwrap_or(host).parse::<IpAddr>() {
        Ok(address) => {
            let (address, bound) = (address.to_canonical(), bound.to_canonical());
            address.is_loopback() || bound.is_unspecified() || address == bound
        }
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    const LOOPBACK: &str = "127.0.0.1";

    fn refused(hosts: &[&str], bound: &str) -> bool {
        let mut request = Request::get("/turns");
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let request = request.body(()).unwrap();
        refusal(&request, bound.parse().unwrap()).is_some()
    }

    #[test]
    fn only_names_of_this_machine_pass() {
        for host in [
            "localhost",
            "LocalHost:8082",
            "127.0.0.1:9",
            "127.8.8.8",
            "[::1]:8082",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(!refused(&[host], LOOPBACK), "{host}");
        }
        for host in [
            "",
            "evil.example:8082",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example@localhost",
            "evil.example@127.0.0.1",
            "10.0.0.7:8082",
            "[::2]",
            "0.0.0.0",
            "a b",
        ] {
            assert!(refused(&[host], LOOPBACK), "{host}");
        }
    }

    #[test]
    fn the_bound_address_passes() {
        assert!(!refused(&["10.0.0.7:8082"], "10.0.0.7"));
        assert!(refused(&["10.0.0.8:8082"], "10.0.0.7"));
        assert!(!refused(&["10.0.0.8:8082"], "0.0.0.0"));
        assert!(!refused(&["10.0.0.8:8082"], "::"));
        assert!(refused(&["evil.example"], "::"));
    }

    #[test]
    fn every_name_of_a_request_counts() {
        assert!(refused(&[], LOOPBACK));
        assert!(refused(&["localhost", "evil.example"], LOOPBACK));
        let target = Request::get("http://evil.example/turns").header(HOST, "localhost");
        let bound = LOOPBACK.parse().unwrap();
        let why = refusal(&target.body(()).unwrap(), bound).unwrap();
        assert!(
            why.contains("\"evil.example\"") && why.contains("use localhost"),
            "{why}"
        );
    }
}
