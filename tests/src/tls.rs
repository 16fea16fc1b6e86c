//! Requests to the host over TLS. Must not know what the host answers.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use crate::net;

/// Like [`net::get_with_token`], over TLS, to a server on loopback whose authority these settings
/// trust.
pub async fn get_with_token(
    tls: Arc<ClientConfig>,
    addr: SocketAddr,
    path: &str,
    token: &str,
) -> Result<(u16, String)> {
    let stream = net::connect(addr).await?;
    let name = ServerName::from(addr.ip());
    let connected = TlsConnector::from(tls).connect(name, stream).await;
    let mut stream = connected.context("shaking hands")?;
    let head = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\nAuthorization: Bearer {token}");
    let (head, body) = net::talk(&mut stream, &format!("{head}\r\n\r\n")).await?;
    Ok((net::code(&head)?, body))
}
