//! Serves the webhooks of the plugins that run: the socket, the certificate, and the end in order.
//! This module must not know how a review is answered.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;
use vmhost_cluster::Connection;
use vmhost_runtime::manager::Manager;
use vmhost_runtime::observe::metrics::Metrics;
use vmhost_runtime::review::Reviews;
use vmhost_runtime::rights::needs;
use vmhost_webhook::{Keeper, Reach, SERVE_ON, Server, Source, Target};

use super::described::targets;
use super::register::Registrar;
use super::settings::{SECRET, Settings};

/// How many connections may wait to be accepted, as many as Tokio's listeners take.
const BACKLOG: u32 = 1024;

/// The socket, bound before anything else starts, so that a port on which another program listens
/// is reported at once. It refuses connections: an API server would wait for an answer.
pub(crate) struct Bound {
    socket: TcpSocket,
    address: SocketAddr,
    settings: Settings,
}

/// The socket, as soon as it accepts connections.
pub(crate) struct Listening {
    listener: TcpListener,
    settings: Settings,
}

/// Webhooks that are served.
pub(crate) struct Serving {
    server: Server,
    reviews: Reviews,
    stop: CancellationToken,
}

impl Bound {
    /// Binds the socket. The API server reaches it there, if the settings name nothing else.
    pub(crate) fn new(mut settings: Settings) -> Result<Self> {
        let shown = settings.addresses.first();
        let shown = shown.map(ToString::to_string).unwrap_or_default();
        let socket = bound(&settings.addresses).with_context(|| {
            format!("cannot listen on {shown} (--webhook-bind-address): choose another address; another vmhost may use this one")
        })?;
        let address = socket.local_addr()?;
        if settings.reach.is_none() && !address.ip().is_unspecified() {
            settings.reach = Some(Reach::url(&format!("https://{address}"))?);
        }
        Ok(Self {
            socket,
            address,
            settings,
        })
    }

    /// Listens on a free port of this machine, and registers for an API server that runs on it.
    #[cfg_attr(
        not(feature = "dev"),
        expect(dead_code, reason = "only `vmhost dev` serves this machine alone")
    )]
    pub(crate) fn loopback() -> Result<Self> {
        Self::new(Settings {
            addresses: vec![(Ipv4Addr::LOCALHOST, 0).into()],
            cert_dir: None,
            reach: None,
            register: true,
        })
    }

    /// The rights that serving needs.
    pub(crate) fn needs(&self, connection: &Connection) -> needs::Webhooks {
        let own = self.settings.cert_dir.is_none();
        needs::Webhooks {
            secret: own.then(|| (namespace(&self.settings, connection), SECRET.to_owned())),
            register: self.settings.register,
        }
    }

    /// Warns if webhooks are registered for the host's own namespace too, because it is not known.
    pub(crate) fn warn_of_own_namespace(&self, connection: &Connection) {
        let is_known = match &self.settings.reach {
            Some(Reach::Url(_)) => connection.pod_namespace().is_some(),
            Some(Reach::Service { .. }) | None => true,
        };
        if self.settings.register && !is_known {
            tracing::warn!(
                "--register-webhooks with --webhook-url: this vmhost does not know its own namespace, whose objects webhooks are asked about too; one that fails closed may keep vmhost from coming back"
            );
        }
    }

    /// Accepts connections from now on. Must be called on the I/O runtime.
    pub(crate) fn listen(self) -> Result<Listening> {
        let address = self.address;
        let listener = self.socket.listen(BACKLOG);
        let listener = listener.with_context(|| {
            format!("cannot listen on {address} (--webhook-bind-address): another program has taken it meanwhile")
        })?;
        tracing::info!("--webhook-bind-address: listening on {address}");
        Ok(Listening {
            listener,
            settings: self.settings,
        })
    }
}

/// The namespace of the certificate authority: that of the Service, else the host's.
fn namespace(settings: &Settings, connection: &Connection) -> String {
    match &settings.reach {
        Some(Reach::Service { namespace, .. }) => namespace.clone(),
        Some(Reach::Url(_)) | None => connection.default_namespace().to_owned(),
    }
}

impl Listening {
    /// Serves the webhooks of the plugins that this manager runs. Until there is a certificate,
    /// handshakes fail, and the host is not ready. Must be called on the I/O runtime.
    pub(crate) fn serve(
        self,
        connection: &Connection,
        manager: &Manager,
        metrics: &Metrics,
    ) -> Result<Serving> {
        let namespace = namespace(&self.settings, connection);
        let Settings {
            cert_dir,
            reach,
            register,
            ..
        } = self.settings;
        let source = match cert_dir {
            Some(folder) => Source::Folder(folder),
            None => Source::Own {
                secret: connection.secret(&namespace, SECRET),
                names: reach.as_ref().map(Reach::names).unwrap_or_default(),
            },
        };
        let keeper = Arc::new(Keeper::new(connection.webhook_objects(), source));
        let reviews = Reviews::new(&manager.plugins)
            .traced(manager.tracer())
            .recorded(&manager.warnings);
        let metrics = vmhost_webhook::Metrics::new(metrics.registry())?;
        let policy = Arc::new(reviews.clone());
        let server = Server::start(self.listener, keeper.shown(), policy, metrics)?;
        manager.plugins.serve_webhooks(keeper.clone());
        let stop = CancellationToken::new();
        let (kept, of, end) = (keeper.clone(), reviews.clone(), stop.clone());
        tokio::spawn(async move { kept.run(move || all_targets(&of), end).await });
        if let (true, Some(reach)) = (register, reach) {
            let registrar = Registrar {
                keeper,
                reviews: reviews.clone(),
                reach,
                own_namespace: connection.pod_namespace().map(str::to_owned),
            };
            tokio::spawn(registrar.run(stop.clone()));
        }
        Ok(Serving {
            server,
            reviews,
            stop,
        })
    }
}

/// Binds the first of these addresses that is free.
fn bound(addresses: &[SocketAddr]) -> io::Result<TcpSocket> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address is given");
    for address in addresses {
        match bound_to(*address) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bound_to(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A new host binds the port while connections of the last one fade away.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// The objects that may register webhooks of the plugins that run.
fn all_targets(reviews: &Reviews) -> Vec<Target> {
    let answering = reviews.answering();
    let targets = answering.iter().map(|of| targets(of.plugin.description()));
    targets.flatten().collect()
}

impl Serving {
    /// Keeps the plugins for the reviews that still come, while the host shuts down.
    pub(crate) fn hold(&self) {
        self.stop.cancel();
        self.reviews.hold();
    }

    /// Ends in order: the host is not ready any more, so that the API server soon asks no further;
    /// until then it gets answers.
    pub(crate) async fn end(self, drain: Duration) {
        self.hold();
        self.server.stop(SERVE_ON, drain).await;
        self.reviews.release();
    }
}
