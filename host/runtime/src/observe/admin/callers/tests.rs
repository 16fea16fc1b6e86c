//! What is remembered of callers, and for how long.

use std::sync::Arc;

use axum::http::{Request, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use vmhost_cluster::Connection;

use super::*;

/// The reviews that an API server was asked, as their specs.
type Asked = Arc<Mutex<Vec<Value>>>;

/// Callers of an API server that knows the tokens `good-...`, whose users may read the metrics.
fn callers(asked: &Asked) -> Callers {
    let asked = asked.clone();
    let serve = move |request: Request<Bytes>| -> BoxFuture<'static, Response<Bytes>> {
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        let spec = review["spec"].clone();
        let status = match spec["token"].as_str() {
            Some(token) => json!({
                "authenticated": token.starts_with("good-"),
                "user": { "username": token },
            }),
            None => json!({ "allowed": spec["nonResourceAttributes"]["path"] == "/metrics" }),
        };
        asked.lock().push(spec);
        let answer = Bytes::from(json!({ "status": status }).to_string());
        Box::pin(async move { Response::new(answer) })
    };
    let connection = Connection::local(serve, "a server in this process");
    Callers::new(connection.caller_reviews())
}

#[test]
fn an_answer_holds_for_its_time() {
    let kept: Mutex<Kept<bool>> = Kept::new();
    let (mut kept, now) = (kept.lock(), Instant::now());
    kept.put([1; 32], true, now + DENIED);
    assert_eq!(kept.get(&[1; 32], now), Some(true));
    assert_eq!(kept.get(&[1; 32], now + DENIED), None);
    assert_eq!(kept.get(&[2; 32], now), None);
    kept.put([1; 32], false, now + ALLOWED);
    assert_eq!(kept.get(&[1; 32], now + DENIED), Some(false));
}

#[test]
fn a_question_is_about_all_that_is_known() {
    let of = |name: &str, groups: &[&str], verb: &str, path: &str| {
        let caller = Caller {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..Caller::default()
        };
        digest(&caller, verb, path)
    };
    let one = of("u", &["a", "b"], "get", "/metrics");
    assert_eq!(of("u", &["a", "b"], "get", "/metrics"), one);
    for other in [
        of("v", &["a", "b"], "get", "/metrics"),
        of("u", &["ab"], "get", "/metrics"),
        of("u", &["a", "b"], "post", "/metrics"),
        of("u", &["a", "b"], "get", "/metric"),
        of("u", &["a", "b"], "get/", "metrics"),
    ] {
        assert_ne!(other, one);
    }
}

#[tokio::test]
async fn strangers_and_refusals_push_nothing_out() {
    let asked = Asked::default();
    let callers = callers(&asked);
    let may = async |token: &str, path: &str| callers.ask(token, "get", path).await.unwrap();
    assert_eq!(may("good-1", "/metrics").await, Said::Allowed);
    let denied = Said::Denied("good-1".to_owned());
    for number in 0..=KEPT.get() {
        assert_eq!(
            may(&format!("bad-{number}"), "/metrics").await,
            Said::Unknown
        );
        assert_eq!(may("good-1", &format!("/{number}")).await, denied);
    }
    asked.lock().clear();
    assert_eq!(may("good-1", "/metrics").await, Said::Allowed);
    assert!(asked.lock().is_empty(), "it is known");
    // The oldest of the others made way.
    assert_eq!(may("bad-0", "/metrics").await, Said::Unknown);
    assert_eq!(may("good-1", "/0").await, denied);
    assert_eq!(asked.lock().len(), 2);
    assert_eq!(may("good-1", "/0").await, denied);
    assert_eq!(
        may(&"x".repeat(LONGEST + 1), "/metrics").await,
        Said::Unknown
    );
    assert_eq!(asked.lock().len(), 2, "it is not asked again");
}

#[tokio::test]
async fn a_flood_is_turned_away() {
    let serve = |_: Request<Bytes>| -> BoxFuture<'static, Response<Bytes>> {
        Box::pin(std::future::pending())
    };
    let connection = Connection::local(serve, "a server that is silent");
    let callers = Callers::new(connection.caller_reviews());
    let tokens: Vec<String> = (0..WAITING).map(|number| number.to_string()).collect();
    let asking = tokens
        .iter()
        .map(|token| callers.ask(token, "get", "/metrics"));
    let mut asking: Vec<_> = asking.map(Box::pin).collect();
    for ask in &mut asking {
        assert!(ask.as_mut().now_or_never().is_none());
    }
    let one_more = callers.ask("one more", "get", "/metrics").await;
    assert_eq!(one_more.unwrap(), Said::Busy);
    asking.clear();
    let next = callers.ask("the next", "get", "/metrics").now_or_never();
    assert!(next.is_none(), "there is room again");
}

#[tokio::test]
async fn nobody_fills_the_log() {
    let callers = callers(&Asked::default());
    assert!(callers.is_news());
    assert!(!callers.is_news());
}
