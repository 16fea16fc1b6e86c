//! Opens the byte stream of a link: TCP, through a proxy if there is one, with TLS on top.
//!
//! This module owns the sockets' settings and the proxies' protocols. It must not know how a proxy
//! is chosen, nor what is sent.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt;
use kube::config::AuthInfo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tower::{Service, ServiceExt, service_fn};

use super::link::{self, Opener};
use crate::credentials::Credentials;
use crate::error::BoxError;
use crate::metadata::is_metadata;
use crate::proxy::{Protocol, Proxy};
use vmhost_core::chain_line;

/// Timeout of opening a link, including TLS and the proxy. Longer than the two retransmissions of a
/// lost SYN (1 s + 2 s + 4 s).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// TCP keepalive: the first probe after 15 s of silence, then one every 10 s; 10 s after the third
/// the connection is dead. So a peer that vanished is detected after 45 s, as in client-go (an
/// HTTP/2 ping after 30 s, and 15 s for its answer).
const KEEPALIVE_TIME: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
/// `TCP_USER_TIMEOUT`: the same limit while sent data is unacknowledged, because the kernel then
/// sends no keepalive probes.
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(45);

/// Maximum size of the head of a proxy's answer to `CONNECT`, in bytes.
const HEAD_MAX: usize = 16 << 10;

/// The server and how to reach it.
pub(crate) struct Peer {
    pub server: Uri,
    /// The name to verify in the server's certificate (`tls-server-name`); `None` for the URL's
    /// host.
    pub tls_name: Option<String>,
    /// Whether to skip the verification of the server's certificate (`insecure-skip-tls-verify`).
    pub insecure: bool,
    /// Whether the server may not be at an address of a cloud's metadata. A proxy guards itself.
    pub guarded: bool,
    pub proxy: Option<Arc<Proxy>>,
}

/// A failure to open a link through a proxy.
#[derive(Debug, thiserror::Error)]
#[error("proxy {proxy}: {detail}")]
struct Proxied {
    proxy: String,
    detail: String,
}

/// Returns a function that opens links to the server. The error says what is wrong with the
/// certificates.
pub(super) fn opener(peer: &Peer, credentials: &Credentials) -> Result<Opener, BoxError> {
    let config = config(peer, credentials);
    let server = with_port(&peer.server)?;
    let Some(proxy) = peer.proxy.clone() else {
        let connector = config.rustls_https_connector_with_connector(tcp(peer.guarded))?;
        return Ok(link::opener(connector, server, CONNECT_TIMEOUT));
    };
    // A proxy with TLS is verified and authenticated to like the server, except for the name, as in
    // client-go.
    let mut hop = config.clone();
    hop.tls_server_name = None;
    let hop = hop.rustls_https_connector_with_connector(tcp(false))?;
    let connector = service_fn({
        let proxy = proxy.clone();
        move |server: Uri| {
            let (hop, proxy) = (hop.clone(), proxy.clone());
            async move {
                let io = hop.oneshot(proxy.address.clone()).await?;
                if proxy.forwards(&server) {
                    return Ok(io);
                }
                match &proxy.protocol {
                    Protocol::Http(authorization) => {
                        tunnel(io, &server, authorization.as_ref()).await
                    }
                    Protocol::Socks5(user) => socks(io, server, user.clone()).await,
                }
            }
        }
    });
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let connector = connector.map_err(move |error: BoxError| Proxied {
        proxy: proxy.to_string(),
        detail: chain_line(error.as_ref()),
    });
    Ok(link::opener(connector, server, CONNECT_TIMEOUT))
}

/// Returns the configuration from which kube builds the TLS settings.
fn config(peer: &Peer, credentials: &Credentials) -> kube::Config {
    let mut config = kube::Config::new(peer.server.clone());
    config.root_cert.clone_from(&credentials.authorities);
    config.accept_invalid_certs = peer.insecure;
    config.tls_server_name.clone_from(&peer.tls_name);
    if let Some(identity) = &credentials.identity {
        config.auth_info = AuthInfo {
            client_certificate_data: Some(BASE64_STANDARD.encode(&identity.certificate)),
            client_key_data: Some(BASE64_STANDARD.encode(&identity.key).into()),
            ..AuthInfo::default()
        };
    }
    config
}

/// Resolves names as the system does.
#[derive(Clone)]
struct Names {
    resolver: GaiResolver,
    /// Whether names that lead to a cloud's metadata are refused. What is checked is connected to.
    guarded: bool,
}

impl Service<Name> for Names {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (guarded, found) = (self.guarded, self.resolver.call(name));
        Box::pin(async move {
            let found: Vec<SocketAddr> = found.await?.collect();
            let mut addresses = found.iter().map(SocketAddr::ip);
            match addresses.find(|address| guarded && is_metadata(*address)) {
                Some(address) => {
                    Err(format!("its address {address} is one of a cloud's metadata").into())
                }
                None => Ok(found.into_iter()),
            }
        })
    }
}

fn tcp(guarded: bool) -> HttpConnector<Names> {
    let mut tcp = HttpConnector::new_with_resolver(Names {
        resolver: GaiResolver::new(),
        guarded,
    });
    tcp.enforce_http(false);
    // A request is sent in one piece, so waiting for more data would only delay it.
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE_TIME));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(USER_TIMEOUT));
    tcp
}

/// Returns the server's URL with its port and without its path: a proxy needs the port.
fn with_port(server: &Uri) -> Result<Uri, BoxError> {
    let host = server.host().ok_or("the server's URL has no host")?;
    let scheme = server.scheme_str().unwrap_or("https");
    let port = server
        .port_u16()
        .unwrap_or(if scheme == "http" { 80 } else { 443 });
    Ok(Uri::try_from(format!("{scheme}://{host}:{port}/"))?)
}

/// Makes the proxy open a tunnel by `CONNECT` (RFC 9110, section 9.3.6). hyper-util's `Tunnel` does
/// not report why a proxy refuses.
async fn tunnel<T>(io: T, server: &Uri, authorization: Option<&HeaderValue>) -> Result<T, BoxError>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    let target = server.authority().ok_or("the server's URL has no host")?;
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(authorization) = authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    let mut io = TokioIo::new(io);
    let status = exchange(&mut io, &request).await?;
    let code = status.split_whitespace().nth(1).unwrap_or_default();
    if code.starts_with('2') && code.len() == 3 {
        return Ok(io.into_inner());
    }
    Err(format!("refused to connect to {target}: {status}").into())
}

/// Sends a request and returns the first line of the answer. Bytes after the head are dropped:
/// after a successful answer there are none, because the server waits for its client.
async fn exchange(
    io: &mut (impl AsyncRead + AsyncWrite + Unpin),
    request: &[u8],
) -> Result<String, BoxError> {
    io.write_all(request).await?;
    io.flush().await?;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if io.read_buf(&mut head).await? == 0 || head.len() > HEAD_MAX {
            return Err("did not answer like an HTTP proxy".into());
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

/// Makes the proxy connect to the server by SOCKS5.
async fn socks<T>(io: T, server: Uri, user: Option<(String, String)>) -> Result<T, BoxError>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    // hyper-util would open the connection to the proxy itself, and not report why it fails.
    let mut io = Some(io);
    let hop = service_fn(move |_: Uri| std::future::ready(io.take().ok_or("already connected")));
    let mut socks = SocksV5::new(server.clone(), hop);
    if let Some((user, password)) = user {
        socks = socks.with_auth(user, password);
    }
    Ok(socks
        .call(server)
        .await
        .map_err(|error| error.to_string())?)
}

#[cfg(test)]
mod tests;
