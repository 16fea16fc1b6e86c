//! HTTP to an API server byte by byte, for requests that no client sends.
//!
//! Must not know what is asked.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::authority::trusting;
use crate::kubeconfig::{self, Connection};

/// The address, the trust and the token of a kubeconfig.
pub struct Raw {
    addr: SocketAddr,
    tls: TlsConnector,
    token: String,
}

impl Raw {
    /// Reads a kubeconfig of a server on loopback.
    pub fn of(kubeconfig: &Path) -> Result<Raw> {
        let Connection {
            server,
            authority,
            token,
        } = kubeconfig::read(kubeconfig)?;
        let addr = server.strip_prefix("https://");
        let addr = addr.with_context(|| format!("{server} is no HTTPS URL"))?;
        Ok(Raw {
            addr: addr
                .parse::<SocketAddr>()
                .with_context(|| addr.to_owned())?,
            tls: TlsConnector::from(Arc::new(trusting(&authority)?)),
            token,
        })
    }

    /// Connects, up to the end of the handshake.
    async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.addr).await.context("connecting")?;
        let name = ServerName::try_from("127.0.0.1")?;
        let stream = self.tls.connect(name, stream).await;
        stream.context("the handshake")
    }

    /// Returns the head of a request, without the empty line at its end.
    pub fn head(&self, method: &str, path: &str) -> String {
        let Raw { addr, token, .. } = self;
        format!("{method} {path} HTTP/1.1\r\nHost: {addr}\r\nAuthorization: Bearer {token}\r\n")
    }

    /// Connects and sends these bytes. The connection stays open.
    pub async fn begin(&self, bytes: &[u8]) -> Result<TlsStream<TcpStream>> {
        let mut stream = self.connect().await?;
        stream.write_all(bytes).await.context("sending")?;
        stream.flush().await.context("sending")?;
        Ok(stream)
    }

    /// Sends a whole request on a connection of its own, and reads the answer at the same time.
    /// Returns its status code and its text.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: &[u8],
    ) -> Result<(u16, String)> {
        let mut request = self.head(method, path).into_bytes();
        let length = body.len();
        let rest = format!(
            "Connection: close\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n"
        );
        request.extend_from_slice(rest.as_bytes());
        request.extend_from_slice(body);
        let (read, mut write) = tokio::io::split(self.connect().await?);
        let sending = async move {
            // A server may close the connection before it has read everything.
            let _ = write.write_all(&request).await;
            let _ = write.flush().await;
            write
        };
        let (answer, _write) = tokio::join!(all(read), sending);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let code = answer.split_whitespace().nth(1);
        let code = code.and_then(|code| code.parse().ok());
        Ok((
            code.with_context(|| format!("no answer: {answer:?}"))?,
            answer,
        ))
    }
}

/// Reads until the other end closes the connection, in whichever way.
async fn all(mut read: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count) = read.read(&mut part).await {
        match part.get(..count) {
            Some([]) | None => break,
            Some(new) => bytes.extend_from_slice(new),
        }
    }
    bytes
}
