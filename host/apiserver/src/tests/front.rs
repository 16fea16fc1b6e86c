//! The front, tested through a socket: TLS, both HTTP versions, stop, kill and restart.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{Error, Options, Server, State};

const CMS: &str = "/api/v1/namespaces/default/configmaps";

/// The parts of a kubeconfig that a client uses.
struct Config {
    addr: SocketAddr,
    tls: TlsConnector,
    token: String,
}

impl Config {
    fn of(server: &Server, protocol: &[u8]) -> Config {
        let text: Value = serde_yaml_ng::from_str(&server.kubeconfig()).unwrap();
        assert_eq!(text["current-context"], "vmhost-dev");
        let cluster = &text["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], format!("https://{}", server.addr()));
        let pem = base64::engine::general_purpose::STANDARD
            .decode(cluster["certificate-authority-data"].as_str().unwrap())
            .unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&pem).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![protocol.to_vec()];
        Config {
            addr: server.addr(),
            tls: TlsConnector::from(Arc::new(tls)),
            token: text["users"][0]["user"]["token"]
                .as_str()
                .unwrap()
                .to_owned(),
        }
    }

    async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.addr).await?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        self.tls.connect(name, stream).await
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Request<Full<Bytes>> {
        Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.addr))
            .header("host", self.addr.to_string())
            .header("authorization", format!("Bearer {}", self.token))
            .body(Full::from(body.to_owned()))
            .unwrap()
    }

    /// Sends one request on a new connection, by HTTP/1.1.
    async fn send(&self, request: Request<Full<Bytes>>) -> http::Response<hyper::body::Incoming> {
        let io = TokioIo::new(self.connect().await.unwrap());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    }

    async fn json(&self, method: &str, path: &str, body: &str) -> Value {
        let response = self.send(self.request(method, path, body)).await;
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap()
    }
}

fn config_map(name: &str) -> String {
    json!({ "metadata": { "name": name } }).to_string()
}

#[tokio::test]
async fn both_versions_of_http_are_served_over_tls() {
    let server = Server::start(State::new(), Options::default())
        .await
        .unwrap();
    let one = Config::of(&server, b"http/1.1");
    let version = one.json("GET", "/version", "").await;
    assert_eq!(version["minor"], "36");
    let mut wrong = one.request("GET", CMS, "");
    wrong.headers_mut().remove("authorization");
    assert_eq!(one.send(wrong).await.status(), 401);

    let two = Config::of(&server, b"h2");
    let io = TokioIo::new(two.connect().await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    tokio::spawn(connection);
    let response = sender
        .send_request(two.request("GET", CMS, ""))
        .await
        .unwrap();
    assert_eq!(
        (response.status().as_u16(), response.version()),
        (200, http::Version::HTTP_2)
    );
    drop(sender);
    server.stop().await;
    assert!(one.connect().await.is_err());
}

#[tokio::test]
async fn only_loopback_is_served() {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = Server::start(State::new(), Options::at(everywhere)).await;
    assert!(matches!(refused, Err(Error::NotLoopback(addr)) if addr == everywhere));
    let server = Server::start(State::new(), Options::default())
        .await
        .unwrap();
    let taken = Server::start(State::new(), Options::at(server.addr())).await;
    assert!(matches!(taken, Err(Error::Bind { .. })));
}

#[tokio::test]
async fn a_stop_ends_watches_and_a_kill_cuts_them() {
    let state = State::new();
    let server = Server::start(state.clone(), Options::default())
        .await
        .unwrap();
    let addr = server.addr();
    let client = Config::of(&server, b"http/1.1");
    client.json("POST", CMS, &config_map("one")).await;
    let list = client.json("GET", CMS, "").await;
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("{CMS}?watch=true&resourceVersion={version}");
    let watch = client.send(client.request("GET", &path, "")).await;
    server.kill().await;
    // The connection breaks in the middle of a chunked body.
    assert!(watch.into_body().collect().await.is_err());
    assert!(TcpStream::connect(addr).await.is_err());

    // Another front has the same address, certificate authority, token and objects.
    let server = Server::start(state, Options::at(addr)).await.unwrap();
    client.json("POST", CMS, &config_map("two")).await;
    let mut watch = client.send(client.request("GET", &path, "")).await;
    let line = watch.frame().await.unwrap().unwrap().into_data().unwrap();
    let event: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(event["object"]["metadata"]["name"], "two");
    server.stop().await;
    assert!(watch.into_body().collect().await.is_ok());
}

#[tokio::test]
async fn a_front_collects_what_has_lost_its_owner() {
    let state = State::new();
    let server = Server::start(state.clone(), Options::default())
        .await
        .unwrap();
    let addr = server.addr();
    let client = Config::of(&server, b"http/1.1");
    let owner = client.json("POST", CMS, &config_map("owner")).await;
    let child = |name: &str| {
        let reference = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"] });
        json!({ "metadata": { "name": name, "ownerReferences": [reference] } }).to_string()
    };
    let made = client.json("POST", CMS, &child("child")).await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{CMS}?watch=true&resourceVersion={version}");
    // Another front takes over, and finds the remaining work.
    server.kill().await;
    let server = Server::start(state, Options::at(addr)).await.unwrap();
    let mut watch = client.send(client.request("GET", &path, "")).await;
    client.json("DELETE", &format!("{CMS}/owner"), "").await;
    let mut gone = Vec::new();
    let mut text = Vec::new();
    while gone.len() < 2 {
        text.extend(watch.frame().await.unwrap().unwrap().into_data().unwrap());
        while let Some(end) = text.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(event["type"], "DELETED");
            gone.push(event["object"]["metadata"]["name"].clone());
        }
    }
    assert_eq!(gone, [json!("owner"), json!("child")]);
    server.stop().await;
}
