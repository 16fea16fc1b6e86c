//! Asks a running host: finds it, sends GET requests and orders to its admin address, and reads a
//! document or a stream of events. It must not know the documents, except for the state, by which
//! it distinguishes a vmhost from another program.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use axum::body::{Body, BodyDataStream, to_bytes};
use axum::http::{Request, StatusCode, header, request};
use futures_util::StreamExt;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use vmhost_core::{cut, one_line};
use vmhost_runtime::observe::admin::STATE_PATH;
use vmhost_runtime::observe::admin::state::HostState;

use crate::address::{DEV_KUBECONFIG, address_file};

mod events;
mod token;

use events::Events;

/// The default admin address of a host.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8082";

/// The time limit for the host's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for the answer to an order. The host may first have to compile a version, and to
/// fill its stores.
const ORDER_TIMEOUT: Duration = Duration::from_secs(300);

/// The maximum size of a document. 64 plugins of 64 controllers with 100 failing keys of 512 bytes
/// would give a state of 200 MiB, far more than any real host.
const LONGEST: usize = 256 << 20;

/// The variable that names a file with the host's token, as for orders.
const TOKEN_FILE: &str = "VMHOST_ADMIN_TOKEN_FILE";

/// The most bytes of a refusal's text that are shown.
const REFUSAL: usize = 4 << 10;

/// A running host.
pub(crate) struct Host {
    /// Its admin address.
    pub(crate) address: String,
}

/// An answer of the host.
pub(crate) enum Answer<T> {
    /// The document.
    Found(T),
    /// A status code and a text, on one line.
    Refused(StatusCode, String),
}

/// The events that a host sends until it ends.
pub(crate) struct Follow {
    address: String,
    body: BodyDataStream,
    events: Events,
    /// The data of events that the command has not taken yet.
    ready: VecDeque<Vec<u8>>,
    /// Keeps the connection open.
    _sender: SendRequest<Body>,
}

/// The head and the body of an answer.
struct Sent {
    status: StatusCode,
    body: Body,
    sender: SendRequest<Body>,
}

/// Returns the host at the given address, or the first host that answers: a `vmhost dev` of this
/// folder or of `$KUBECONFIG`, then a host at the default address.
pub(crate) async fn find(given: Option<&str>) -> Result<(Host, HostState)> {
    if let Some(given) = given {
        return Host::at(address(given)).await;
    }
    let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let kubeconfigs = std::env::split_paths(&named).chain([PathBuf::from(DEV_KUBECONFIG)]);
    for kubeconfig in kubeconfigs {
        let file = address_file(&kubeconfig);
        let Ok(address) = std::fs::read_to_string(&file) else {
            continue;
        };
        match Host::at(address.trim().to_owned()).await {
            Ok(found) => return Ok(found),
            // A `vmhost dev` that was killed leaves its address file behind.
            Err(error) => tracing::debug!("{}: {error:#}", file.display()),
        }
    }
    Host::at(DEFAULT_ADDRESS.to_owned()).await
}

/// Completes an address: `:8082` means this machine, as in the host's own flag.
fn address(given: &str) -> String {
    match given.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => given.to_owned(),
    }
}

impl Host {
    /// Returns the host at an address, with its state.
    async fn at(address: String) -> Result<(Self, HostState)> {
        let host = Self { address };
        match host.get(STATE_PATH).await? {
            Answer::Found(state) => Ok((host, state)),
            Answer::Refused(StatusCode::SERVICE_UNAVAILABLE, _) => {
                bail!("the vmhost at {} is shutting down", host.address)
            }
            Answer::Refused(status, _) => {
                Err(host.not_vmhost(&format!("GET {STATE_PATH}: {status}")))
            }
        }
    }

