//! Connections, and the path of one request through the rules to the server and back.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::Shared;
use super::body::{self, Faults, Streamed};
use super::request::{self, Request};
use super::rule::{Action, Refusal};

/// Headers of one connection, which are not part of the message.
const HOP_BY_HOP: [HeaderName; 4] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::HOST,
];

/// Accepts until aborted. While the proxy refuses connections there is no listener, so that clients
/// see the error of a dead server: connection refused.
pub(super) async fn accept(listener: TcpListener, addr: SocketAddr, shared: Arc<Shared>) {
    let mut refusing = shared.refusing.subscribe();
    let mut listener = Some(listener);
    loop {
        if *refusing.borrow_and_update() {
            listener = None;
            if refusing.wait_for(|refuse| !refuse).await.is_err() {
                return;
            }
        }
        if listener.is_none() {
            listener = TcpListener::bind(addr).await.ok();
        }
        let Some(open) = &listener else {
            // Another process has the port for a moment, and nothing signals its release.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        tokio::select! {
            // First, so that a client that connects after the order to refuse is not served.
            biased;
            _ = refusing.changed() => {}
            connection = open.accept() => if let Ok((stream, _)) = connection {
                tokio::spawn(serve(stream, shared.clone()));
            },
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut cut = shared.connection_cut.subscribe();
    if *shared.refusing.borrow() {
        // Accepted just before the order.
        return;
    }
    // Nagle's algorithm would delay the small writes that clients measure.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, shared.clone()));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = connection => {}
        _ = cut.changed() => {}
    }
}

/// Answers a request. An error makes hyper close the connection without an answer.
async fn answer(
    request: http::Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Streamed>, io::Error> {
    let (head, incoming) = request.into_parts();
    let bytes = incoming
        .collect()
        .await
        .map_err(io::Error::other)?
        .to_bytes();
    let record = record(&head, bytes.clone());
    let action = take_action(&shared, &record);
    // Before the request is recorded, because a test that waits for a watch may cut it immediately.
    let faults = record.is_watch().then(|| Faults {
        cut: shared.watch_cut.subscribe(),
        swallow: shared.watch_swallowed.subscribe(),
    });
    let at = remember(&shared, record);
    match &action {
        Some(Action::Refuse(refusal)) => {
            answered(&shared, at, refusal.code);
            return refuse(refusal);
        }
        Some(Action::Hold(gate)) => gate.clone().pass().await,
        Some(Action::LoseAnswer | Action::Rewrite(_)) | None => {}
    }
    let response = forward(&shared, head, bytes).await?;
    if let Some(Action::LoseAnswer) = action {
        // Reads the whole answer: the server has then carried the write out.
        let _ = response.into_body().collect().await;
        return Err(io::Error::other("the fault proxy lost this answer"));
    }
    answered(&shared, at, response.status().as_u16());
    let (mut head, upstream) = response.into_parts();
    strip(&mut head.headers);
    let body = match action {
        Some(Action::Rewrite(change)) => {
            let bytes = upstream
                .collect()
                .await
                .map_err(io::Error::other)?
                .to_bytes();
            head.headers.remove(header::CONTENT_LENGTH);
            body::whole(change(&String::from_utf8_lossy(&bytes)))
        }
        _ => body::stream(upstream, faults),
    };
    Ok(Response::from_parts(head, body))
}

fn record(head: &http::request::Parts, body: Bytes) -> Request {
    let text = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
    Request {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: request::parse_query(head.uri.query().unwrap_or_default()),
        user_agent: text(header::USER_AGENT).unwrap_or_default().to_owned(),
        content_type: text(header::CONTENT_TYPE).unwrap_or_default().to_owned(),
        authorization: text(header::AUTHORIZATION).unwrap_or_default().to_owned(),
        traceparent: text(HeaderName::from_static("traceparent"))
            .unwrap_or_default()
            .to_owned(),
        body,
        answered: None,
        began: 0,
        ended: usize::MAX,
    }
}

fn take_action(shared: &Shared, request: &Request) -> Option<Action> {
    let mut rules = shared.rules();
    let rule = rules
        .iter_mut()
        .find(|rule| rule.left > 0 && (rule.matching)(request))?;
    if rule.left != usize::MAX {
        rule.left -= 1;
    }
    Some(rule.action.clone())
}

fn remember(shared: &Shared, request: Request) -> usize {
    let mut number = 0;
    shared.requests.send_modify(|requests| {
        number = requests.tick();
        requests.all.push(Request {
            began: number,
            ..request
        });
    });
    number
}

fn answered(shared: &Shared, number: usize, code: u16) {
    shared.requests.send_modify(|requests| {
        let ended = requests.tick();
        if let Some(request) = requests
            .all
            .iter_mut()
            .rev()
            .find(|request| request.began == number)
        {
            request.answered = Some(code);
            request.ended = ended;
        }
    });
}

fn refuse(refusal: &Refusal) -> Result<Response<Streamed>, io::Error> {
    let status = StatusCode::from_u16(refusal.code).map_err(io::Error::other)?;
    let mut response = Response::new(body::whole(refusal.status.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    if let Some(seconds) = refusal.retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    Ok(response)
}

/// Forwards a request with the server's address and the user's credentials. If the server is down,
/// breaks the caller's connection, as without a proxy.
async fn forward(
    shared: &Shared,
    mut head: http::request::Parts,
    body: Bytes,
) -> Result<Response<kube::client::Body>, io::Error> {
    strip(&mut head.headers);
    // Set again from the body; the original headers would conflict.
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.remove(header::AUTHORIZATION);
    head.version = http::Version::HTTP_11;
    let request = http::Request::from_parts(head, kube::client::Body::from(body.to_vec()));
    shared
        .upstream
        .send(request)
        .await
        .map_err(io::Error::other)
}

fn strip(headers: &mut HeaderMap) {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}
