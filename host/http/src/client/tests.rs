//! The client against servers of its own, on this machine.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::idempotency::tests::call;
use crate::resolve::tests::{Mute, Scripted};

/// What a server answers to every request.
#[derive(Clone, Copy)]
enum Answer {
    Text(&'static str),
    /// A body of this many bytes.
    Large(usize),
    /// It reads the request and closes the connection.
    Nothing,
    /// It reads the request and stays silent.
    Silence,
}

struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicU32>,
}

impl Server {
    async fn start(answer: Answer) -> Self {
        Self::on("127.0.0.1:0", answer, None).await
    }

    async fn on(address: &str, answer: Answer, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            seen: Arc::default(),
            connections: Arc::default(),
        };
        let (seen, connections) = (server.seen.clone(), server.connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(accepted(stream, tls.clone(), answer, seen.clone()));
            }
        });
        server
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }
}

async fn accepted(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    answer: Answer,
    seen: Arc<Mutex<Vec<String>>>,
) {
    match tls {
        None => serve(stream, answer, &seen).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                serve(stream, answer, &seen).await;
            }
        }
    }
}

/// Serves a connection. Requests have no bodies, or ones that come with their heads.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Answer,
    seen: &Mutex<Vec<String>>,
) {
    let mut read = Vec::new();
    loop {
        read.clear();
        while !read.windows(4).any(|end| end == b"\r\n\r\n") {
            if !matches!(stream.read_buf(&mut read).await, Ok(1..)) {
                return;
            }
        }
        seen.lock()
            .push(String::from_utf8_lossy(&read).to_lowercase());
        let text = match answer {
            Answer::Nothing => return,
            Answer::Silence => std::future::pending().await,
            Answer::Text(text) => text.to_owned(),
            Answer::Large(size) => {
                let body = "x".repeat(size);
                format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n{body}")
            }
        };
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

const OK: Answer = Answer::Text("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Y: z\r\n\r\nhi");

fn grants(json: &str) -> Vec<HttpGrant> {
    let text = format!(
        r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","timer":{{"once":true}}}}],"http":{json}}}"#
    );
    vmhost_core::Description::parse(&text).unwrap().http
}

/// A grant of `cloud.test` on this port.
fn grant(port: u16, more: &str) -> Vec<HttpGrant> {
    grants(&format!(
        r#"[{{"host":"cloud.test","port":{port},"scheme":"http","methods":["GET","POST"]{more}}}]"#
    ))
}

const PRIVATE: &str = r#","allowPrivate":true"#;

fn client(resolver: Arc<Scripted>, authorities: Authorities) -> Client {
    let guard = Guard {
        resolver,
        api_server: None,
    };
    let flags = vec!["cloud.test".parse().unwrap()];
    Client::new(Outside::guarded(flags, authorities, guard), "p")
}

fn here() -> Arc<Scripted> {
    Scripted::new(&[&["127.0.0.1"]])
}

async fn send(
    client: &Client,
    grants: &[HttpGrant],
    method: &str,
    url: &str,
) -> Result<HttpResponse, HttpError> {
    let call = call(method, url, "u", 1);
    let mut prepared = client.prepare(grants, &call)?;
    for header in prepared.added.clone() {
        prepared.add(&header, b"hunter2")?;
    }
    client.send(prepared, call.left).await
}

#[tokio::test]
async fn a_response_is_whole_and_connections_are_kept() {
    let server = Server::start(OK).await;
    let header = format!(
        r#"{PRIVATE},"headers":[{{"name":"Authorization","prefix":"Bearer ","setting":"t"}}]"#
    );
    let (client, grants) = (
        client(here(), Authorities::default()),
        grant(server.port, &header),
    );
    let url = format!("http://cloud.test:{}/v1?x=1", server.port);
    let response = send(&client, &grants, "GET", &url).await.unwrap();
    assert_eq!((response.status, &*response.body), (200, &b"hi"[..]));
    let header = ("x-y".to_owned(), "z".to_owned());
    assert!(response.headers.contains(&header), "{response:?}");
    // The connection's own task gives it back.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    send(&client, &grants, "POST", &url).await.unwrap();
    let seen = server.seen();
    assert!(seen[0].starts_with("get /v1?x=1 http/1.1\r\n"), "{seen:?}");
    assert!(seen[0].contains("authorization: bearer hunter2\r\n"));
    assert!(seen[0].contains(&format!("host: cloud.test:{}\r\n", server.port)));
    assert!(!seen[0].contains("idempotency-key"));
    assert!(seen[1].contains("idempotency-key: "), "{seen:?}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_checked_address_is_the_one_that_is_connected_to() {
    let server = Server::start(OK).await;
    // Whoever asks again gets another address.
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let client = client(resolver.clone(), Authorities::default());
    let url = format!("http://cloud.test:{}/", server.port);
    let sent = send(&client, &grant(server.port, PRIVATE), "GET", &url).await;
    assert_eq!(sent.unwrap().status, 200);
    assert_eq!((resolver.asked(), server.seen().len()), (1, 1));
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused() {
    let server = Server::start(OK).await;
    let client = client(here(), Authorities::default());
    let url = format!("http://cloud.test:{}/", server.port);
    let error = send(&client, &grant(server.port, ""), "GET", &url).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("denied: cloud.test is 127.0.0.1, a loopback address"),
        "{error}"
    );
    // An address in the URL is checked too, although no name is resolved.
    let literal = grants(&format!(
        r#"[{{"host":"127.0.0.1","port":{},"scheme":"http"}}]"#,
        server.port
    ));
    let guard = Guard {
        resolver: here(),
        api_server: None,
    };
    let client = Client::new(Outside::guarded(vec![], Authorities::default(), guard), "p");
    let url = format!("http://127.0.0.1:{}/", server.port);
    let error = send(&client, &literal, "GET", &url).await.unwrap_err();
    assert!(matches!(error, HttpError::Denied(_)), "{error}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_header_of_the_host_does_not_cross_the_internet_in_plain_text() {
    let grants = grants(
        r#"[{"host":"cloud.test","scheme":"http","allowPrivate":true,"headers":[{"name":"A","setting":"t"}]}]"#,
    );
    for (address, says) in [
        ("192.0.2.1", "an address for documentation"),
        ("1.1.1.1", "cloud.test: without TLS, anybody"),
    ] {
        let guard = Guard {
            resolver: Scripted::new(&[&[address]]),
            api_server: None,
        };
        let client = Client::new(Outside::guarded(vec![], Authorities::default(), guard), "p");
        let error = send(&client, &grants, "GET", "http://cloud.test/").await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("denied: ") && error.contains(says),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_redirect_is_a_response() {
    let server = Server::start(Answer::Text(
        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest/meta-data\r\ncontent-length: 0\r\n\r\n",
    ))
    .await;
    let (client, grants) = (
        client(here(), Authorities::default()),
        grant(server.port, PRIVATE),
    );
    let url = format!("http://cloud.test:{}/", server.port);
    let response = send(&client, &grants, "GET", &url).await.unwrap();
    assert_eq!((response.status, server.seen().len()), (302, 1));
    let location = "http://169.254.169.254/latest/meta-data";
    let error = send(&client, &grants, "GET", location).await.unwrap_err();
    assert!(matches!(error, HttpError::Denied(_)), "{error}");
}

#[tokio::test]
async fn an_error_says_whether_the_request_was_sent() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = closed.local_addr().unwrap();
    drop(closed);
    let nothing = Server::start(Answer::Nothing).await;
    let large = Server::start(Answer::Large(RESPONSE_MAX + 1)).await;
    let fits = Server::start(Answer::Large(RESPONSE_MAX)).await;
    let client = client(here(), Authorities::default());
    let at = async |port: u16| {
        let url = format!("http://cloud.test:{port}/");
        send(&client, &grant(port, PRIVATE), "POST", &url).await
    };
    let unsent = at(address.port()).await.unwrap_err();
    assert!(matches!(unsent, HttpError::NotSent(_)), "{unsent}");
    let unanswered = at(nothing.port).await.unwrap_err();
    assert!(matches!(unanswered, HttpError::NoAnswer(_)), "{unanswered}");
    assert_eq!(nothing.seen().len(), 1, "it was sent twice");
    let error = at(large.port).await.unwrap_err();
    assert_eq!(error, HttpError::TooLarge(RESPONSE_MAX as u32));
    assert_eq!(at(fits.port).await.unwrap().body.len(), RESPONSE_MAX);
}

#[tokio::test]
async fn a_silent_server_is_not_waited_for() {
    let server = Server::start(Answer::Silence).await;
    let client = client(here(), Authorities::default());
    let url = format!("http://cloud.test:{}/", server.port);
    let prepared = client.prepare(&grant(server.port, PRIVATE), &call("GET", &url, "u", 1));
    let soon = Duration::from_millis(50);
    let error = client.send(prepared.unwrap(), soon).await.unwrap_err();
    // On a busy machine, not even the connection comes about.
    assert!(error.to_string().ends_with("in time"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_changes_something_does_not_wait_long_for_a_connection() {
    let guard = Guard {
        resolver: Arc::new(Mute::default()),
        api_server: None,
    };
    let client = Client::new(Outside::guarded(vec![], Authorities::default(), guard), "p");
    let grants = grant(80, "");
    for (method, longest) in [("POST", CONNECT), ("GET", Duration::from_secs(60))] {
        let began = tokio::time::Instant::now();
        let error = send(&client, &grants, method, "http://cloud.test/").await;
        let error = error.unwrap_err();
        assert!(matches!(error, HttpError::NotSent(_)), "{method}: {error}");
        // A timer fires a little late.
        let late = began.elapsed().checked_sub(longest).unwrap();
        assert!(late < Duration::from_secs(1), "{method}: {late:?}");
    }
}

#[tokio::test]
async fn only_a_known_authority_is_trusted() {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["cloud.test".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    let server = Server::on("127.0.0.1:0", OK, Some(tls)).await;
    let grants = grants(&format!(
        r#"[{{"host":"cloud.test","port":{},"allowPrivate":true}}]"#,
        server.port
    ));
    let url = format!("https://cloud.test:{}/", server.port);
    let stranger = client(here(), Authorities::default());
    let error = send(&stranger, &grants, "GET", &url).await.unwrap_err();
    assert!(matches!(error, HttpError::NotSent(_)), "{error}");
    let pem = certificate.pem();
    let known = client(here(), Authorities::read(pem.as_bytes()).unwrap());
    assert_eq!(
        send(&known, &grants, "GET", &url).await.unwrap().status,
        200
    );
}

#[tokio::test]
async fn a_service_is_told_the_trace_and_the_api_server_is_not() {
    let client = |api_server: &str| {
        let guard = Guard {
            resolver: here(),
            api_server: Some(api_server.to_owned()),
        };
        let flags = vec!["cloud.test".parse().unwrap()];
        Client::new(Outside::guarded(flags, Authorities::default(), guard), "p")
    };
    let server = Server::start(OK).await;
    let grants = grant(server.port, PRIVATE);
    let url = format!("http://cloud.test:{}/", server.port);
    let told = async |client: &Client, own: Option<&str>| {
        let mut call = call("GET", &url, "u", 1);
        let headers = own.map(|own| ("Traceparent".to_owned(), own.to_owned()));
        call.request.headers.extend(headers);
        let mut prepared = client.prepare(&grants, &call).unwrap();
        let trace = TraceHeaders {
            parent: "00-host".to_owned(),
            state: Some("a=1".to_owned()),
        };
        client.tell_trace(&mut prepared, &trace);
        client.send(prepared, call.left).await.unwrap();
        let seen = server.seen().pop().unwrap_or_default();
        let lines = seen.lines().filter(|line| line.starts_with("trace"));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let elsewhere = client("api.test");
    let lines = told(&elsewhere, None).await;
    assert_eq!(lines, ["traceparent: 00-host", "tracestate: a=1"]);
    let lines = told(&elsewhere, Some("00-own")).await;
    assert_eq!(lines, ["traceparent: 00-own"]);
    assert!(told(&client("cloud.test"), None).await.is_empty());
}
