//! Requests that are not sent, and values that are read. The crate `vmhost-http` tests what is
//! sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use vmhost_core::{ObjectName, SecretKey};

use super::*;
use crate::lead::tests::{election, set};
use crate::observe::metrics::Metrics;

fn call(method: &str, kind: Gvk) -> HttpCall {
    HttpCall {
        request: HttpRequest {
            method: method.to_owned(),
            url: "https://cloud.test/v1?token=secret".to_owned(),
            ..HttpRequest::default()
        },
        turn: Arc::new(HttpTurn {
            controller: "c".to_owned(),
            kind,
            name: ObjectName::new(Some("a"), "x"),
            object: None,
        }),
        ordinal: 0,
        left: Duration::from_secs(60),
    }
}

const GRANTS: &str = r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","timer":{"once":true}}],"http":[
    {"host":"cloud.test","methods":["POST"],"headers":[
        {"name":"X-Token","secret":{"namespace":"a","name":"cloud","key":"token"}}]},
    {"host":"other.test","methods":["POST"],"headers":[{"name":"X-Token","setting":"token"}]},
    {"host":"third.test","urlSetting":"url"}]}"#;

fn grants() -> Vec<HttpGrant> {
    vmhost_core::Description::parse(GRANTS).unwrap().http
}

fn granted<'g>(grants: &'g [HttpGrant], terms: &'g Arc<Terms>) -> Granted<'g> {
    Granted { grants, terms }
}

fn settings(of: &[(&str, &str)]) -> Settings {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    of.iter().map(own).collect()
}

fn pod() -> Gvk {
    Gvk::new("", "v1", "Pod")
}

/// An API server with this Secret; it counts the questions for it.
fn connection(secret: &'static str, asked: &Arc<AtomicUsize>) -> Connection {
    let asked = asked.clone();
    let serve = move |request: http::Request<Bytes>| -> BoxFuture<'static, http::Response<Bytes>> {
        let path = request.uri().path().to_owned();
        let body = match path.as_str() {
            "/api/v1/namespaces/a/secrets/cloud" => {
                asked.fetch_add(1, Ordering::SeqCst);
                secret
            }
            _ => {
                r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":["get"]}]}"#
            }
        };
        Box::pin(async move { http::Response::new(Bytes::from_static(body.as_bytes())) })
    };
    Connection::local(serve, "a server in this process")
}

const SECRET: &str = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"cloud","namespace":"a","uid":"u","resourceVersion":"1"},"data":{"token":"aHVudGVyMg==","bad":"*"}}"#;

fn outgoing(connection: &Connection, leadership: Leadership) -> Arc<Outgoing> {
    outgoing_with(connection, leadership, Arc::default())
}

fn outgoing_with(
    connection: &Connection,
    leadership: Leadership,
    settings: Arc<SettingsBook>,
) -> Arc<Outgoing> {
    Outgoing::new(
        (Vec::new(), Authorities::default()),
        settings,
        connection,
        Metrics::new().unwrap().http_requests.clone(),
        Arc::new(leadership),
    )
}

#[tokio::test]
async fn only_the_leader_changes_something() {
    let asked = Arc::default();
    let outgoing = outgoing(&connection(SECRET, &asked), election());
    let requests = outgoing.requests("p");
    let (grants, terms) = (grants(), Arc::default());
    let refused = requests.send(granted(&grants, &terms), call("POST", pod()));
    let refused = refused.await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("does not hold the leader lease"), "{text}");
    // It was told that nothing was sent.
    let turn = call("POST", pod()).turn;
    assert_eq!(requests.cut_off.take(&turn.controller, &turn.name), None);
}

#[tokio::test]
async fn a_turn_that_lost_its_key_meanwhile_changes_nothing() {
    let asked = Arc::default();
    let leadership = election();
    set(
        &leadership,
        Some(Instant::now() + Duration::from_secs(3600)),
    );
    let outgoing = outgoing(&connection(SECRET, &asked), leadership);
    let mut call = call("POST", pod());
    call.request.url = "https://cloud.test/".to_owned();
    let (reads, is_lost) = (asked.clone(), "the key is lost");
    // Lost while the value of a header is read.
    let fence = move || (reads.load(Ordering::SeqCst) > 0).then_some(is_lost);
    let requests = outgoing.requests("p");
    let (grants, terms) = (grants(), Arc::default());
    let refused = requests.send_while(granted(&grants, &terms), call, Box::new(fence));
    let refused = refused.await;
    assert_eq!(refused, Err(HttpError::NotSent(is_lost.to_owned())));
}

