//! A running front: the socket, TLS, and the graceful and the abrupt stop.
//!
//! Owns what a front shows and asks for in a TLS handshake. Must not know what is served.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::bootstrap;
use crate::access::certificate;
use crate::access::credentials::{Access, Peer};
use crate::collect;
use crate::crd;
use crate::error::Error;
use crate::front::{Front, Gate, router};
use crate::kubeconfig::{self, Credentials};
use crate::kubernetes_service;
use crate::options::Options;
use crate::state::State;
use crate::tls::clients::Clients;
use crate::tls::{self, Identity};

/// How long a graceful stop waits for answers in progress.
const DRAIN: Duration = Duration::from_secs(5);
/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The maximum number of requests on one HTTP/2 connection, including watches.
const STREAMS: u32 = 1000;

/// A front of a cluster. Dropping it stops as abruptly as [`Server::kill`].
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    kubeconfig: String,
    state: Arc<State>,
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
        let clients = options.clients(&state)?;
        let identity = match &options.certificate {
            Some((certificate, key)) => Identity::read(certificate, key)?,
            None => state.secrets().authority()?.server()?,
        };
        let tls = TlsAcceptor::from(Arc::new(tls::server_config(identity, &clients)?));
        let access = options.access(&state)?;
        state.write(|inner| inner.controllers = options.controllers);
        // The cluster may be from a folder, which keeps objects only.
        state.write(crd::register);
        if options.rbac {
            state.write(bootstrap::ensure);
        }
        let listener = TcpListener::bind(options.addr).await.map_err(bind)?;
        let addr = listener.local_addr().map_err(bind)?;
        state.write(|inner| kubernetes_service::ensure(inner, addr.port()));
        let trusted = match options.certificate {
            // Nothing is known of its authority, so that the certificate itself is trusted.
            Some((certificate, _)) => certificate,
            None => state.secrets().authority()?.pem(),
        };
        let token = Credentials::Token(&access.token);
        let kubeconfig = kubeconfig::text(addr, &trusted, &token);
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let front = Front {
            state: state.clone(),
            address: addr.to_string().into(),
            stop: stop.clone(),
        };
        tracing::info!(%addr, rbac = access.rbac, "embedded development api server: loopback only");
        let door = Door {
            tls,
            clients,
            front,
            access: Arc::new(access),
        };
        let accepting = tokio::spawn(accept(listener, door, kill.clone()));
        Ok(Server {
            addr,
            kubeconfig,
            state,
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

    /// Returns a kubeconfig of another user, with a client certificate, as YAML. It is meant for
    /// tests of access rights: a new user has none until a role is bound to it or to its group.
    pub fn kubeconfig_of(&self, user: &str, group: Option<&str>) -> Result<String, Error> {
        let authority = self.state.secrets().authority()?;
        let (certificate, key) = authority.client(user, group)?;
        let credentials = Credentials::Certificate(&certificate, &key);
        Ok(kubeconfig::text(self.addr, &authority.pem(), &credentials))
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

/// What every connection of a front needs.
#[derive(Clone)]
struct Door {
    tls: TlsAcceptor,
    clients: Clients,
    front: Front,
    access: Arc<Access>,
}

/// Collects garbage and accepts connections until stopped, then waits for the last connection; or
/// until killed, then drops all connections. When it returns, no task of the front is left that
/// could answer or write.
async fn accept(listener: TcpListener, door: Door, kill: CancellationToken) {
    let stop = door.front.stop.clone();
    let mut connections = JoinSet::new();
    connections.spawn(collect::run(door.front.state.clone(), stop.clone()));
    let streams = TaskTracker::new();
    loop {
        tokio::select! {
            () = kill.cancelled() => break,
            () = stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let tasks = Tasks { kill: kill.clone(), streams: streams.clone() };
                    connections.spawn(serve(stream, door.clone(), tasks));
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

async fn serve(stream: TcpStream, door: Door, tasks: Tasks) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, door.tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "tls handshake failed"),
        Err(_) => return tracing::debug!("tls handshake timed out"),
    };
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let peer = match shown.first().and_then(|own| certificate::user(own)) {
        _ if shown.is_empty() => Peer::Unknown,
        Some(user) if door.clients.trusts(shown) => Peer::Known(user),
        _ => Peer::Refused,
    };
    let stop = door.front.stop.clone();
    let gate = Gate {
        front: door.front,
        access: door.access,
        peer: Arc::new(peer),
    };
    // By what the handshake agreed on: a client that sends nothing afterwards is not waited for.
    let is_second = stream.get_ref().1.alpn_protocol() == Some(&b"h2"[..]);
    let mut builder = match is_second {
        true => Builder::new(tasks).http2_only(),
        false => Builder::new(tasks).http1_only(),
    };
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS);
    let service = TowerToHyperService::new(router(gate));
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
