//! Client certificates, through a socket.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::tls::Authority;
use crate::{Options, Server, State};

/// A client with a certificate.
struct Client {
    addr: SocketAddr,
    tls: TlsConnector,
}

impl Client {
    /// Reads a kubeconfig. `own` replaces its certificate and key (PEM).
    fn of(addr: SocketAddr, kubeconfig: &str, own: Option<(String, String)>) -> Client {
        let text: Value = serde_yaml_ng::from_str(kubeconfig).unwrap();
        let pem = |value: &Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
        let cluster = &text["clusters"][0]["cluster"];
        let user = &text["users"][0]["user"];
        let (certificate, key) = match &own {
            Some((certificate, key)) => {
                (certificate.clone().into_bytes(), key.clone().into_bytes())
            }
            None => (
                pem(&user["client-certificate-data"]),
                pem(&user["client-key-data"]),
            ),
        };
        let authority = pem(&cluster["certificate-authority-data"]);
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&authority).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(&certificate).unwrap()],
                PrivateKeyDer::from_pem_slice(&key).unwrap(),
            )
            .unwrap();
        Client {
            addr,
            tls: TlsConnector::from(Arc::new(tls)),
        }
    }

    /// Asks the server who it is talking to.
    async fn review(&self, token: Option<&str>) -> (u16, Value) {
        let stream = TcpStream::connect(self.addr).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let io = TokioIo::new(self.tls.connect(name, stream).await.unwrap());
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("host", self.addr.to_string());
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::<Bytes>::from("{}")).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap())
    }
}

#[tokio::test]
async fn a_certificate_names_a_user() {
    let mut options = Options::default().with_rbac();
    options.token = Some("secret".to_owned());
    let server = Server::start(State::new(), options).await.unwrap();
    let kubeconfig = server.kubeconfig_of("alice", Some("devs")).unwrap();
    let alice = Client::of(server.addr(), &kubeconfig, None);
    // The certificate counts more than a token, even a wrong one.
    for token in [None, Some("secret"), Some("wrong")] {
        let (code, review) = alice.review(token).await;
        assert_eq!(code, 201, "{review}");
        let user = &review["status"]["userInfo"];
        assert_eq!(user["username"], "alice");
        assert_eq!(user["groups"], json!(["devs", "system:authenticated"]));
    }

    let foreign = Authority::new().unwrap();
    let pair = foreign.client("admin", Some("system:masters")).unwrap();
    let stranger = Client::of(server.addr(), &kubeconfig, Some(pair.clone()));
    assert_eq!(stranger.review(None).await.0, 401);
    let (code, review) = stranger.review(Some("secret")).await;
    assert_eq!(
        (code, &review["status"]["userInfo"]["username"]),
        (201, &json!("vmhost-dev"))
    );
    server.stop().await;

    // Unless that authority is trusted too, as envtest wants it.
    let mut options = Options::default().with_rbac();
    options.client_authorities = foreign.pem();
    let state = State::new();
    let server = Server::start(state, options).await.unwrap();
    let kubeconfig = server.kubeconfig_of("alice", None).unwrap();
    let admin = Client::of(server.addr(), &kubeconfig, Some(pair));
    let (code, review) = admin.review(None).await;
    assert_eq!(
        (code, &review["status"]["userInfo"]["username"]),
        (201, &json!("admin"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_front_shows_the_certificate_that_it_is_given() {
    let authority = Authority::new().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let mut options = Options::default().with_rbac();
    options.certificate = Some((certificate.pem(), key.serialize_pem()));
    options.client_authorities = authority.pem();
    let server = Server::start(State::new(), options).await.unwrap();
    let pair = authority.client("admin", Some("system:masters")).unwrap();
    let client = Client::of(server.addr(), &server.kubeconfig(), Some(pair));
    assert_eq!(client.review(None).await.0, 201);
    server.stop().await;
}