    /// Gets a document.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Answer<T>> {
        let request = |_| Ok(Request::get(path));
        let answer = self.document(TIMEOUT, path, request, Body::empty()).await?;
        if !answer.needs_token() {
            return Ok(answer);
        }
        let request = |peer| self.get_as_user(path, peer);
        self.document(TIMEOUT, path, request, Body::empty()).await
    }

    /// Returns a request with the host's token, which a host with --metrics-access token wants for
    /// questions too.
    fn get_as_user(&self, path: &str, peer: SocketAddr) -> Result<request::Builder> {
        let file = std::env::var_os(TOKEN_FILE).map(PathBuf::from);
        let token = token::find(&self.address, peer, file.as_deref()).with_context(|| {
            format!("the vmhost at {} answers only callers with a token (its --metrics-access); {TOKEN_FILE} may name a file with its own", self.address)
        })?;
        let bearer = format!("Bearer {token}");
        Ok(Request::get(path).header(header::AUTHORIZATION, bearer))
    }

    /// Gives an order, with the token in `token_file` or else the one that the host wrote for this
    /// user.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        token_file: Option<&Path>,
        body: Vec<u8>,
    ) -> Result<Answer<T>> {
        let request = |peer: SocketAddr| -> Result<request::Builder> {
            let token = token::find(&self.address, peer, token_file)?;
            let bearer = format!("Bearer {token}");
            Ok(Request::post(path).header(header::AUTHORIZATION, bearer))
        };
        self.document(ORDER_TIMEOUT, path, request, Body::from(body))
            .await
    }

    /// Sends a request and reads the document of the answer. `request` returns the request for the
    /// address to which it is sent.
    async fn document<T: DeserializeOwned>(
        &self,
        limit: Duration,
        path: &str,
        request: impl FnOnce(SocketAddr) -> Result<request::Builder>,
        body: Body,
    ) -> Result<Answer<T>> {
        let read = async {
            let sent = self.send(request, body).await?;
            let bytes = self.all(sent.body).await?;
            anyhow::Ok((sent.status, bytes))
        };
        let (status, bytes) = self.within(limit, read).await?;
        if status != StatusCode::OK {
            return Ok(Answer::Refused(status, text(&bytes, status)));
        }
        let document = serde_json::from_slice(&bytes).map_err(|error| {
            let path = path.split('?').next().unwrap_or_default();
            self.not_vmhost(&format!("its {path} is not valid: {error}"))
        })?;
        Ok(Answer::Found(document))
    }

    /// Follows a path that sends events.
    pub(crate) async fn follow(&self, path: &str) -> Result<Answer<Follow>> {
        let request = self.send(|_| Ok(Request::get(path)), Body::empty());
        let mut sent = self.within(TIMEOUT, request).await?;
        if sent.status == StatusCode::UNAUTHORIZED {
            let request = self.send(|peer| self.get_as_user(path, peer), Body::empty());
            sent = self.within(TIMEOUT, request).await?;
        }
        if sent.status != StatusCode::OK {
            let bytes = self.within(TIMEOUT, self.all(sent.body)).await?;
            return Ok(Answer::Refused(sent.status, text(&bytes, sent.status)));
        }
        Ok(Answer::Found(Follow {
            address: self.address.clone(),
            body: sent.body.into_data_stream(),
            events: Events::default(),
            ready: VecDeque::new(),
            _sender: sent.sender,
        }))
    }

    async fn send(
        &self,
        request: impl FnOnce(SocketAddr) -> Result<request::Builder>,
        body: Body,
    ) -> Result<Sent> {
        let address = &self.address;
        let failed = || {
            format!(
                "cannot connect to {address} (--address); check that vmhost runs and that this is its --admin-bind-address"
            )
        };
        let stream = TcpStream::connect(address).await.with_context(failed)?;
        let peer = stream.peer_addr().with_context(failed)?;
        // Named by the address: the host would refuse a name, because the page of a browser may use
        // one.
        let named = peer.to_string();
        let request = request(peer)?;
        let other = |error: hyper::Error| self.not_vmhost(&error.to_string());
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(other)?;
        tokio::spawn(connection);
        let request = request
            .header(header::HOST, named)
            .body(body)
            .with_context(|| format!("{address:?} is not an address such as 127.0.0.1:8082"))?;
        let answer = sender.send_request(request).await.map_err(other)?;
        Ok(Sent {
            status: answer.status(),
            body: Body::new(answer.into_body()),
            sender,
        })
    }

    async fn all(&self, body: Body) -> Result<Vec<u8>> {
        let bytes = to_bytes(body, LONGEST).await;
        let bytes = bytes.map_err(|error| self.not_vmhost(&error.to_string()))?;
        Ok(bytes.to_vec())
    }

    async fn within<T>(&self, limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
        let timed = tokio::time::timeout(limit, work).await;
        timed.unwrap_or_else(|_| {
            Err(anyhow!(
                "{} (--address) did not answer within {limit:?}",
                self.address
            ))
        })
    }

    /// Returns the error that the server is not a vmhost.
    fn not_vmhost(&self, why: &str) -> anyhow::Error {
        anyhow!(
            "the server at {} (--address) is not a vmhost: {}",
            self.address,
            one_line(why)
        )
    }
}

/// Returns the text of a refusal on one line, or the status if there is none.
fn text(bytes: &[u8], status: StatusCode) -> String {
    let text = String::from_utf8_lossy(bytes);
    match one_line(cut(text.trim(), REFUSAL)) {
        text if text.is_empty() => status.to_string(),
        text => text.into_owned(),
    }
}

impl<T> Answer<T> {
    /// Returns whether the host wants a token.
    fn needs_token(&self) -> bool {
        matches!(self, Self::Refused(StatusCode::UNAUTHORIZED, _))
    }

    /// Returns the document. A refusal is an error with the host's text.
    pub(crate) fn found(self) -> Result<T> {
        match self {
            Self::Found(document) => Ok(document),
            Self::Refused(_, why) => bail!("{why}"),
        }
    }
}

impl Follow {
    /// Waits for the next event. The end of the host is an error.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<T> {
        let address = &self.address;
        loop {
            if let Some(data) = self.ready.pop_front() {
                return serde_json::from_slice(&data)
                    .map_err(|error| anyhow!("an event of {address} is not valid: {error}"));
            }
            match self.body.next().await {
                Some(Ok(bytes)) => self.ready.extend(self.events.push(&bytes)),
                Some(Err(error)) => bail!("the vmhost at {address} is gone: {error}"),
                None => bail!("the vmhost at {address} shut down"),
            }
            if self.events.open() > LONGEST {
                bail!("an event of {address} is longer than {LONGEST} bytes");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_the_host_out() {
        assert_eq!(address(":8082"), "127.0.0.1:8082");
        assert_eq!(address("vmhost.x:1"), "vmhost.x:1");
    }

    #[test]
    fn a_refusal_is_one_line() {
        let status = StatusCode::NOT_FOUND;
        assert_eq!(text(b"no\x1b[2J\nturn\n", status), "no [2J turn");
        assert_eq!(text(b" \n", status), "404 Not Found");
    }
}
