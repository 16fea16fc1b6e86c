//! Ports and plain HTTP on loopback, and requests to an API server that return the status code and
//! the JSON.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// The media type of JSON.
pub const JSON: &str = "application/json";
/// The media type of a JSON merge patch.
pub const MERGE: &str = "application/merge-patch+json";
/// The media type of a server-side apply.
pub const APPLY: &str = "application/apply-patch+yaml";

/// The range of ports that are handed out. It is below the range from which the kernel allocates
/// ports for connections and listeners. A test that chooses its ports itself takes lower ones.
pub const PORTS: std::ops::Range<u16> = 19_000..32_000;

/// How long a listener may take to answer.
const CONNECT: Duration = Duration::from_secs(1);

/// Returns `N` loopback ports without a listener that this process has not handed out before.
/// Another process may take one before the caller binds it.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    for port in &mut ports {
        // Not by listening: a child that another thread starts at this moment would inherit the
        // listener, and hold the port until it runs its program.
        *port = first_port(|port| {
            let address = loopback(port);
            let refused = std::net::TcpStream::connect_timeout(&address, CONNECT).err()?;
            (refused.kind() == ErrorKind::ConnectionRefused).then_some(port)
        })?;
    }
    Ok(ports)
}

/// Listens on a loopback port that this process has not handed out before.
pub fn listener() -> Result<TcpListener> {
    first_port(|port| TcpListener::bind(loopback(port)).ok())
}

/// Returns the first result of `of`, which gets the ports in turn.
fn first_port<T>(of: impl Fn(u16) -> Option<T>) -> Result<T> {
    static HANDED_OUT: AtomicU16 = AtomicU16::new(0);
    let size = PORTS.end - PORTS.start;
    // Concurrent processes begin at different ports.
    let first = (std::process::id() % u32::from(size)) as u16;
    let made = (0..size).find_map(|_| {
        let next = HANDED_OUT.fetch_add(1, Ordering::Relaxed) % size;
        of(PORTS.start + (first + next) % size)
    });
    made.context("no loopback port is free")
}

/// A loopback address.
pub fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Sends a GET request; returns the status code and the body.
pub async fn get(addr: SocketAddr, path: &str) -> Result<(u16, String)> {
    get_as(&addr.to_string(), addr, path).await
}

/// Sends a GET request; returns the head of the answer and the body.
pub async fn get_with_head(addr: SocketAddr, path: &str) -> Result<(String, String)> {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\n\r\n");
    send_text(addr, &request).await
}

/// Like [`get`], with another `Host` header.
pub async fn get_as(host: &str, addr: SocketAddr, path: &str) -> Result<(u16, String)> {
    exchange(
        addr,
        &format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n"),
    )
    .await
}

/// Sends a GET request with a token; returns the status code and the body.
pub async fn get_with_token(addr: SocketAddr, path: &str, token: &str) -> Result<(u16, String)> {
    let head = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\nAuthorization: Bearer {token}");
    exchange(addr, &format!("{head}\r\n\r\n")).await
}

/// Sends a POST request with JSON; returns the status code and the body.
pub async fn post(addr: SocketAddr, path: &str, json: &str) -> Result<(u16, String)> {
    let head = format!("POST {path} HTTP/1.0\r\nHost: {addr}\r\nContent-Type: application/json");
    exchange(
        addr,
        &format!("{head}\r\nContent-Length: {}\r\n\r\n{json}", json.len()),
    )
    .await
}

/// Sends a POST request without a body and with these headers, which may include `Host`; returns
/// the status code and the body.
pub async fn post_as(
    addr: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(u16, String)> {
    let mut head = format!("POST {path} HTTP/1.0\r\nContent-Length: 0\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head += &format!("Host: {addr}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    exchange(addr, &format!("{head}\r\n")).await
}

async fn exchange(addr: SocketAddr, request: &str) -> Result<(u16, String)> {
    let (head, body) = send_text(addr, request).await?;
    Ok((code(&head)?, body))
}

/// Returns the status code in the head of an answer.
pub fn code(head: &str) -> Result<u16> {
    head.split_whitespace()
        .nth(1)
        .and_then(|code| code.parse().ok())
        .context("the answer has no status")
}

/// Connects to a server.
pub async fn connect(addr: SocketAddr) -> Result<TcpStream> {
    TcpStream::connect(addr)
        .await
        .with_context(|| format!("connecting to {addr}"))
}

/// Uses HTTP/1.0, so that the end of the stream ends the body. Returns the head and the body.
async fn send_text(addr: SocketAddr, request: &str) -> Result<(String, String)> {
    talk(&mut connect(addr).await?, request).await
}

/// Sends a request in HTTP/1.0, and returns the head of the answer and the body.
pub async fn talk<S>(stream: &mut S, request: &str) -> Result<(String, String)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream
        .write_all(request.as_bytes())
        .await
        .context("sending a request")?;
    stream.flush().await.context("sending a request")?;
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .await
        .context("reading an answer")?;
    let answer = String::from_utf8(answer).context("the answer is not UTF-8")?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer has no head")?;
    Ok((head.to_owned(), body.to_owned()))
}

/// Returns the path of a kind's objects in a namespace.
pub fn collection(api_version: &str, namespace: &str, plural: &str) -> String {
    let root = match api_version.contains('/') {
        true => "apis",
        false => "api",
    };
    format!("/{root}/{api_version}/namespaces/{namespace}/{plural}")
}

/// Sends JSON of this media type, or no body for `Null`; returns the status code and the JSON.
pub async fn send(
    client: &Client,
    method: Method,
    path: &str,
    media: &str,
    body: &Value,
) -> Result<(u16, Value)> {
    let mut request = Request::builder().method(method).uri(path);
    if !media.is_empty() {
        request = request.header(header::CONTENT_TYPE, media);
    }
    let body = match body {
        Value::Null => Vec::new(),
        body => serde_json::to_vec(body)?,
    };
    answer(client, request.body(body)?)
        .await
        .with_context(|| path.to_owned())
}

/// Sends a request; returns the status code and the JSON, or the text if it is not JSON.
pub async fn answer(client: &Client, request: Request<Vec<u8>>) -> Result<(u16, Value)> {
    let response = client.send(request.map(kube::client::Body::from)).await?;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    let value = serde_json::from_slice(&bytes);
    let value = value.unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
    Ok((code, value))
}
