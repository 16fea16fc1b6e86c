use std::net::SocketAddr;

use http::Request;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use rcgen::{CertifiedIssuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::AsyncBufReadExt;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::direct::{Direct, Links};
use crate::error::Error;
use crate::proxy::Environment;

/// Starts an API server with TLS for `api.test` that gives one answer per connection. Returns its
/// address and its certificate authority.
async fn api_server() -> (SocketAddr, Vec<u8>) {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let acceptor = acceptor(&issuer, "api.test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let _ = head(&mut stream).await;
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    .await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (address, issuer.der().to_vec())
}

fn acceptor(issuer: &CertifiedIssuer<'static, KeyPair>, name: &str) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Reads the head of a request and nothing after it.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Starts a proxy that answers `answer`, and connects to `target` if that is a success. Returns its
/// address and the requests that it receives.
async fn proxy(answer: &'static str, target: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let seen = asked.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = head(&mut stream).await.unwrap();
            seen.lock().push(request);
            stream.write_all(answer.as_bytes()).await.unwrap();
            if answer.starts_with("HTTP/1.1 2") {
                let mut server = TcpStream::connect(target).await.unwrap();
                tokio::spawn(async move {
                    tokio::io::copy_bidirectional(&mut stream, &mut server).await
                });
            }
        }
    });
    (address, asked)
}

/// Sends a request to `server` with this `proxy-url`.
async fn send(server: &str, proxy_url: &str, authority: &[u8]) -> Result<String, String> {
    let server: Uri = server.parse().unwrap();
    let proxy = Environment::default().proxy_for(&server, Some(proxy_url));
    let peer = Peer {
        server,
        tls_name: None,
        insecure: false,
        guarded: false,
        proxy: proxy.unwrap().map(Arc::new),
    };
    let credentials = Credentials {
        authorities: (!authority.is_empty()).then(|| vec![authority.to_vec()]),
        ..Credentials::default()
    };
    let links = Links::new(&peer, &credentials).unwrap();
    let direct = Direct::new(&peer, Vec::new(), Arc::new(links)).unwrap();
    let request = Request::get("/path").body(bytes::Bytes::new()).unwrap();
    match direct.send(request).await {
        Ok(answer) => {
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            Ok(String::from_utf8(body.to_vec()).unwrap())
        }
        Err(Error::NotSent(error)) => Err(chain_line(error.as_ref())),
        Err(error) => panic!("{error:?}"),
    }
}

const TUNNEL: &str = "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n";

#[tokio::test]
async fn a_proxy_opens_a_tunnel_by_name() {
    let (server, authority) = api_server().await;
    let (address, asked) = proxy(TUNNEL, server).await;
    let url = format!("http://user:pa%40ss@{address}");
    // Only the proxy can resolve that name. The proxy receives the port, even the scheme's default.
    let answer = send("https://api.test", &url, &authority).await;
    assert_eq!(answer.as_deref(), Ok("ok"));
    let asked = asked.lock();
    let expect = "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nProxy-Authorization: Basic dXNlcjpwYUBzcw==\r\n\r\n";
    assert_eq!(*asked, [expect]);
}

#[tokio::test]
async fn a_proxy_forwards_requests_to_a_server_without_tls() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://user:pass@{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = head(&mut stream).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        request
    });
    let read = send("http://api.test:8080/base", &url, b"").await;
    assert_eq!(read.as_deref(), Ok("ok"));
    let request = serving.await.unwrap().to_lowercase();
    assert!(
        request.starts_with("get http://api.test:8080/base/path http/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("proxy-authorization: basic "), "{request}");
}

#[tokio::test]
async fn a_failure_names_the_proxy_without_its_password() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = nobody.local_addr().unwrap();
    drop(nobody);
    let cases = [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "407 Proxy Authentication Required",
        ),
        (
            "HTTP/1.1 403 Forbidden\r\nX: y\r\n\r\n<html>",
            "refused to connect to api.test:6443: HTTP/1.1 403 Forbidden",
        ),
        (
            "nonsense\r\n\r\n",
            "refused to connect to api.test:6443: nonsense",
        ),
    ];
    for (answer, expect) in cases {
        let (address, _) = proxy(answer, closed).await;
        let url = format!("http://user:secret@{address}");
        let error = send("https://api.test:6443", &url, b"").await.unwrap_err();
        let name = format!("proxy http://{address}, from proxy-url: ");
        assert!(
            error.starts_with(&name) && error.contains(expect),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
    for scheme in ["http", "https", "socks5"] {
        let url = format!("{scheme}://user:secret@{closed}");
        let error = send("https://api.test:6443", &url, b"").await.unwrap_err();
        assert!(
            error.contains(&closed.to_string()) && error.contains("refused"),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_proxy_that_ends_without_an_answer_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        // Read the request first, so that the connection ends by FIN and not by RST.
        let mut lines = BufReader::new(stream).lines();
        while lines
            .next_line()
            .await
            .unwrap()
            .is_some_and(|line| !line.is_empty())
        {}
    });
    let error = send("https://api.test", &url, b"").await.unwrap_err();
    assert!(
        error.ends_with("did not answer like an HTTP proxy"),
        "{error}"
    );
}

#[tokio::test]
async fn a_socket_notices_that_its_peer_has_vanished() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server: Uri = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let stream = tcp(false).oneshot(server).await.unwrap().into_inner();
    let socket = socket2::SockRef::from(&stream);
    assert!(socket.keepalive().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_TIME);
    assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_INTERVAL);
    assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_RETRIES);
    assert_eq!(socket.tcp_user_timeout().unwrap(), Some(USER_TIMEOUT));
    assert_eq!(
        KEEPALIVE_TIME + KEEPALIVE_INTERVAL * KEEPALIVE_RETRIES,
        USER_TIMEOUT
    );
}

#[tokio::test]
async fn a_guarded_name_does_not_lead_to_a_clouds_metadata() {
    for (name, guarded, is_refused) in [
        ("169.254.169.254", true, true),
        ("169.254.169.254", false, false),
        ("127.0.0.1", true, false),
    ] {
        let resolver = GaiResolver::new();
        let names = Names { resolver, guarded };
        let found = names.oneshot(name.parse::<Name>().unwrap()).await;
        assert_eq!(found.is_err(), is_refused, "{name}");
    }
}
