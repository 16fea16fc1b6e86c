//! A host that serves the webhooks of the guest `reviewer`, and the objects that it is asked about:
//! ConfigMaps with a label that names the plugin, so that no other test's objects are reviewed.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::guests::{self, PolicyFile};
use crate::host::{self, Host, HostCommand};
use crate::net;
use crate::server::TestServer;
use crate::wait::eventually;

/// The label by which the webhooks select objects.
const LABEL: &str = "vmhost.test/reviewed-by";

/// Where the API server finds a host's webhooks.
#[derive(Clone, Copy, Debug)]
pub struct Door(u16);

/// A plugin of the guest `reviewer`, its objects, and the client that writes them.
pub struct Reviewer {
    /// The plugin's name, which no other test has.
    pub name: String,
    /// The namespace of its objects.
    pub namespace: String,
    /// An administrator.
    pub client: Client,
    /// The component.
    pub policy: PolicyFile,
    kubeconfig: std::path::PathBuf,
}

/// An answer of the API server.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The object, or a Status.
    pub body: Value,
    /// What the webhooks warned of.
    pub warnings: Vec<String>,
}

impl Door {
    /// A port of this machine that nobody has.
    pub fn new() -> Result<Door> {
        let [port] = net::free_ports()?;
        Ok(Door(port))
    }

    /// The address.
    pub fn addr(self) -> SocketAddr {
        net::loopback(self.0)
    }

    /// The flags of a host that listens here.
    pub fn flags(self) -> [String; 2] {
        ["--webhook-bind-address".to_owned(), self.addr().to_string()]
    }

    /// The address, as the API server is told.
    pub fn url(self) -> String {
        format!("https://{}", self.addr())
    }
}

/// A rule about ConfigMaps.
pub fn rule(operations: &[&str]) -> Value {
    json!({
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
        "operations": operations,
    })
}

/// Returns the description of a plugin with one webhook, `checks`, for the creation of its objects.
pub fn checks(plugin: &str) -> Value {
    json!({
        "apiVersion": "vmhost/v1",
        "name": plugin,
        "version": "1",
        "webhooks": [{
            "name": "checks",
            "type": "validating",
            "rules": [rule(&["CREATE"])],
            "objectSelector": Reviewer::selector(plugin),
        }],
    })
}

/// Returns the description of a plugin with a validating and a mutating webhook. No API server
/// calls them.
pub fn uncalled(plugin: &str) -> Value {
    let webhook = |kind: &str| {
        json!({
            "name": kind,
            "type": kind,
            "rules": [{
                "apiGroups": ["storage.k8s.io"], "apiVersions": ["v1"],
                "resources": ["storageclasses"], "operations": ["CREATE"],
            }],
        })
    };
    json!({
        "apiVersion": "vmhost/v1",
        "name": plugin,
        "version": "1",
        "webhooks": [webhook("validating"), webhook("mutating")],
    })
}

impl Reviewer {
    /// A plugin with a new name. `describe` makes its description of that name.
    pub async fn new(server: &TestServer, describe: impl Fn(&str) -> Value) -> Result<Reviewer> {
        let name = format!("rv-{:08x}", fastrand::u32(..));
        let component = component(&describe(&name))?;
        Ok(Reviewer {
            policy: PolicyFile::new(&name, &component)?,
            namespace: server.namespace(&name).await?,
            client: server.client().await?,
            kubeconfig: server.kubeconfig(),
            name,
        })
    }

    /// A host that serves the plugin at a door, and registers it there.
    pub fn host(&self, door: Door) -> Result<HostCommand> {
        Ok(self.unregistered()?.args(door.flags()).args([
            "--webhook-url",
            &door.url(),
            "--register-webhooks",
        ]))
    }

    /// A host that runs the plugin, and serves nothing.
    pub fn unregistered(&self) -> Result<HostCommand> {
        Ok(host::on(&self.kubeconfig)?
            .namespace(&self.namespace)
            .plugin(self.policy.path())
            .args(["--call-timeout", "2s"]))
    }

    /// Starts [`Reviewer::host`], and waits until the webhooks are registered.
    pub async fn start(&self, door: Door) -> Result<Host> {
        let host = self.host(door)?.ready().await?;
        self.until_registered(&host).await?;
        Ok(host)
    }

