//! A forward proxy as in company networks: HTTP `CONNECT`, plain or over TLS, or SOCKS5, for one
//! user. It resolves every name to this machine.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::net;

/// The only user and the password, with a character that URLs must encode.
const USER: (&str, &str) = ("somebody", "pass@word");

/// The protocol of a proxy.
#[derive(Clone)]
pub enum Kind {
    /// `CONNECT`.
    Http,
    /// `CONNECT` behind TLS.
    Https(Arc<ServerConfig>),
    /// SOCKS5.
    Socks5,
}

/// A running proxy. Dropping the value stops it.
pub struct ForwardProxy {
    scheme: &'static str,
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl ForwardProxy {
    /// Listens on a free loopback port.
    pub async fn start(kind: Kind) -> Result<ForwardProxy> {
        let listener = TcpListener::bind(net::loopback(0))
            .await
            .context("binding the proxy")?;
        let addr = listener.local_addr().context("reading its address")?;
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let scheme = match kind {
            Kind::Http => "http",
            Kind::Https(_) => "https",
            Kind::Socks5 => "socks5",
        };
        let seen = asked.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, kind.clone(), seen.clone()));
            }
        });
        Ok(ForwardProxy {
            scheme,
            addr,
            asked,
            accepting,
        })
    }

    /// Returns its URL, with user and password.
    pub fn url(&self) -> String {
        let (user, password) = (USER.0, USER.1.replace('@', "%40"));
        format!("{}://{user}:{password}@{}", self.scheme, self.addr)
    }

    /// Returns its URL without user and password, as in messages.
    pub fn name(&self) -> String {
        format!("{}://{}", self.scheme, self.addr)
    }

    /// Returns the `host:port` of each requested connection.
    pub fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(stream: TcpStream, kind: Kind, asked: Arc<Mutex<Vec<String>>>) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    match kind {
        Kind::Http => http(stream, &asked).await,
        Kind::Https(config) => http(TlsAcceptor::from(config).accept(stream).await?, &asked).await,
        Kind::Socks5 => socks5(stream, &asked).await,
    }
}

/// RFC 9110, 9.3.6.
async fn http<S>(mut client: S, asked: &Mutex<Vec<String>>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let user = BASE64_STANDARD.encode(format!("{}:{}", USER.0, USER.1));
    if !head.contains(&format!("\r\nProxy-Authorization: Basic {user}\r\n")) {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        return client.write_all(refusal).await;
    }
    let Some(target) = head
        .strip_prefix("CONNECT ")
        .and_then(|rest| rest.split(' ').next())
    else {
        return client
            .write_all(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
            .await;
    };
    let mut server = connect(target, asked).await?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// RFC 1928, with user and password of RFC 1929.
async fn socks5(mut client: TcpStream, asked: &Mutex<Vec<String>>) -> io::Result<()> {
    let version = client.read_u8().await?;
    let methods = text(&mut client).await?;
    if version != 5 || !methods.contains('\u{2}') {
        return client.write_all(&[5, 0xff]).await;
    }
    client.write_all(&[5, 2]).await?;
    client.read_u8().await?;
    let (user, password) = (text(&mut client).await?, text(&mut client).await?);
    if (user.as_str(), password.as_str()) != USER {
        return client.write_all(&[1, 1]).await;
    }
    client.write_all(&[1, 0]).await?;
    let mut command = [0; 4];
    client.read_exact(&mut command).await?;
    // The command CONNECT with a name, which only the proxy can resolve.
    if command != [5, 1, 0, 3] {
        return client.write_all(&[5, 8, 0, 1, 0, 0, 0, 0, 0, 0]).await;
    }
    let host = text(&mut client).await?;
    let target = format!("{host}:{}", client.read_u16().await?);
    let mut server = connect(&target, asked).await?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Reads a length and that many bytes.
async fn text(client: &mut TcpStream) -> io::Result<String> {
    let mut bytes = vec![0; usize::from(client.read_u8().await?)];
    client.read_exact(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn connect(target: &str, asked: &Mutex<Vec<String>>) -> io::Result<TcpStream> {
    asked
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(target.to_owned());
    let port = target.rsplit(':').next().and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| io::Error::other("no port"))?;
    TcpStream::connect(net::loopback(port)).await
}
