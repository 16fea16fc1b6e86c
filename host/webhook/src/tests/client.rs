//! A server for tests, and a client that trusts it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;
use prometheus::Registry;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificates::authority::Authority;
use crate::certificates::shown::provider;
use crate::{Metrics, Policy, Server, Shown};

/// The trace of each request.
pub(super) const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// How many connections a host of a test serves at once, if the test is not about that.
const PLACES: usize = 100;

/// A running server on loopback.
pub(super) struct Host {
    server: Option<Server>,
    port: u16,
    pub shown: Arc<Shown>,
    /// The authority that clients trust, PEM.
    pub trusted: String,
}

/// One connection.
pub(super) enum Client {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// An answer that was read whole.
pub(super) struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    body: Bytes,
}

impl Host {
    pub fn start(policy: impl Policy) -> Host {
        Host::start_counted(policy, &Registry::new())
    }

    pub fn start_counted(policy: impl Policy, registry: &Registry) -> Host {
        let mut host = Host::create(policy, registry, PLACES);
        host.renew();
        host
    }

    /// A host that serves this many connections at once.
    pub fn start_with_places(policy: impl Policy, places: usize) -> Host {
        let mut host = Host::create(policy, &Registry::new(), places);
        host.renew();
        host
    }

    pub fn start_without_certificate(policy: impl Policy) -> Host {
        let mut host = Host::create(policy, &Registry::new(), PLACES);
        host.trusted = Authority::make(Timestamp::now()).unwrap().certificate;
        host
    }

    fn create(policy: impl Policy, registry: &Registry, places: usize) -> Host {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let shown = Arc::new(Shown::default());
        let metrics = Metrics::new(registry).unwrap();
        let policy = Arc::new(policy);
        let server = Server::with_places(listener, shown.clone(), policy, metrics, places);
        let server = server.unwrap();
        Host {
            port: server.address().port(),
            server: Some(server),
            shown,
            trusted: String::new(),
        }
    }

    /// Shows a certificate of a new authority, which clients trust from now on.
    pub fn renew(&mut self) {
        let now = Timestamp::now();
        let authority = Authority::make(now).unwrap();
        let leaf = authority.leaf(&["localhost".to_owned()], now).unwrap();
        self.shown.show(leaf.key);
        self.trusted = authority.certificate;
    }

    pub fn take(&mut self) -> Server {
        self.server.take().unwrap()
    }

    /// Connects, and sends nothing.
    pub async fn plain(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// Connects over TLS and offers these protocols.
    pub async fn tls(&self, protocols: &[&[u8]]) -> std::io::Result<TlsStream<TcpStream>> {
        self.handshake(rustls::DEFAULT_VERSIONS, protocols).await
    }

    /// Connects over this version of TLS.
    pub async fn tls_of(
        &self,
        version: &'static SupportedProtocolVersion,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.handshake(&[version], &[b"http/1.1"]).await
    }

    async fn handshake(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&[u8]],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.trusted.as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }

    pub async fn connect(&self, version: Version) -> Client {
        if version == Version::HTTP_2 {
            let stream = self.tls(&[b"h2"]).await.unwrap();
            let io = TokioIo::new(stream);
            let connected = http2::handshake(TokioExecutor::new(), io).await;
            let (sender, connection) = connected.unwrap();
            tokio::spawn(connection);
            Client::Http2(sender)
        } else {
            let stream = self.tls(&[b"http/1.1"]).await.unwrap();
            let connected = http1::handshake(TokioIo::new(stream)).await;
            let (sender, connection) = connected.unwrap();
            tokio::spawn(connection);
            Client::Http1(sender)
        }
    }
}

impl Client {
    pub async fn post(&mut self, path: &str, body: String) -> Answer {
        self.send(Method::POST, path, body).await
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, String::new()).await
    }

    async fn send(&mut self, method: Method, path: &str, body: String) -> Answer {
        let request = Request::builder()
            .method(method)
            .header("traceparent", TRACEPARENT);
        let body = Full::new(Bytes::from(body));
        let response: Response<Incoming> = match self {
            Self::Http1(sender) => {
                let request = request.uri(path).header("host", "localhost");
                sender.ready().await.unwrap();
                sender.send_request(request.body(body).unwrap()).await
            }
            Self::Http2(sender) => {
                let request = request.uri(format!("https://localhost{path}"));
                sender.ready().await.unwrap();
                sender.send_request(request.body(body).unwrap()).await
            }
        }
        .unwrap();
        let (head, body) = response.into_parts();
        Answer {
            code: head.status.as_u16(),
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }
}

impl Answer {
    pub fn json(&self) -> (StatusCode, Value) {
        let code = StatusCode::from_u16(self.code).unwrap();
        (code, serde_json::from_slice(&self.body).unwrap())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }
}
