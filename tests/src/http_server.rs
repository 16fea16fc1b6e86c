//! Plain HTTP on a free loopback port, in this process: what a test's own services listen with.
//!
//! Owns the listener and its connections. Must not know what requests mean.

use std::future::Future;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::net;

/// A running server. Dropping the value breaks its connections.
pub struct HttpServer {
    addr: SocketAddr,
    accepting: JoinHandle<()>,
}

impl HttpServer {
    /// Listens. `answer` gets the head and the body of each request that arrives whole.
    pub async fn start<A, F>(answer: A) -> Result<HttpServer>
    where
        A: Fn(Parts, Bytes) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = (StatusCode, Bytes)> + Send + 'static,
    {
        let listener = TcpListener::bind(net::loopback(0)).await;
        let listener = listener.context("binding a loopback port")?;
        let addr = listener.local_addr().context("reading its address")?;
        let accepting = tokio::spawn(async move {
            // They end with this task.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let answer = answer.clone();
                let service = service_fn(move |request| respond(answer.clone(), request));
                let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                connections.spawn(async move {
                    // A client that is killed breaks its connection.
                    let _ = serving.await;
                });
            }
        });
        Ok(HttpServer { addr, accepting })
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Answers one request. The error of a body that does not arrive ends the connection.
async fn respond<A, F>(
    answer: A,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error>
where
    A: Fn(Parts, Bytes) -> F,
    F: Future<Output = (StatusCode, Bytes)>,
{
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let (status, body) = answer(head, body).await;
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;
    use crate::wait::eventually;

    #[tokio::test]
    async fn requests_are_answered_until_the_server_is_dropped() {
        let server = HttpServer::start(|head, body| {
            let echo = [head.uri.path().as_bytes(), &body].concat();
            ready((StatusCode::ACCEPTED, Bytes::from(echo)))
        });
        let server = server.await.unwrap();
        let addr = server.addr;
        let (code, text) = net::post(addr, "/path", "{}").await.unwrap();
        assert_eq!((code, text.as_str()), (202, "/path{}"));
        drop(server);
        eventually("the port is closed", async || {
            Ok(net::get(addr, "/").await.is_err().then_some(()))
        })
        .await
        .unwrap();
    }
}
