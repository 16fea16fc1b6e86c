//! An API server that is a function: VirtualMachines in memory, behind a `Connection`, without a
//! socket. For benchmarks and instruction counts, in which the work of a real server, the kernel
//! and the network would exceed what is measured.
//!
//! It supports what a host requests: the discovery of one group, a watch that begins with a list,
//! and JSON patches of one value. Do not test behaviour against it: `server` provides two servers
//! for that.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use tokio::sync::mpsc;
use vmhost_cluster::Connection;

const GROUP: &str = "/apis/cloud.waibizi.com/v1";
const RESOURCES: &str = r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cloud.waibizi.com/v1","resources":[{"name":"virtualmachines","singularName":"virtualmachine","namespaced":true,"kind":"VirtualMachine","verbs":["get","list","watch","patch"]}]}"#;

/// The namespace of all machines.
pub const NAMESPACE: &str = "default";

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Machines and their watches.
#[derive(Clone)]
pub struct InProcess(Arc<Mutex<State>>);

struct State {
    version: u64,
    machines: Vec<Machine>,
    watches: Vec<mpsc::UnboundedSender<Bytes>>,
    patches: usize,
    requests: usize,
}

struct Machine {
    status: &'static str,
    version: u64,
    padding: Arc<str>,
}

impl InProcess {
    /// Creates `count` machines with this status, each with `padding` bytes that no policy reads.
    pub fn new(count: usize, status: &'static str, padding: usize) -> Self {
        let padding: Arc<str> = padding_of(padding).into();
        let machines = (0..count).map(|number| Machine {
            status,
            version: number as u64 + 1,
            padding: padding.clone(),
        });
        Self(Arc::new(Mutex::new(State {
            version: count as u64,
            machines: machines.collect(),
            watches: Vec::new(),
            patches: 0,
            requests: 0,
        })))
    }

    /// Returns a connection to the server. Cheap. Does not support paged lists.
    pub fn connection(&self) -> Connection {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        Connection::from_client(kube::Client::new(service, NAMESPACE), "in this process")
            .with_streaming_lists(true)
    }

    /// Returns how many patches were applied.
    pub fn patches(&self) -> usize {
        self.lock().patches
    }

    /// Returns how many requests arrived, including refused ones: the server does not store Events.
    pub fn requests(&self) -> usize {
        self.lock().requests
    }

    /// Returns the number of its watches.
    pub fn watches(&self) -> usize {
        self.lock()
            .watches
            .iter()
            .filter(|watch| !watch.is_closed())
            .count()
    }

    /// Sets the status of all machines, and sends a change of each to the watches.
    pub fn set_all(&self, status: &'static str) {
        let mut state = self.lock();
        for number in 0..state.machines.len() {
            state.change(number, status);
        }
    }

    async fn answer(&self, request: Request<Body>) -> Result<Answer, std::io::Error> {
        self.lock().requests += 1;
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(std::io::Error::other)?;
        let path = head.uri.path();
        let watches = head
            .uri
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let answer = match head.method {
            Method::GET if path == GROUP => whole(StatusCode::OK, RESOURCES.to_owned()),
            Method::GET if watches => self.watch(),
            Method::PATCH => self
                .patch(path, &body)
                .unwrap_or_else(|error| refusal(400, &error.to_string())),
            _ => refusal(404, path),
        };
        Ok(answer)
    }

    fn watch(&self) -> Answer {
        let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
        let mut state = self.lock();
        for number in 0..state.machines.len() {
            // The receiver is still in this function, so it cannot be closed.
            let _ = sender.send(state.line("ADDED", number));
        }
        let bookmark = format!(
            "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"VirtualMachine\",\"apiVersion\":\"cloud.waibizi.com/v1\",\"metadata\":{{\"resourceVersion\":\"{}\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}\n",
            state.version
        );
        let _ = sender.send(bookmark.into());
        state.watches.push(sender);
        let lines = stream::unfold(receiver, |mut receiver| async {
            let line = receiver.recv().await?;
            Some((Ok(http_body::Frame::data(line)), receiver))
        });
        Response::new(StreamBody::new(lines).boxed_unsync())
    }

    /// Applies a JSON patch whose tests match; it replaces the status.
    fn patch(&self, path: &str, body: &[u8]) -> Result<Answer> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let number: usize = name
            .strip_prefix("vm-")
            .and_then(|number| number.parse().ok())
            .context("no machine of this name")?;
        let body = std::str::from_utf8(body)?;
        anyhow::ensure!(
            body.contains(r#""/spec/status","value":"complete""#),
            "not the patch of the policy: {body}"
        );
        let mut state = self.lock();
        anyhow::ensure!(number < state.machines.len(), "no machine of this name");
        state.change(number, "complete");
        state.patches += 1;
        let mut text = String::with_capacity(1024);
        state.object(number, &mut text);
        Ok(whole(StatusCode::OK, text))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn change(&mut self, number: usize, status: &'static str) {
        self.version += 1;
        self.machines[number].status = status;
        self.machines[number].version = self.version;
        let line = self.line("MODIFIED", number);
        self.watches
            .retain(|watch| watch.send(line.clone()).is_ok());
    }

    fn line(&self, kind: &str, number: usize) -> Bytes {
        let mut text = String::with_capacity(1024 + self.machines[number].padding.len());
        // A write to memory cannot fail.
        let _ = write!(text, "{{\"type\":\"{kind}\",\"object\":");
        self.object(number, &mut text);
        text.push_str("}\n");
        text.into()
    }

    /// Writes an object as kube-apiserver does, including field owners.
    fn object(&self, number: usize, text: &mut String) {
        let Machine {
            status,
            version,
            padding,
        } = &self.machines[number];
        let _ = write!(
            text,
            r#"{{"apiVersion":"cloud.waibizi.com/v1","kind":"VirtualMachine","metadata":{{"annotations":{{"padding":"{padding}"}},"creationTimestamp":"2026-11-21T10:00:00Z","generation":1,"managedFields":[{{"apiVersion":"cloud.waibizi.com/v1","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{".":{{}},"f:padding":{{}}}}}},"f:spec":{{".":{{}},"f:disk":{{}},"f:image":{{}},"f:memory":{{}},"f:name":{{}},"f:status":{{}},"f:uuid":{{}}}}}},"manager":"kubectl-create","operation":"Update","time":"2026-11-21T10:00:00Z"}}],"name":"vm-{number:06}","namespace":"{NAMESPACE}","resourceVersion":"{version}","uid":"2c4789b2-30f2-4d31-ab71-{number:012x}"}},"spec":{{"disk":500,"image":"Centos-7.9","memory":4096,"name":"waibizi-wx-virtual-machine","status":"{status}","uuid":"2c4789b2-30f2-4d31-ab71-ca115ea8c199"}}}}"#
        );
    }
}

fn whole(code: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *answer.status_mut() = code;
    answer
}

fn refusal(code: u16, message: &str) -> Answer {
    let status = serde_json::json!({"kind":"Status","apiVersion":"v1","status":"Failure","code":code,"message":message});
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    whole(code, status.to_string())
}

/// Returns a text that does not compress well.
fn padding_of(length: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    (0..length).map(|_| random.alphanumeric()).collect()
}
