//! The socket: TLS, HTTP/1.1 and HTTP/2, limits, and the graceful end.
//!
//! This module owns connections. It must not know what is asked on them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accept::{CONNECTIONS, Ends, HANDSHAKE, HEAD, accept};
use crate::certificates::shown::{self, Shown};
use crate::desk::Desk;
use crate::error::Error;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::silence::Requests;

/// The listener's name in logs.
const NAME: &str = "webhooks";
/// The maximum number of requests on one HTTP/2 connection.
const STREAMS: u32 = 250;
/// How often a silent HTTP/2 connection is asked whether it lives.
const PING: Duration = Duration::from_secs(30);
/// How long the host serves on after it was told to end: until the API server no longer connects to
/// a host that is not ready.
pub const SERVE_ON: Duration = Duration::from_secs(5);

/// A running server. Dropping it drops its connections.
pub struct Server {
    address: SocketAddr,
    signals: Signals,
    accepting: Option<JoinHandle<()>>,
}

/// The three steps of an end.
#[derive(Clone, Default)]
struct Signals {
    /// Answers ask the client to close its connection.
    leaving: CancellationToken,
    /// The other two.
    ends: Ends,
}

/// What every connection needs.
#[derive(Clone)]
struct Door {
    tls: TlsAcceptor,
    desk: Arc<Desk>,
    signals: Signals,
    streams: TaskTracker,
}

impl Server {
    /// Serves webhooks on a socket, on the runtime of the caller. Handshakes fail until there is a
    /// certificate.
    pub fn start(
        listener: TcpListener,
        shown: Arc<Shown>,
        policy: Arc<dyn Policy>,
        metrics: Metrics,
    ) -> Result<Server, Error> {
        Server::with_places(listener, shown, policy, metrics, CONNECTIONS)
    }

    /// Serves at most this many connections at once.
    pub(crate) fn with_places(
        listener: TcpListener,
        shown: Arc<Shown>,
        policy: Arc<dyn Policy>,
        metrics: Metrics,
        places: usize,
    ) -> Result<Server, Error> {
        let address = listener.local_addr().map_err(Error::Socket)?;
        let tls = TlsAcceptor::from(Arc::new(shown::server_config(shown)?));
        let signals = Signals::default();
        let door = Door {
            tls,
            desk: Arc::new(Desk::new(policy, metrics)),
            signals: signals.clone(),
            streams: TaskTracker::new(),
        };
        Ok(Server {
            address,
            signals,
            accepting: Some(tokio::spawn(serve_all(listener, door, places))),
        })
    }

    /// Returns the address of the socket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends gracefully. The caller has made the host unready before.
    ///
    /// Serves on for `serve_on` ([`SERVE_ON`]) and asks clients to close their connections; then
    /// accepts no more and waits at most `drain` for answers in progress.
    pub async fn stop(mut self, serve_on: Duration, drain: Duration) {
        self.signals.leaving.cancel();
        tokio::time::sleep(serve_on).await;
        self.signals.ends.stop.cancel();
        let Some(mut accepting) = self.accepting.take() else {
            return;
        };
        if tokio::time::timeout(drain, &mut accepting).await.is_err() {
            self.signals.ends.kill.cancel();
            let _ = accepting.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signals.ends.kill.cancel();
    }
}

/// Serves until stopped or killed, and waits for what HTTP/2 connections have begun.
async fn serve_all(listener: TcpListener, door: Door, places: usize) {
    let (ends, streams) = (door.signals.ends.clone(), door.streams.clone());
    accept(NAME, listener, places, ends, move |stream, requests| {
        serve(stream, door.clone(), requests)
    })
    .await;
    streams.close();
    streams.wait().await;
}

async fn serve(stream: TcpStream, door: Door, requests: Requests) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, door.tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "webhooks: tls handshake failed"),
        Err(_) => return tracing::debug!("webhooks: tls handshake timed out"),
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2".as_slice());
    let tasks = Tasks {
        kill: door.signals.ends.kill.clone(),
        streams: door.streams.clone(),
    };
    // The version is known, so that a client that sends nothing runs into the limit for the head.
    let mut builder = match is_http2 {
        true => Builder::new(tasks).http2_only(),
        false => Builder::new(tasks).http1_only(),
    };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .max_concurrent_streams(STREAMS);
    let Signals { leaving, ends } = door.signals;
    let desk = door.desk;
    let counted = requests.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (desk, leaving) = (desk.clone(), leaving.clone());
        let in_flight = counted.begin();
        async move {
            let _in_flight = in_flight;
            let is_http1 = request.version() <= Version::HTTP_11;
            let mut response = desk.answer(request).await;
            if is_http1 && leaving.is_cancelled() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = ends.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = requests.silent(HEAD), if is_http2 => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(HANDSHAKE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "webhooks: connection ended");
    }
}

/// Runs the streams of HTTP/2 connections, which end with the server.
#[derive(Clone)]
struct Tasks {
    kill: CancellationToken,
    streams: TaskTracker,
}

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        let kill = self.kill.clone();
        self.streams.spawn(async move {
            tokio::select! {
                () = kill.cancelled() => {}
                () = task => {}
            }
        });
    }
}
