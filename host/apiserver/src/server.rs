//! A running front: the socket, TLS, and the graceful and the abrupt stop.
//!
//! Must not know what is served.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::collect;
use crate::error::Error;
use crate::front::{Front, router};
use crate::state::State;

/// How long a graceful stop waits for answers in progress.
const DRAIN: Duration = Duration::from_secs(5);
/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The maximum number of requests on one HTTP/2 connection, including watches.
const STREAMS: u32 = 1000;

/// The address and the token of a front.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// A loopback address; port 0 selects a free port.
    pub addr: SocketAddr,
    /// The accepted bearer token. `None` selects the random token of the [`State`], so that a
    /// kubeconfig outlives a restart of the front.
    pub token: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: None,
        }
    }
}

impl Options {
    /// Returns the default options with this address.
    #[must_use]
    pub fn at(addr: SocketAddr) -> Options {
        Options {
            addr,
            ..Options::default()
        }
    }
}

/// A front of a cluster. Dropping it stops as abruptly as [`Server::kill`].
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    kubeconfig: String,
    stop: CancellationToken,
    kill: CancellationToken,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to serve `state` over HTTPS, with a certificate of the cluster's own authority.
    pub async fn start(state: Arc<State>, options: Options) -> Result<Server, Error> {
        if !options.addr.ip().is_loopback() {
            return Err(Error::NotLoopback(options.addr));
        }
        let bind = |source| Error::Bind {
            addr: options.addr,
            source,
        };
        let authority = state.authority()?;
        let tls = TlsAcceptor::from(Arc::new(authority.server_config()?));
        let authority = STANDARD.encode(authority.pem());
        let listener = TcpListener::bind(options.addr).await.map_err(bind)?;
        let addr = listener.local_addr().map_err(bind)?;
        let token = options.token.unwrap_or_else(|| state.token().to_owned());
        let kubeconfig = kubeconfig(addr, &authority, &token);
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let front = Front {
            state,
            token: token.into(),
            address: addr.to_string().into(),
            stop: stop.clone(),
        };
        tracing::info!(%addr, "embedded development api server: in memory, loopback only, no access control");
        let accepting = tokio::spawn(accept(listener, tls, front, kill.clone()));
        Ok(Server {
            addr,
            kubeconfig,
            stop,
            kill,
            accepting: Some(accepting),
        })
    }

    /// Returns the address of the socket.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns a kubeconfig for the front, as YAML.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig.clone()
    }

    /// Stops gracefully: accepts no new connections, ends watches, and waits at most 5 s for
    /// answers in progress.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let Some(mut accepting) = self.accepting.take() else {
            return;
        };
        if tokio::time::timeout(DRAIN, &mut accepting).await.is_err() {
            self.kill.cancel();
            let _ = accepting.await;
        }
    }

    /// Stops as a crash would: when this returns, every connection is dropped and the port is
    /// closed.
    pub async fn kill(mut self) {
        self.kill.cancel();
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill.cancel();
    }
}

/// Collects garbage and accepts connections until stopped, then waits for the last connection; or
/// until killed, then drops all connections. When it returns, no task of the front is left that
/// could answer or write.
async fn accept(listener: TcpListener, tls: TlsAcceptor, front: Front, kill: CancellationToken) {
    let stop = front.stop.clone();
    let mut connections = JoinSet::new();
    connections.spawn(collect::run(front.state.clone(), stop.clone()));
    let streams = TaskTracker::new();
    loop {
        tokio::select! {
            () = kill.cancelled() => break,
            () = stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let tasks = Tasks { kill: kill.clone(), streams: streams.clone() };
                    connections.spawn(serve(stream, tls.clone(), front.clone(), tasks));
                }
                Err(error) => {
                    // Most likely out of file descriptors: other connections may end in the
                    // meantime.
                    tracing::warn!(%error, "cannot accept a connection; retrying in 100ms");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
    drop(listener);
    tokio::select! {
        () = kill.cancelled() => connections.shutdown().await,
        () = async { while connections.join_next().await.is_some() {} } => {}
    }
    streams.close();
    streams.wait().await;
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, front: Front, tasks: Tasks) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "tls handshake failed"),
        Err(_) => return tracing::debug!("tls handshake timed out"),
    };
    let stop = front.stop.clone();
    let mut builder = Builder::new(tasks);
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS);
    let service = TowerToHyperService::new(router(front));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "connection ended");
    }
}

/// Runs the streams of HTTP/2 connections, which end with the front.
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

fn kubeconfig(addr: SocketAddr, authority: &str, token: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: vmhost-dev
clusters:
- name: vmhost-dev
  cluster:
    server: https://{addr}
    certificate-authority-data: {authority}
users:
- name: vmhost-dev
  user:
    token: {token:?}
contexts:
- name: vmhost-dev
  context:
    cluster: vmhost-dev
    user: vmhost-dev
    namespace: default
"
    )
}
