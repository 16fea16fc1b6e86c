use super::*;
use http::Method;
use http_body_util::BodyExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A scripted server: on each connection it answers each request with these bytes, and reports what
/// it read.
struct Server {
    address: std::net::SocketAddr,
    connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<String>>>,
}

/// Closes the connection after its text.
const CLOSE: &str = "close";

impl Server {
    async fn start(answers: Vec<Vec<&'static str>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            seen: Arc::default(),
        };
        let (connections, seen) = (server.connections.clone(), server.seen.clone());
        tokio::spawn(async move {
            for answers in answers {
                let (stream, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, answers, seen.clone()));
            }
        });
        server
    }

    /// Builds a client of this server, whose URL has this path.
    fn client(&self, path: &str, headers: &[(&'static str, &'static str)]) -> Direct {
        let peer = Peer {
            server: format!("http://{}{path}", self.address).parse().unwrap(),
            tls_name: None,
            insecure: false,
            guarded: false,
            proxy: None,
        };
        let links = Links::new(&peer, &Credentials::default()).unwrap();
        let headers = headers.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        Direct::new(&peer, headers.collect(), Arc::new(links)).unwrap()
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(mut stream: TcpStream, answers: Vec<&str>, seen: Arc<Mutex<Vec<String>>>) {
    for answer in answers {
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n{}") && !request.ends_with("\r\n\r\n") {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).await.unwrap();
            if read == 0 {
                return;
            }
            request.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        }
        seen.lock().push(request);
        let (text, close) = match answer.strip_suffix(CLOSE) {
            Some(text) => (text, true),
            None => (answer, false),
        };
        stream.write_all(text.as_bytes()).await.unwrap();
        if close {
            return;
        }
    }
    // Until the client closes the connection.
    let _ = stream.read(&mut [0]).await;
}

fn patch() -> Request<Bytes> {
    crate::api::request(
        Method::PATCH,
        "/a?b=c",
        Some("application/json"),
        "{}".into(),
    )
    .unwrap()
}

async fn text(answer: Response<Body>) -> String {
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn a_connection_is_used_again_once_its_answer_is_read() {
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3\r\n, k\r\n0\r\n\r\n";
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    let server = Server::start(vec![vec![OK, chunked, empty, OK, OK], vec![OK]]).await;
    let headers = [
        ("authorization", "Bearer secret"),
        ("impersonate-group", "x"),
        ("impersonate-group", "y"),
    ];
    let client = server.client("", &headers);
    for expect in ["ok", "ok, k", "", "ok"] {
        assert_eq!(text(client.send(patch()).await.unwrap()).await, expect);
    }
    assert_eq!(server.connections(), 1);
    // An unread answer keeps its connection.
    let unread = client.send(patch()).await.unwrap();
    assert_eq!(text(client.send(patch()).await.unwrap()).await, "ok");
    assert_eq!(server.connections(), 2);
    drop(unread);

    let seen = server.seen.lock()[0].to_lowercase();
    let host = format!("host: {}\r\n", server.address);
    for part in [
        "patch /a?b=c http/1.1\r\n",
        &host,
        "authorization: bearer secret\r\n",
        "impersonate-group: x\r\n",
        "impersonate-group: y\r\n",
        "content-length: 2\r\n",
    ] {
        assert!(seen.contains(part), "{part:?} is not in {seen}");
    }
}

#[tokio::test]
async fn a_request_as_another_user_has_no_group_of_the_kubeconfigs_user() {
    let server = Server::start(vec![vec![OK]]).await;
    let headers = [
        ("authorization", "Bearer secret"),
        ("impersonate-user", "admin"),
        ("impersonate-group", "system:masters"),
    ];
    let client = server.client("", &headers);
    let mut request = patch();
    let account = HeaderValue::from_static("system:serviceaccount:a:b");
    request.headers_mut().insert(IMPERSONATE_USER, account);
    assert_eq!(text(client.send(request).await.unwrap()).await, "ok");
    let seen = server.seen.lock()[0].to_lowercase();
    assert!(
        seen.contains("impersonate-user: system:serviceaccount:a:b\r\n"),
        "{seen}"
    );
    assert!(seen.contains("authorization: bearer secret\r\n"), "{seen}");
    assert!(
        !seen.contains("admin") && !seen.contains("masters"),
        "{seen}"
    );
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_costs_nothing() {
    let closing = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokclose";
    let server = Server::start(vec![vec![closing], vec![OK]]).await;
    let client = server.client("", &[]);
    assert_eq!(text(client.send(patch()).await.unwrap()).await, "ok");
    // The connection's end arrives some time after the answer.
    let open = || {
        let mut idle = client.links.idle.0.lock();
        let mut links = idle.links.iter_mut();
        links.any(|(_, link)| !link.has_ended())
    };
    while open() {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(client.send(patch()).await.unwrap()).await, "ok");
    assert_eq!(server.seen.lock().len(), 2, "and nothing is sent twice");
}

#[tokio::test]
async fn what_was_sent_is_told_from_what_was_not() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nokclose";
    let server = Server::start(vec![
        vec!["close"],
        vec![cut],
        vec!["nonsense\r\n\r\nclose"],
    ])
    .await;
    let client = server.client("", &[]);
    let error = client.send(patch()).await.err();
    assert!(matches!(error, Some(Error::Network(_))), "{error:?}");
    let body = client.send(patch()).await.unwrap().into_body();
    assert!(body.collect().await.is_err());
    let error = client.send(patch()).await.err();
    assert!(matches!(error, Some(Error::Network(_))), "{error:?}");
    assert_eq!(server.connections(), 3);

    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let client = Server { address, ..server };
    let client = client.client("", &[]);
    let error = client.send(patch()).await.err();
    assert!(matches!(error, Some(Error::NotSent(_))), "{error:?}");
}

#[tokio::test]
async fn the_path_of_the_server_stands_before_all_others() {
    let server = Server::start(vec![vec![OK]]).await;
    let client = server.client("/k8s/clusters/c/", &[]);
    assert_eq!(text(client.send(patch()).await.unwrap()).await, "ok");
    let seen = server.seen.lock()[0].clone();
    assert!(
        seen.starts_with("PATCH /k8s/clusters/c/a?b=c HTTP/1.1\r\n"),
        "{seen}"
    );
}

#[tokio::test]
async fn links_that_are_replaced_close_when_their_answers_are_read() {
    let server = Server::start(vec![vec![OK], vec![OK]]).await;
    let client = server.client("", &[]);
    let pool = client.links.idle.clone();
    let answer = client.send(patch()).await.unwrap();
    drop(client);
    assert_eq!(text(answer).await, "ok", "what is under way ends");
    assert!(pool.0.lock().links.is_empty(), "nobody would take it");
}

#[tokio::test]
async fn connections_that_were_idle_for_long_are_closed() {
    let server = Server::start(vec![vec![OK]]).await;
    let client = server.client("", &[]);
    assert_eq!(text(client.send(patch()).await.unwrap()).await, "ok");
    let old = Instant::now().checked_sub(IDLE).unwrap();
    let pool = &client.links.idle;
    assert!(
        pool.0.lock().tended && pool.0.lock().close_old(),
        "it is young"
    );
    pool.0.lock().links[0].0 = old;
    assert!(!pool.0.lock().close_old(), "the last one has gone");
    assert!(!pool.0.lock().tended && pool.0.lock().links.is_empty());
}
