//! An API server with one kind: its discovery, its watch, and merge patches that always succeed.

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio_rustls::TlsAcceptor;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

struct State {
    version: AtomicU64,
    events: broadcast::Sender<Bytes>,
    think: Duration,
    /// Locked by one write at a time; the memory that a write walks through, which evicts the
    /// caches.
    store: Mutex<Vec<u64>>,
}

/// Serves until the process is killed. Prints a kubeconfig with its address to stdout.
pub fn run(think: u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
        let mut tls = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], der)
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        println!(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}}}]\nusers: [{{name: u, user: {{token: abcdefghijklmnop}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n..."
        );
        let state = Arc::new(State {
            version: AtomicU64::new(1000),
            events: broadcast::Sender::new(4096),
            think: Duration::from_micros(think),
            store: Mutex::new(vec![1; 1 << 20]),
        });
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (acceptor, state) = (acceptor.clone(), state.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(move |request| answer(state.clone(), request));
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let _ = body.collect().await.unwrap();
    let name = head.uri.path().rsplit('/').next().unwrap_or_default();
    Ok(match (head.method.as_str(), name) {
        ("PATCH", name) => {
            think(&state);
            let version = state.version.fetch_add(1, Ordering::Relaxed) + 1;
            let event = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", object(name, version, true));
            let _ = state.events.send(event.into());
            let accept = head.headers.get("accept").map_or("", |accept| accept.to_str().unwrap());
            json(object(name, version, !accept.contains("PartialObjectMetadata")))
        }
        ("GET", "virtualmachines") => watch(&state),
        ("GET", "v1") => json(
            r#"{"kind":"APIResourceList","resources":[{"name":"virtualmachines","namespaced":true,"kind":"VirtualMachine"}]}"#.to_owned(),
        ),
        _ => json(r#"{"major":"1","minor":"36","gitVersion":"v1.36.3"}"#.to_owned()),
    })
}

fn json(body: String) -> Answer {
    Response::builder()
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)).boxed_unsync())
        .unwrap()
}

fn watch(state: &State) -> Answer {
    let end = format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{}\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}\n",
        state.version.load(Ordering::Relaxed)
    );
    let events = state.events.subscribe();
    let lines = stream::unfold(
        (Some(Bytes::from(end)), events),
        |(first, mut events)| async {
            let line = match first {
                Some(line) => line,
                None => events.recv().await.ok()?,
            };
            Some((Ok(Frame::data(line)), (None, events)))
        },
    );
    Response::new(StreamBody::new(lines).boxed_unsync())
}

/// Builds an object with 512 bytes of padding, and the managed fields of two managers.
fn object(name: &str, version: u64, whole: bool) -> String {
    let (kind, group) = if whole {
        ("VirtualMachine", "cloud.waibizi.com/v1")
    } else {
        ("PartialObjectMetadata", "meta.k8s.io/v1")
    };
    let spec = if whole {
        format!(
            r#","spec":{{"status":"running","padding":"{}"}}"#,
            "x".repeat(512)
        )
    } else {
        String::new()
    };
    format!(
        r#"{{"apiVersion":"{group}","kind":"{kind}","metadata":{{"creationTimestamp":"2026-11-21T12:00:00Z","generation":2,"managedFields":[{{"apiVersion":"cloud.waibizi.com/v1","fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{{".":{{}},"f:padding":{{}}}}}},"manager":"kubectl-create","operation":"Update","time":"2026-11-21T12:00:00Z"}},{{"apiVersion":"cloud.waibizi.com/v1","fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{{"f:status":{{}}}}}},"manager":"vmhost/vm/vm","operation":"Update","time":"2026-11-21T12:00:01Z"}}],"name":"{name}","namespace":"n","resourceVersion":"{version}","uid":"7d8f6b1e-5a57-4f66-9d5d-2f6f3a1f9f3e"}}{spec}}}
"#
    )
    .replace("\n", "")
}

/// Keeps a core and the caches busy.
fn think(state: &State) {
    if state.think.is_zero() {
        return;
    }
    let mut store = state.store.lock();
    let start = Instant::now();
    let mut at = 0;
    while start.elapsed() < state.think {
        for _ in 0..256 {
            at = (at * 5 + 8191) & (store.len() - 1);
            store[at] += 1;
        }
    }
    black_box(&*store);
}
