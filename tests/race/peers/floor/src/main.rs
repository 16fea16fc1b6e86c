//! The floor: the cost of the same traffic with only kube's HTTP client. It reads one watch as
//! lines and sends one merge patch per object. It parses nothing, and finds a name by searching the
//! line. Without a store, a queue and retries it is no controller, but no controller on this client
//! can cost less.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use memchr::memmem;
use tokio::sync::{Mutex, mpsc};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Names = Arc<Mutex<mpsc::UnboundedReceiver<Bytes>>>;

const COMPLETE: &str = r#"{"spec":{"status":"complete"}}"#;

/// Sends the patches, one at a time.
async fn worker(client: Client, path: String, names: Names) {
    loop {
        let name = names.lock().await.recv().await;
        let Some(name) = name else { return };
        if let Err(error) = patch(&client, &path, &name).await {
            eprintln!("{}: {error}", String::from_utf8_lossy(&name));
        }
    }
}

async fn patch(client: &Client, path: &str, name: &[u8]) -> Result<()> {
    let name = std::str::from_utf8(name)?;
    let request = Request::patch(format!("{path}/{name}"))
        .header("Content-Type", "application/merge-patch+json")
        .header("Accept", "application/json")
        .body(Body::from(Bytes::from_static(COMPLETE.as_bytes())))?;
    let answer = client.send(request).await?;
    let status = answer.status();
    // Reads and discards the whole body, so that the connection can be reused.
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    if !status.is_success() {
        return Err(format!("the server answers {status}").into());
    }
    Ok(())
}

/// Runs one watch, including the initial list, until the server ends it.
async fn watch(client: &Client, path: &str, names: &mpsc::UnboundedSender<Bytes>) -> Result<()> {
    let query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let request = Request::get(format!("{path}?{query}&timeoutSeconds=600"))
        .header("Accept", "application/json")
        .body(Body::empty())?;
    let answer = client.send(request).await?;
    if !answer.status().is_success() {
        return Err(format!("the server answers {}", answer.status()).into());
    }
    let mut body = answer.into_body();
    let mut buffer = BytesMut::new();
    let find = Finders::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        let mut seen = buffer.len();
        buffer.extend_from_slice(&data);
        while let Some(end) = memchr::memchr(b'\n', &buffer[seen..]) {
            let line = buffer.split_to(seen + end + 1).freeze();
            seen = 0;
            find.line(&line, names)?;
        }
    }
    Ok(())
}

/// The search patterns for a line. The server sorts the keys of custom resources, so the first
/// `"name"` is the object's own.
struct Finders {
    creating: memmem::Finder<'static>,
    name: memmem::Finder<'static>,
    listed: memmem::Finder<'static>,
}

impl Finders {
    fn new() -> Finders {
        Finders {
            creating: memmem::Finder::new(r#""status":"creating""#),
            name: memmem::Finder::new(r#""name":""#),
            listed: memmem::Finder::new(r#""k8s.io/initial-events-end":"true""#),
        }
    }

    fn line(&self, line: &Bytes, names: &mpsc::UnboundedSender<Bytes>) -> Result<()> {
        if line.starts_with(br#"{"type":"BOOKMARK""#) {
            if self.listed.find(line).is_some() {
                println!("race: synced");
            }
        } else if line.starts_with(br#"{"type":"ERROR""#) {
            return Err(String::from_utf8_lossy(line).into());
        } else if self.creating.find(line).is_some()
            && !line.starts_with(br#"{"type":"DELETED""#)
            && let Some(at) = self.name.find(line)
        {
            let start = at + self.name.needle().len();
            if let Some(end) = memchr::memchr(b'"', &line[start..]) {
                names.send(Bytes::copy_from_slice(&line[start..start + end]))?;
            }
        }
        Ok(())
    }
}

/// Returns a flag. kube reads `--kubeconfig` through the environment.
fn flag(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

// One thread: more threads would only wake each other.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let namespace = flag("--namespace").unwrap_or_else(|| "default".into());
    let workers: usize = flag("--workers").map_or(Ok(4), |text| text.parse())?;
    let client = Client::try_default().await?;
    let path = format!("/apis/cloud.waibizi.com/v1/namespaces/{namespace}/virtualmachines");
    let (sender, receiver) = mpsc::unbounded_channel();
    let names = Arc::new(Mutex::new(receiver));
    for _ in 0..workers {
        tokio::spawn(worker(client.clone(), path.clone(), names.clone()));
    }
    loop {
        if let Err(error) = watch(&client, &path, &sender).await {
            eprintln!("the watch ended: {error}");
        }
        // The same delay as kube-runtime's first retry.
        tokio::time::sleep(Duration::from_millis(800)).await;
    }
}
