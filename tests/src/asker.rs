//! A client that asks a webhook as an API server does: over HTTPS and HTTP/1.1, on connections that
//! it keeps.
//!
//! Must not know what a policy decides.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::authority::trusting;

/// One webhook, and the connections to it that are idle.
pub struct Asker {
    addr: SocketAddr,
    path: String,
    tls: TlsConnector,
    idle: Mutex<Vec<Connection>>,
}

type Connection = SendRequest<Full<Bytes>>;

impl Asker {
    /// A webhook at a path of this address, whose certificate one of these authorities (PEM) has
    /// signed.
    pub fn new(addr: SocketAddr, path: &str, authorities: &str) -> Result<Asker> {
        Ok(Asker {
            addr,
            path: path.to_owned(),
            tls: TlsConnector::from(Arc::new(trusting(authorities.as_bytes())?)),
            idle: Mutex::default(),
        })
    }

    /// Sends an AdmissionReview. Returns the `response` of the answer.
    pub async fn ask(&self, review: Bytes) -> Result<Value> {
        let mut connection = match self.kept() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let request = Request::post(&self.path)
            .header(header::HOST, self.addr.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(review))?;
        let answered = connection.send_request(request).await;
        let response = answered.context("asking a webhook")?;
        let code = response.status();
        let body = response.into_body().collect().await;
        let body = body.context("reading a webhook's answer")?.to_bytes();
        if connection.ready().await.is_ok() {
            self.idle().push(connection);
        }
        let text = String::from_utf8_lossy(&body);
        ensure!(code == StatusCode::OK, "{code}: {text}");
        let mut answer: Value = serde_json::from_slice(&body).context("reading a review")?;
        Ok(answer["response"].take())
    }

    /// Sends an AdmissionReview, which must be allowed.
    pub async fn expect_allowed(&self, review: Bytes) -> Result<()> {
        let response = self.ask(review).await?;
        ensure!(response["allowed"] == true, "not allowed: {response}");
        Ok(())
    }

    /// Returns an idle connection that is still open.
    fn kept(&self) -> Option<Connection> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop()).find(Connection::is_ready)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(self.addr).await;
        let stream = stream.with_context(|| format!("connecting to {}", self.addr))?;
        stream.set_nodelay(true)?;
        let name = ServerName::from(self.addr.ip());
        let stream = self.tls.connect(name, stream).await;
        let stream = TokioIo::new(stream.context("the handshake")?);
        let (connection, driver) = http1::handshake(stream).await?;
        tokio::spawn(driver);
        Ok(connection)
    }
}
