//! Lets an order, or a question that is no report, through only if it carries the host's token, or
//! comes from a user of the cluster who may give it ([`super::access`]), and if no foreign web page
//! sent it. ([`super::guard`] checks that the request names this machine.)
//!
//! This module must not know what is ordered.

use axum::extract::{Request, State};
use axum::http::header::{HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::access::Reviewed;
use super::token::{Shown, Token};

/// Passes an order on, or answers 401 or 403.
pub(super) async fn check(
    State(token): State<Option<Token>>,
    request: Request,
    next: Next,
) -> Response {
    let is_reviewed = request.extensions().get::<Reviewed>().is_some();
    let by = if is_reviewed {
        By::User
    } else {
        By::Token(token)
    };
    let (status, why) = match refusal(by, request.uri(), request.headers()) {
        None => return next.run(request).await,
        Some(refusal) => refusal,
    };
    let mut response = (status, format!("{why}\n")).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    response
}

/// What an order has to prove.
#[derive(Clone, Copy)]
enum By {
    /// A user of the cluster, who may give it.
    User,
    /// A caller with this token. `None` if the host has none, so that every order is refused.
    Token(Option<Token>),
}

/// Returns the reason why an order is refused, if it is.
fn refusal(by: By, uri: &Uri, headers: &HeaderMap) -> Option<(StatusCode, String)> {
    if let Some(foreign) = foreign_origin(uri, headers) {
        let why = format!(
            "the Origin header {foreign:?} is not this address: a web page of another server may not give orders"
        );
        return Some((StatusCode::FORBIDDEN, why));
    }
    let By::Token(token) = by else {
        return None;
    };
    let why = match token.map(|token| token.shown_in(headers)) {
        Some(Shown::Right) => return None,
        Some(Shown::Wrong) => {
            "the token is not the one of this vmhost: it may have started anew; pass its --admin-token-file"
        }
        Some(Shown::None) => {
            "this request needs the token of this vmhost (Authorization: Bearer TOKEN), which is in its --admin-token-file"
        }
        None => {
            "this vmhost takes no orders, since it could write no token file: start it with --admin-token-file"
        }
    };
    Some((StatusCode::UNAUTHORIZED, why.to_owned()))
}

/// Returns the origin of a request, if that differs from the address to which the request was sent.
/// Commands send no origin. The scheme is not compared: a proxy may end TLS before this server.
fn foreign_origin(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let named = uri.authority().map(Authority::as_str).or(host);
    let is_own = |origin: &str| {
        let mut schemes = ["http://", "https://"].iter();
        let place = schemes.find_map(|scheme| origin.strip_prefix(scheme));
        place.is_some_and(|place| named.is_some_and(|named| named.eq_ignore_ascii_case(place)))
    };
    let mut origins = headers.get_all(ORIGIN).iter();
    let foreign = origins.find(|origin| !origin.to_str().is_ok_and(is_own))?;
    Some(String::from_utf8_lossy(foreign.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use axum::http::header::AUTHORIZATION;

    use super::*;

    fn refused(origin: Option<&str>, authorization: Option<&str>) -> Option<(StatusCode, String)> {
        let mut request = Request::post("/plugins/vm/rollback").header(HOST, "localhost:8082");
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(()).unwrap();
        let token = Token::new("0123456789abcdef");
        refusal(By::Token(Some(token)), request.uri(), request.headers())
    }

    #[test]
    fn an_order_carries_the_token() {
        let right = Some("Bearer 0123456789abcdef");
        assert_eq!(refused(None, right), None);
        for wrong in [None, Some("Bearer 0123456789abcdee")] {
            let (status, why) = refused(None, wrong).unwrap();
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            assert!(why.contains("--admin-token-file"), "{why}");
        }
        let headers = HeaderMap::new();
        let (status, why) = refusal(By::Token(None), &Uri::default(), &headers).unwrap();
        assert!(status == StatusCode::UNAUTHORIZED && why.contains("takes no orders"));
    }

    #[test]
    fn a_page_of_another_server_gives_no_orders() {
        let right = Some("Bearer 0123456789abcdef");
        assert_eq!(refused(Some("http://localhost:8082"), right), None);
        assert_eq!(refused(Some("http://LOCALHOST:8082"), right), None);
        assert_eq!(refused(Some("https://localhost:8082"), right), None);
        for foreign in [
            "http://localhost:3000",
            "http://localhost",
            "localhost:8082",
            "http://localhost:8082.evil.example",
            "http://evil.example",
            "null",
            "",
        ] {
            let (status, why) = refused(Some(foreign), right).unwrap();
            assert_eq!(status, StatusCode::FORBIDDEN, "{foreign}");
            assert!(why.contains("Origin"), "{why}");
        }
    }
}
