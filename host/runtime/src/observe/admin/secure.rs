//! A listener over TLS for what speaks plain HTTP otherwise. This module must not know what is
//! served.

use std::future::pending;
use std::io;
use std::net::SocketAddr;

use axum::serve::Listener;
use tokio::net::TcpListener;
use vmhost_webhook::{Connection, Connections, Error, Https};

/// A socket whose connections come out of their handshakes.
pub(super) struct Secure {
    address: io::Result<SocketAddr>,
    connections: Connections,
}

impl Secure {
    /// Makes handshakes on a socket from now on.
    pub(super) fn of(listener: TcpListener, https: Https) -> Result<Self, Error> {
        Ok(Self {
            address: listener.local_addr(),
            connections: https.accept(listener)?,
        })
    }
}

impl Listener for Secure {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.next().await {
            Some(accepted) => accepted,
            // The runtime is about to end, and this with it.
            None => pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        match &self.address {
            Ok(address) => Ok(*address),
            Err(error) => Err(error.kind().into()),
        }
    }
}
