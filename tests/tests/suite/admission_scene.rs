//! A namespace with webhooks and policies of its own, for tests of admission on both servers.

use anyhow::{Result, bail};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::net::{self, JSON, MERGE};
use vmhost_tests::server::TestServer;

/// The path of the kinds that configure admission.
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A namespace whose requests a test's own webhooks and policies get.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// The paths of what the test created for the whole cluster, in this order.
    pub(crate) configurations: Vec<String>,
}

impl Scene {
    /// Creates a namespace whose name begins so.
    pub(crate) async fn of(server: &TestServer, prefix: &str) -> Result<Scene> {
        Ok(Scene {
            client: server.client().await?,
            namespace: server.namespace(prefix).await?,
            configurations: Vec::new(),
        })
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value)> {
        let media = match (&method, body) {
            (_, Value::Null) => "",
            (&Method::PATCH, _) => MERGE,
            _ => JSON,
        };
        net::send(&self.client, method, path, media, body).await
    }

    /// Like [`Scene::send`], of a request that is carried out.
    pub(crate) async fn ok(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        match self.send(method.clone(), path, body).await? {
            (200..=299, value) => Ok(value),
            (code, value) => bail!("{method} {path}: {code} {value}"),
        }
    }

    /// Returns the path of the ConfigMaps of the namespace.
    pub(crate) fn maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    /// Returns the path of an object that configures admission.
    pub(crate) fn configuration(plural: &str, name: &str) -> String {
        format!("{GROUP}/{plural}/{name}")
    }

    /// Creates an object that configures admission, and returns its name.
    pub(crate) async fn configure(&mut self, plural: &str, mut object: Value) -> Result<String> {
        let name = format!("{}-{}", self.namespace, self.configurations.len());
        object["metadata"] = json!({ "name": name });
        self.ok(Method::POST, &format!("{GROUP}/{plural}"), &object)
            .await?;
        self.configurations
            .push(Scene::configuration(plural, &name));
        Ok(name)
    }

    /// Returns a selector of the namespace.
    pub(crate) fn selector(&self) -> Value {
        json!({ "matchLabels": { "kubernetes.io/metadata.name": self.namespace } })
    }

    /// Deletes what the test created for the whole cluster.
    pub(crate) async fn end(self) -> Result<()> {
        for path in &self.configurations {
            self.ok(Method::DELETE, path, &Value::Null).await?;
        }
        Ok(())
    }
}
