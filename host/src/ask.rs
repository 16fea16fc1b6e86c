//! Asks a running host: sends GET requests and orders to its admin address, and reads a document or
//! a stream of events. It must not know the documents, except for the state, by which it
//! distinguishes a vmhost from another program.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header, request};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use vmhost_core::{cut, one_line};
use vmhost_runtime::observe::admin::STATE_PATH;
use vmhost_runtime::observe::admin::state::HostState;

mod events;
mod find;
mod follow;
mod tls;
mod token;

pub(crate) use find::find;
pub(crate) use follow::Follow;
use follow::LONGEST;
use tls::{Stream, Tls};

/// The time limit for the host's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit for the answer to an order. The host may first have to compile a version, and to
/// fill its stores.
const ORDER_TIMEOUT: Duration = Duration::from_secs(300);

/// The most bytes of a refusal's text that are shown.
const REFUSAL: usize = 4 << 10;

/// A running host.
pub(crate) struct Host {
    /// Its admin address.
    pub(crate) address: String,
    /// The file with its token, if the user named one.
    token_file: Option<PathBuf>,
    /// How it is spoken to over TLS. `None` for plain HTTP.
    tls: Option<Tls>,
}

/// An answer of the host.
pub(crate) enum Answer<T> {
    /// The document.
    Found(T),
    /// A status code and a text, on one line.
    Refused(StatusCode, String),
}

/// The head and the body of an answer.
struct Sent {
    status: StatusCode,
    body: Body,
    sender: SendRequest<Body>,
}

impl Host {
    /// Returns the host at an address, with its state.
    async fn at(
        address: String,
        token_file: Option<PathBuf>,
        tls: Option<Tls>,
    ) -> Result<(Self, HostState)> {
        let host = Self {
            address,
            token_file,
            tls,
        };
        match host.get(STATE_PATH).await? {
            Answer::Found(state) => Ok((host, state)),
            Answer::Refused(status, why) => Err(host.refused(status, &why)),
        }
    }

    /// Gets a document.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Answer<T>> {
        let request = |_| Ok(Request::get(path));
        let answer = self.document(TIMEOUT, path, request, Body::empty()).await?;
        if !answer.needs_token() {
            return Ok(answer);
        }
        let request = |peer| self.get_with_token(path, peer);
        self.document(TIMEOUT, path, request, Body::empty()).await
    }

    /// Gets bytes that the host gives only to callers with its token.
    #[cfg(feature = "dev")]
    pub(crate) async fn bytes(&self, path: &str) -> Result<Answer<Vec<u8>>> {
        let request = |peer| self.with_token(Request::get(path), peer);
        self.answer(ORDER_TIMEOUT, request, Body::empty()).await
    }

    /// Gives an order, with the host's token.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Answer<T>> {
        let request = |peer| self.with_token(Request::post(path), peer);
        self.document(ORDER_TIMEOUT, path, request, Body::from(body))
            .await
    }

    /// Returns a GET request with the host's token, which a host with --metrics-access token wants.
    fn get_with_token(&self, path: &str, peer: SocketAddr) -> Result<request::Builder> {
        let request = self.with_token(Request::get(path), peer);
        request.with_context(|| {
            let address = &self.address;
            format!("the vmhost at {address} answers only callers with a token (--metrics-access)")
        })
    }

    /// Adds the token in the file that the user named, else the one that the host at `peer` wrote
    /// for this user.
    fn with_token(&self, request: request::Builder, peer: SocketAddr) -> Result<request::Builder> {
        let token = token::find(&self.address, peer, self.token_file.as_deref())?;
        Ok(request.header(header::AUTHORIZATION, format!("Bearer {token}")))
    }

    /// Sends a request and reads the document of the answer.
    async fn document<T: DeserializeOwned>(
        &self,
        limit: Duration,
        path: &str,
        request: impl FnOnce(SocketAddr) -> Result<request::Builder>,
        body: Body,
    ) -> Result<Answer<T>> {
        let bytes = match self.answer(limit, request, body).await? {
            Answer::Found(bytes) => bytes,
            Answer::Refused(status, why) => return Ok(Answer::Refused(status, why)),
        };
        let document = serde_json::from_slice(&bytes).map_err(|error| {
            let path = path.split('?').next().unwrap_or_default();
            self.not_vmhost(&format!("its {path} is not valid: {error}"))
        })?;
        Ok(Answer::Found(document))
    }

    /// Sends a request and reads the answer. `request` returns the request for the address to which
    /// it is sent.
    async fn answer(
        &self,
        limit: Duration,
        request: impl FnOnce(SocketAddr) -> Result<request::Builder>,
        body: Body,
    ) -> Result<Answer<Vec<u8>>> {
        let read = async {
            let sent = self.send(request, body).await?;
            let bytes = self.all(sent.body).await?;
            anyhow::Ok((sent.status, bytes))
        };
        let (status, bytes) = self.within(limit, read).await?;
        Ok(match status {
            StatusCode::OK => Answer::Found(bytes),
            _ => Answer::Refused(status, text(&bytes, status)),
        })
    }

    /// Follows a path that sends events.
    pub(crate) async fn follow(&self, path: &str) -> Result<Answer<Follow>> {
        let request = self.send(|_| Ok(Request::get(path)), Body::empty());
        let mut sent = self.within(TIMEOUT, request).await?;
        if sent.status == StatusCode::UNAUTHORIZED {
            let request = self.send(|peer| self.get_with_token(path, peer), Body::empty());
            sent = self.within(TIMEOUT, request).await?;
        }
        if sent.status != StatusCode::OK {
            let bytes = self.within(TIMEOUT, self.all(sent.body)).await?;
            return Ok(Answer::Refused(sent.status, text(&bytes, sent.status)));
        }
        let address = self.address.clone();
        Ok(Answer::Found(Follow::new(address, sent.body, sent.sender)))
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
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connect(address, stream).await?),
        };
        let hint = match &self.tls {
            None => " (if it speaks TLS, --address begins with https://)",
            Some(_) => "",
        };
        let other = |error: hyper::Error| self.not_vmhost(&format!("{error}{hint}"));
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

    /// Returns the error for a refusal of the state. A status that no vmhost answers with means
    /// another program.
    fn refused(&self, status: StatusCode, why: &str) -> anyhow::Error {
        let address = &self.address;
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                anyhow!("the server at {address} (--address) refuses GET {STATE_PATH}: {why}")
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                anyhow!("the vmhost at {address} does not answer now: {why}")
            }
            _ => self.not_vmhost(&format!("GET {STATE_PATH}: {status}")),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_refuses_a_token_is_still_a_host() {
        let host = Host {
            address: "a:1".to_owned(),
            token_file: None,
            tls: None,
        };
        for (status, why, words) in [
            (StatusCode::UNAUTHORIZED, "no such token", "no such token"),
            (StatusCode::FORBIDDEN, "x may not get", "x may not get"),
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "shutting down",
                "shutting down",
            ),
            (StatusCode::NOT_FOUND, "nothing here", "is not a vmhost"),
        ] {
            let error = host.refused(status, why).to_string();
            assert!(error.contains("a:1") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_refusal_is_one_line() {
        let status = StatusCode::NOT_FOUND;
        assert_eq!(text(b"no\x1b[2J\nturn\n", status), "no [2J turn");
        assert_eq!(text(b" \n", status), "404 Not Found");
    }
}
