use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use super::*;
use crate::certificates::shown::provider;

const ASK: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Serves at most this many connections at once, and answers `/slow` with a body that never ends.
async fn start(https: Option<Https>, places: usize, head: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut limited = Limited::new("tests", listener, https).unwrap();
    limited.places = places;
    limited.head = head;
    let service = service_fn(|request: Request<Incoming>| async move {
        let first = Bytes::from_static(b"hello");
        let body = match request.uri().path() {
            "/slow" => {
                let begun = futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(first))]);
                let never = futures_util::stream::pending();
                StreamBody::new(begun.chain(never)).boxed_unsync()
            }
            _ => Full::new(first).boxed_unsync(),
        };
        Ok::<_, Infallible>(Response::new(body))
    });
    tokio::spawn(limited.serve(service));
    address
}

/// Asks on a new connection, and returns the whole answer.
async fn ask(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(ASK).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    said
}

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_out() {
    let address = start(None, 2, HEAD).await;
    let mut slow = TcpStream::connect(address).await.unwrap();
    let head = b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n";
    slow.write_all(head).await.unwrap();
    let mut begun = [0; 8];
    slow.read_exact(&mut begun).await.unwrap();
    // One that says nothing, and one that says little.
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut halting = TcpStream::connect(address).await.unwrap();
    halting.write_all(b"GET / HT").await.unwrap();
    let serving = async {
        for _ in 0..3 {
            let said = ask(address).await;
            assert!(said.starts_with("HTTP/1.1 200"), "{said}");
            assert!(said.contains("content-length: 5"), "{said}");
        }
        for ended in [&mut silent, &mut halting] {
            let _ = ended.read_to_end(&mut Vec::new()).await;
        }
    };
    // They would end by themselves after two minutes.
    let served = timeout(Duration::from_secs(60), serving).await;
    served.unwrap();
    // One whose answer goes on is busy, and stays.
    let ended = timeout(Duration::from_millis(1), slow.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_err(), "{ended:?}");
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let address = start(None, 2, Duration::from_millis(50)).await;
    let mut halting = TcpStream::connect(address).await.unwrap();
    halting.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
    let mut said = Vec::new();
    let ended = timeout(Duration::from_secs(60), halting.read_to_end(&mut said)).await;
    assert!(ended.is_ok(), "it stays for ever");
}

#[tokio::test]
async fn a_plain_client_keeps_no_other_one_out() {
    let https = Https::self_made().await.unwrap();
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(https.authority().as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let address = start(Some(https), 3, HEAD).await;

    // One that says nothing, and one that speaks no TLS.
    let _silent = TcpStream::connect(address).await.unwrap();
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(ASK).await.unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut client = connector.connect(name, stream).await.unwrap();
    assert_eq!(client.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    client.write_all(ASK).await.unwrap();
    client.flush().await.unwrap();
    let mut said = [0; 12];
    client.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"HTTP/1.1 200");
}
