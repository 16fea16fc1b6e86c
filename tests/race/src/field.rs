//! The environment of the race: the API server, one namespace, and its VirtualMachines.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, TryStreamExt};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::real::{ADMIN, Options, RealServer};
use crate::wait::{eventually, eventually_within};
use crate::{assets, kubeconfig};

/// The namespace of all objects.
pub const NAMESPACE: &str = "race";
const CRD: &str = include_str!("../../../plugins/vm/manifests/crd.yaml");
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CRD_NAME: &str = "virtualmachines.cloud.waibizi.com";
/// The number of requests in flight when many objects are created: as fast as the server can.
const AT_ONCE: usize = 16;

/// How long deleting 20,000 objects and as many Events may take on a busy server.
const EMPTY: Duration = Duration::from_secs(300);

/// The API server and a client for it.
pub struct Field {
    server: RealServer,
    client: Client,
}

/// Returns the path of the VirtualMachines.
pub fn path() -> String {
    format!("/apis/cloud.waibizi.com/v1/namespaces/{NAMESPACE}/virtualmachines")
}

/// Returns the name of the VM with this number.
pub fn name(number: usize) -> String {
    format!("vm-{number:05}")
}

impl Field {
    /// Starts the server and installs the CRD.
    pub async fn open() -> Result<Field> {
        let assets = assets::find().context("no kube-apiserver")?;
        // The default is one worker, which would empty the field more slowly than a race takes.
        let flags = vec!["--delete-collection-workers=8".into()];
        let options = Options {
            flags,
            users: Vec::new(),
        };
        let server = RealServer::start(assets, options).await?;
        let client = kubeconfig::client(&server.kubeconfig(ADMIN)).await?;
        let field = Field { server, client };
        field.install().await?;
        Ok(field)
    }

    /// Returns the kubeconfig of the entrants.
    pub fn kubeconfig(&self) -> PathBuf {
        self.server.kubeconfig(ADMIN)
    }

    /// Returns the client of the runner.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the server's version.
    pub async fn version(&self) -> Result<String> {
        let answer = self.call(Method::GET, "/version", "", Vec::new()).await?;
        let answer: Value = serde_json::from_slice(&answer).context("reading the version")?;
        Ok(answer["gitVersion"].as_str().unwrap_or("?").into())
    }

    async fn install(&self) -> Result<()> {
        let namespace = json!({ "metadata": { "name": NAMESPACE } });
        self.post("/api/v1/namespaces", &namespace).await?;
        let crd: Value = serde_yaml_ng::from_str(CRD).context("reading crd.yaml")?;
        self.post(CRDS, &crd).await?;
        eventually("VirtualMachines are served", async || {
            self.call(Method::GET, &format!("{}?limit=1", path()), "", Vec::new())
                .await
                .map(Some)
        })
        .await?;
        Ok(())
    }

    /// Deletes all objects and their Events, and compacts etcd.
    pub async fn empty(&self) -> Result<()> {
        let events = format!("/api/v1/namespaces/{NAMESPACE}/events");
        for path in [path(), events] {
            eventually_within(EMPTY, "the field is empty", async || {
                self.call(Method::DELETE, &path, "", Vec::new()).await?;
                let list = format!("{path}?limit=1");
                let list = self.call(Method::GET, &list, "", Vec::new()).await?;
                let list: Value = serde_json::from_slice(&list).context("reading a list")?;
                let empty = list["items"].as_array().is_some_and(Vec::is_empty);
                Ok(empty.then_some(()))
            })
            .await?;
        }
        self.server.compact().await
    }

    /// Creates the VMs with these numbers, many at once.
    pub async fn create(&self, numbers: Range<usize>, bytes: usize, status: &str) -> Result<()> {
        futures_util::stream::iter(numbers)
            .map(|number| async move { self.create_one(&name(number), bytes, status).await })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Creates one VM. For a moment after a change of its definition, a kind is "(re)initializing".
    pub async fn create_one(&self, name: &str, bytes: usize, status: &str) -> Result<()> {
        let vm = vm(name, bytes, status);
        if self.post(&path(), &vm).await.is_ok() {
            return Ok(());
        }
        eventually("the VM is created", async || {
            self.post(&path(), &vm).await.map(Some)
        })
        .await
    }

    /// Changes a VM as a user.
    pub async fn change(&self, name: &str, spec: Value) -> Result<()> {
        let path = format!("{}/{name}", path());
        let patch = serde_json::to_vec(&json!({ "spec": spec }))?;
        let merge = "application/merge-patch+json";
        self.call(Method::PATCH, &path, merge, patch).await?;
        Ok(())
    }

    /// Deletes one VM.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let path = format!("{}/{name}", path());
        self.call(Method::DELETE, &path, "", Vec::new()).await?;
        Ok(())
    }

    /// Makes a harmless change to the definition: the server ends every watch of the kind, and
    /// refuses older versions in new watches.
    pub async fn end_watches(&self, text: &str) -> Result<()> {
        let place = "/spec/versions/0/schema/openAPIV3Schema/description";
        let patch = json!([{ "op": "add", "path": place, "value": text }]);
        let (path, patch) = (format!("{CRDS}/{CRD_NAME}"), serde_json::to_vec(&patch)?);
        let kind = "application/json-patch+json";
        self.call(Method::PATCH, &path, kind, patch).await?;
        Ok(())
    }

    async fn post(&self, path: &str, object: &Value) -> Result<()> {
        let body = serde_json::to_vec(object)?;
        self.call(Method::POST, path, "application/json", body)
            .await?;
        Ok(())
    }

    async fn call(&self, verb: Method, path: &str, kind: &str, body: Vec<u8>) -> Result<Vec<u8>> {
        let what = format!("{verb} {path}");
        let mut request = Request::builder().method(verb).uri(path);
        if !kind.is_empty() {
            request = request.header("Content-Type", kind);
        }
        let request = request.body(Body::from(body))?;
        let answer = self
            .client
            .send(request)
            .await
            .with_context(|| what.clone())?;
        let status = answer.status();
        let body = answer.into_body().collect().await;
        let body = body.with_context(|| what.clone())?.to_bytes();
        if !status.is_success() && status != StatusCode::CONFLICT {
            bail!("{what}: {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body.to_vec())
    }
}

/// Returns a VM with about `bytes` of additional content, which is random so that compression gains
/// nothing.
fn vm(name: &str, bytes: usize, status: &str) -> Value {
    let padding: String = std::iter::repeat_with(fastrand::alphanumeric)
        .take(bytes)
        .collect();
    json!({
        "apiVersion": "cloud.waibizi.com/v1",
        "kind": "VirtualMachine",
        "metadata": { "name": name },
        "spec": {
            "uuid": "2c4789b2-30f2-4d31-ab71-ca115ea8c199",
            "name": "waibizi-wx-virtual-machine",
            "image": padding,
            "memory": 4096,
            "disk": 500,
            "status": status,
        },
    })
}