    /// Waits until a host has registered the webhooks.
    pub async fn until_registered(&self, host: &Host) -> Result<()> {
        let line = format!("registered the webhooks of {}", self.name);
        host.wait_for_line(&line).await.map(drop)
    }

    /// Waits until the API server asks the webhooks: it reads its configurations now and then.
    pub async fn until_asked(&self) -> Result<()> {
        let no = json!({"allowed": false, "status": {"message": "asked", "code": 403}});
        eventually("the API server asks the webhooks", async || {
            let asked = self.try_out("asked", no.clone()).await?;
            Ok((asked.code == 403).then_some(()))
        })
        .await
    }

    /// Creates a ConfigMap that orders the webhook `checks` to answer so, as a dry run.
    pub async fn try_out(&self, name: &str, order: Value) -> Result<Answer> {
        self.dry_run(name, &[("checks", order)]).await
    }

    /// Like [`Reviewer::create`], as a dry run.
    pub async fn dry_run(&self, name: &str, orders: &[(&str, Value)]) -> Result<Answer> {
        let path = format!("{}?dryRun=All", self.path(""));
        let object = self.object(name, orders);
        self.send(Method::POST, &path, &object).await
    }

    /// Creates a ConfigMap with orders, each for a webhook.
    pub async fn create(&self, name: &str, orders: &[(&str, Value)]) -> Result<Answer> {
        let object = self.object(name, orders);
        self.send(Method::POST, &self.path(""), &object).await
    }

    /// A ConfigMap with orders.
    pub fn object(&self, name: &str, orders: &[(&str, Value)]) -> Value {
        let mut annotations = json!({});
        for (webhook, order) in orders {
            annotations[format!("vmhost.test/{webhook}")] = json!(order.to_string());
        }
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "labels": { LABEL: self.name },
                "annotations": annotations,
            },
            "data": { "word": name },
        })
    }

    /// The path of a ConfigMap, or of all.
    pub fn path(&self, name: &str) -> String {
        let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
        match name {
            "" => path,
            name => format!("{path}/{name}"),
        }
    }

    /// Sends a request with JSON, or without a body for `Null`.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Answer> {
        let body = match body {
            Value::Null => Vec::new(),
            body => serde_json::to_vec(body)?,
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body))?;
        let response = self.client.send(request).await?;
        let warnings = response.headers().get_all(header::WARNING).iter();
        let warnings =
            warnings.map(|warning| String::from_utf8_lossy(warning.as_bytes()).into_owned());
        let (code, warnings) = (
            response.status().as_u16(),
            warnings.collect::<Vec<String>>(),
        );
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok(Answer {
            code,
            body: serde_json::from_slice(&bytes).context("reading an answer")?,
            warnings,
        })
    }

    /// Replaces the plugin by one with another description.
    pub fn swap(&self, description: &Value) -> Result<()> {
        self.policy
            .swap(&component(description)?, guests::Way::Rename)
    }

    /// The label selector of a webhook that reviews this test's objects.
    pub fn selector(name: &str) -> Value {
        json!({ "matchLabels": { LABEL: name } })
    }
}

impl Answer {
    /// Checks that the request was carried out.
    pub fn expect_done(&self) -> Result<()> {
        ensure!(self.code < 300, "it was not carried out: {self:?}");
        Ok(())
    }

    /// Checks that the request was refused with this code, and with a text that contains these
    /// words.
    pub fn expect_refused(&self, code: u16, words: &[&str]) -> Result<()> {
        let message = self.body["message"].as_str().unwrap_or_default();
        ensure!(
            self.code == code && words.iter().all(|word| message.contains(word)),
            "it was not refused with {code} and {words:?}: {self:?}"
        );
        Ok(())
    }

    /// Returns whether a warning contains this text.
    pub fn warns(&self, text: &str) -> bool {
        self.warnings.iter().any(|warning| warning.contains(text))
    }
}

/// The guest with this description.
pub fn component(description: &Value) -> Result<Vec<u8>> {
    guests::described(guests::REVIEWER, &description.to_string())
}

/// The output of a command of the same plugin, such as `audit`, on its cluster.
pub async fn command(
    kubeconfig: &Path,
    command: &str,
    file: &Path,
    flags: &[&str],
) -> Result<host::Exit> {
    let started = host::bare()?.arg(command).arg(file).args(flags);
    started.arg("--kubeconfig").arg(kubeconfig).run().await
}
