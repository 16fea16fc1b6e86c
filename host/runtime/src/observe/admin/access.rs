//! Lets a request through only if its token is of a user of the cluster who may use the path, as
//! controller-runtime's filters do: a `TokenReview`, then a `SubjectAccessReview` of the method and
//! the path. The host's own token opens the admin address too, so that commands on the same machine
//! need no other.
//!
//! This module must not know what is served.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use vmhost_cluster::Error;
use vmhost_core::chain_line;

use super::callers::{Callers, Said};
use super::token::{Shown, Token};

/// The end of the path of a component.
const COMPONENT: &str = "/component";

/// What stands before an address.
#[derive(Clone)]
pub(super) struct Door {
    /// Knows the users of the cluster.
    pub(super) callers: Arc<Callers>,
    /// The host's own token, where it is accepted.
    pub(super) own: Option<Token>,
}

/// Marks a request that the API server allows: it is an order of a user who may give it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reviewed;

/// Passes a request on, or answers 401, 403 or 503.
pub(super) async fn check(State(door): State<Door>, mut request: Request, next: Next) -> Response {
    let own = door.own.map(|own| own.shown_in(request.headers()));
    if own == Some(Shown::Right) {
        return next.run(request).await;
    }
    let Some(token) = bearer(request.headers()) else {
        let why = "a request needs a token of the cluster (Authorization: Bearer TOKEN), since this vmhost runs with --metrics-access token";
        return unauthorized(why);
    };
    let path = request.uri().path().to_owned();
    // To read a component, a user needs the right to give orders: it may be of a private registry.
    let verb = match path.ends_with(COMPONENT) {
        true => "post".to_owned(),
        false => request.method().as_str().to_lowercase(),
    };
    match door.callers.ask(&token, &verb, &path).await {
        Ok(Said::Allowed) => {
            request.extensions_mut().insert(Reviewed);
            next.run(request).await
        }
        Ok(Said::Unknown) => unauthorized("the API server does not accept the token"),
        Ok(Said::Denied(user)) => {
            let why = format!(
                "the user {user:?} may not {verb} the path {path:?}: grant it with a ClusterRole that has nonResourceURLs\n"
            );
            (StatusCode::FORBIDDEN, why).into_response()
        }
        Ok(Said::Busy) => unavailable("too many requests wait for the API server"),
        Err(error) => unanswered(&door.callers, &error),
    }
}

/// The only token of a request.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (only, None) = (given.next()?, given.next()) else {
        return None;
    };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

fn unauthorized(why: &str) -> Response {
    let mut response = (StatusCode::UNAUTHORIZED, format!("{why}\n")).into_response();
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    response
}

/// Refuses a caller about whom the API server gave no answer. Only the log says why, since the
/// caller may be anybody.
fn unanswered(callers: &Callers, error: &Error) -> Response {
    let (said, logged) = match error.code() {
        Some(403) => {
            let why = "this vmhost may not create tokenreviews or subjectaccessreviews: `vmhost rbac --metrics-access token` prints the rights";
            (why, why.to_owned())
        }
        _ => (
            "the API server cannot be asked: the log of this vmhost says why",
            format!("the API server cannot be asked: {}", chain_line(error)),
        ),
    };
    if callers.is_news() {
        tracing::warn!("--metrics-access token: {logged} (told once a minute)");
    }
    unavailable(said)
}

/// Asks the caller to come again in a second.
pub(super) fn unavailable(why: &str) -> Response {
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response();
    let second = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, second);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bearer_token_counts() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            bearer(&headers)
        };
        assert_eq!(of(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(of(&["bearer  abc "]).as_deref(), Some("abc"));
        for none in [
            &[][..],
            &["Bearer "],
            &["Basic abc"],
            &["abc"],
            &["Bearer abc", "Bearer abc"],
        ] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