#[tokio::test]
async fn a_webhook_changes_nothing() {
    for kind in REVIEWS {
        let own = Gvk::new(OWN_GROUP, "v1", kind);
        let text = refused(&call("POST", own.clone())).unwrap().to_string();
        assert!(text.contains("a webhook sends only GET and HEAD"), "{text}");
        assert_eq!(refused(&call("GET", own)), None);
    }
    assert_eq!(refused(&call("POST", pod())), None);
    let timer = Gvk::new(OWN_GROUP, "v1", "Timer");
    assert_eq!(refused(&call("POST", timer)), None);
}

#[tokio::test]
async fn what_is_not_granted_is_refused_before_anything_is_read() {
    let asked = Arc::default();
    let outgoing = outgoing(&connection(SECRET, &asked), election());
    let requests = outgoing.requests("p");
    let (grants, terms) = (grants(), Arc::default());
    let text = requests.send(granted(&grants, &terms), call("GET", pod()));
    let text = text.await.unwrap_err().to_string();
    assert!(
        text.starts_with("denied: ") && !text.contains("secret"),
        "{text}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let labels = ["p", "GET", "denied"];
    assert_eq!(outgoing.requests.with_label_values(&labels).get(), 1);
}

#[tokio::test]
async fn a_value_is_read_once_for_a_while() {
    let asked = Arc::default();
    let secrets = Secrets::new(connection(SECRET, &asked).reader());
    let key = |key: &str| SecretKey {
        namespace: "a".to_owned(),
        name: "cloud".to_owned(),
        key: key.to_owned(),
    };
    for _ in 0..2 {
        assert_eq!(secrets.read(&key("token")).await.unwrap(), b"hunter2");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    secrets.forget(&SecretKey {
        name: "another".to_owned(),
        ..key("token")
    });
    secrets.read(&key("token")).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    secrets.forget(&key("token"));
    secrets.read(&key("token")).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    for (name, says) in [("none", "has no key none"), ("bad", "is not base64")] {
        let error = secrets.read(&key(name)).await.unwrap_err().to_string();
        assert!(
            error.contains("Secret a/cloud") && error.contains(says),
            "{error}"
        );
    }
    let malformed = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"cloud","namespace":"a","uid":"u","resourceVersion":"1"},"data":{"token":{"x":"hunter2"}}}"#;
    let secrets = Secrets::new(connection(malformed, &asked).reader());
    let error = secrets.read(&key("token")).await.unwrap_err().to_string();
    assert!(
        error.contains("cannot be read") && !error.contains("hunter2"),
        "{error}"
    );
}

#[tokio::test]
async fn a_missing_setting_is_named_with_its_flag() {
    let asked = Arc::default();
    let outgoing = outgoing(&connection(SECRET, &asked), election());
    let mut call = call("POST", pod());
    call.request.url = "https://other.test/".to_owned();
    let (grants, terms) = (grants(), Arc::default());
    let answer = outgoing.requests("p").send(granted(&grants, &terms), call);
    let text = answer.await.unwrap_err().to_string();
    assert!(text.contains("--setting p.token=VALUE"), "{text}");
}

#[tokio::test]
async fn a_candidate_has_its_own_settings() {
    let asked = Arc::default();
    let live = settings(&[("token", "hunter2"), ("url", "https://live.test")]);
    let book = SettingsBook::new([("p".to_owned(), live)].into());
    let outgoing = outgoing_with(&connection(SECRET, &asked), election(), book);
    let requests = outgoing.requests("p");
    let (grants, flags) = (grants(), Arc::default());
    let candidate = Arc::new(Terms {
        settings: Some(settings(&[("url", "https://candidate.test")])),
        ..Terms::default()
    });
    for (terms, host, says) in [
        (&flags, "live.test", "does not hold the leader lease"),
        // The candidate does not get the live version's token.
        (&candidate, "candidate.test", "--setting p.token=VALUE"),
    ] {
        let granted = granted(&grants, terms);
        let placed = requests.placed(granted);
        assert_eq!(placed.last().unwrap().host, host);
        let mut call = call("POST", pod());
        call.request.url = "https://other.test/".to_owned();
        let text = requests.send(granted, call).await;
        let text = text.unwrap_err().to_string();
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn what_is_cut_off_is_told_once() {
    let cut_off = Arc::new(CutOff::default());
    let call = call("POST", pod());
    let take = || cut_off.take("c", &call.turn.name);
    cut_off.watch(&call).answered();
    assert_eq!(take(), None);
    drop(cut_off.watch(&call));
    assert_eq!(take().as_deref(), Some("POST https://cloud.test/v1"));
    assert_eq!(take(), None);
}

#[test]
fn the_api_server_has_a_name_or_an_address() {
    for (authority, host) in [
        ("1.2.3.4:6443", Some("1.2.3.4")),
        ("[fd00::1]:6443", Some("fd00::1")),
        ("api.example.com", Some("api.example.com")),
        ("a server in this process", None),
        ("", None),
    ] {
        assert_eq!(host_of(authority).as_deref(), host, "{authority}");
    }
}
