//! TLS in front of a plain server, with certificates that a test replaces.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::net;

/// A running front. Dropping the value stops it.
pub struct Front {
    addr: SocketAddr,
    config: watch::Sender<Arc<ServerConfig>>,
    accepting: JoinHandle<()>,
}

impl Front {
    /// Listens on a free loopback port and forwards all bytes to `upstream`.
    pub async fn start(upstream: SocketAddr, config: Arc<ServerConfig>) -> Result<Front> {
        let listener = TcpListener::bind(net::loopback(0))
            .await
            .context("binding the front")?;
        let addr = listener.local_addr().context("reading its address")?;
        let config = watch::Sender::new(config);
        let configs = config.subscribe();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, upstream, configs.clone()));
            }
        });
        Ok(Front {
            addr,
            config,
            accepting,
        })
    }

    /// Returns the address of the socket.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Breaks all connections, and serves new ones with this configuration.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        self.config.send_replace(config);
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Forwards one connection, until one end closes or the certificates are replaced.
async fn pass(
    stream: TcpStream,
    upstream: SocketAddr,
    mut configs: watch::Receiver<Arc<ServerConfig>>,
) -> std::io::Result<()> {
    let config = configs.borrow_and_update().clone();
    let _ = stream.set_nodelay(true);
    let passing = async {
        let mut client = TlsAcceptor::from(config).accept(stream).await?;
        let mut server = TcpStream::connect(upstream).await?;
        let _ = server.set_nodelay(true);
        tokio::io::copy_bidirectional(&mut client, &mut server).await?;
        Ok(())
    };
    tokio::select! {
        passed = passing => passed,
        _ = configs.changed() => Ok(()),
    }
}
