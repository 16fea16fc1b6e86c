//! Routes that are added while their listener is served already. Until then, a request waits for a
//! few seconds, and is then told that the host is starting.
//!
//! This module must not know what is served.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;
use tower::ServiceExt;

use super::access::unavailable;

/// How long a request waits: shorter than the time for which a scraper and a command wait.
const WAIT: Duration = Duration::from_secs(5);

/// Adds the routes.
pub(super) struct Later(watch::Sender<Option<Router>>);

impl Later {
    /// Returns with it what is to be served.
    pub(super) fn new() -> (Self, Router) {
        let (later, routes) = watch::channel(None);
        (
            Self(later),
            Router::new().fallback(answer).with_state(routes),
        )
    }

    /// Answers from now on, also the requests that wait.
    pub(super) fn serve(self, routes: Router) {
        self.0.send_replace(Some(routes));
    }
}

async fn answer(
    State(mut routes): State<watch::Receiver<Option<Router>>>,
    request: Request,
) -> Response {
    let there = async { routes.wait_for(Option::is_some).await.ok()?.clone() };
    match tokio::time::timeout(WAIT, there).await {
        Ok(Some(routes)) => routes.oneshot(request).await.into_response(),
        Ok(None) | Err(_) => unavailable("this vmhost is starting"),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::routing::get;

    use super::*;

    async fn ask(router: &Router) -> StatusCode {
        let request = Request::get("/a").body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap().status()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_its_route_but_not_for_ever() {
        let (later, router) = Later::new();
        assert_eq!(ask(&router).await, StatusCode::SERVICE_UNAVAILABLE);
        let (asked, ()) = tokio::join!(ask(&router), async {
            tokio::task::yield_now().await;
            later.serve(Router::new().route("/a", get(|| async {})));
        });
        assert_eq!(asked, StatusCode::OK);
        assert_eq!(ask(&router).await, StatusCode::OK);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_does_not_start_answers() {
        let (later, router) = Later::new();
        drop(later);
        assert_eq!(ask(&router).await, StatusCode::SERVICE_UNAVAILABLE);
    }
}
