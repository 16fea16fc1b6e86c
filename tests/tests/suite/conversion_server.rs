//! Conversion by the API server: both servers ask a webhook wherever the stored version of an
//! object is not the version of the request.

use anyhow::{Context, Result, bail, ensure};
use futures_util::AsyncBufReadExt;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;
use vmhost_tests::webhook::{Webhook, converted};
use vmhost_tests::{both_servers, net};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A kind of a test's own, stored in v1 (`spec.size`) and also served in v2 (`spec.disk.size`).
struct Disks {
    client: Client,
    group: String,
    namespace: String,
}

/// Moves the size to where the other version has it.
fn convert(mut object: Value, desired: &str) -> Result<Value, String> {
    if object["metadata"]["name"] == "broken" {
        return Err("this one is broken".to_owned());
    }
    object["spec"] = match desired.ends_with("/v2") {
        true => json!({ "disk": { "size": object["spec"]["size"] } }),
        false => json!({ "size": object["spec"]["disk"]["size"] }),
    };
    object["apiVersion"] = json!(desired);
    // A webhook cannot change these.
    object["metadata"]["finalizers"] = json!(["test.io/added"]);
    object["metadata"]["annotations"]["test.io/converted"] = json!(desired);
    Ok(object)
}

impl Disks {
    async fn install(server: &TestServer, webhook: &Webhook) -> Result<Disks> {
        let disks = Disks {
            client: server.client().await?,
            group: format!("conversion-{:08x}.test.io", fastrand::u32(..)),
            namespace: server.namespace("conversion").await?,
        };
        let version = |name: &str, storage: bool, spec: Value| {
            json!({
                "name": name, "served": true, "storage": storage,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": spec },
                    "status": { "type": "object", "properties": { "phase": { "type": "string" } } },
                } } },
            })
        };
        let size = json!({ "type": "integer" });
        let inner = json!({ "disk": { "type": "object", "properties": { "size": size } } });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("disks.{}", disks.group) },
            "spec": {
                "group": disks.group,
                "scope": "Namespaced",
                "names": { "kind": "Disk", "plural": "disks" },
                "versions": [
                    version("v1", true, json!({ "size": size })),
                    version("v2", false, inner),
                ],
                "conversion": { "strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": webhook.config("/convert"),
                } },
            },
        });
        disks.ok(Method::POST, CRDS, &definition).await?;
        for version in ["v1", "v2"] {
            eventually("disks are served", async || {
                let (code, _) = disks
                    .send(Method::GET, &disks.path(version), &Value::Null)
                    .await?;
                Ok((code == 200).then_some(()))
            })
            .await?;
        }
        Ok(disks)
    }

    fn path(&self, version: &str) -> String {
        let (group, namespace) = (&self.group, &self.namespace);
        format!("/apis/{group}/{version}/namespaces/{namespace}/disks")
    }

    fn disk(&self, version: &str, name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": format!("{}/{version}", self.group),
            "kind": "Disk",
            "metadata": { "name": name },
            "spec": spec,
        })
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<(u16, Value)> {
        let media = match method {
            _ if body.is_null() => "",
            Method::PATCH => "application/apply-patch+yaml",
            _ => "application/json",
        };
        net::send(&self.client, method, path, media, body).await
    }

    async fn ok(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        match self.send(method.clone(), path, body).await? {
            (200..=299, value) => Ok(value),
            (code, value) => bail!("{method} {path}: {code} {value}"),
        }
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.ok(Method::GET, path, &Value::Null).await
    }

    async fn end(&self) -> Result<()> {
        let path = format!("{CRDS}/disks.{}", self.group);
        self.ok(Method::DELETE, &path, &Value::Null).await?;
        Ok(())
    }
}

both_servers!(objects_are_converted_wherever_versions_differ);
async fn objects_are_converted_wherever_versions_differ(server: &TestServer) -> Result<()> {
    let webhook = Webhook::start(|_, review| converted(review, convert)).await?;
    let disks = Disks::install(server, &webhook).await?;
    let (v1, v2) = (disks.path("v1"), disks.path("v2"));

    // Stored from v2, read in both.
    let new = disks.disk("v2", "a", json!({ "disk": { "size": 5 } }));
    let made = disks.ok(Method::POST, &v2, &new).await?;
    ensure!(made["spec"] == json!({ "disk": { "size": 5 } }), "{made}");
    let uid = &made["metadata"]["uid"];
    let stored = disks.get(&format!("{v1}/a")).await?;
    ensure!(stored["spec"] == json!({ "size": 5 }), "{stored}");
    ensure!(stored["metadata"]["uid"] == *uid, "{stored}");
    ensure!(
        stored["metadata"]["finalizers"].is_null(),
        "a webhook changed metadata: {stored}"
    );

    // Stored from v1, read, replaced and applied in v2.
    let new = disks.disk("v1", "b", json!({ "size": 7 }));
    disks.ok(Method::POST, &v1, &new).await?;
    let mut shown = disks.get(&format!("{v2}/b")).await?;
    ensure!(shown["spec"] == json!({ "disk": { "size": 7 } }), "{shown}");
    ensure!(
        shown["apiVersion"] == format!("{}/v2", disks.group),
        "{shown}"
    );
    shown["spec"]["disk"]["size"] = json!(8);
    let replaced = disks.ok(Method::PUT, &format!("{v2}/b"), &shown).await?;
    ensure!(replaced["spec"]["disk"]["size"] == 8, "{replaced}");
    let stored = disks.get(&format!("{v1}/b")).await?;
    ensure!(stored["spec"] == json!({ "size": 8 }), "{stored}");
    let applied = disks.disk("v2", "b", json!({ "disk": { "size": 9 } }));
    let by = format!("{v2}/b?fieldManager=test&force=true");
    let applied = disks.ok(Method::PATCH, &by, &applied).await?;
    ensure!(applied["spec"]["disk"]["size"] == 9, "{applied}");
    let mut status = disks.get(&format!("{v2}/b")).await?;
    status["status"] = json!({ "phase": "ready" });
    disks
        .ok(Method::PUT, &format!("{v2}/b/status"), &status)
        .await?;
    let stored = disks.get(&format!("{v1}/b")).await?;
    ensure!(
        stored["spec"] == json!({ "size": 9 }) && stored["status"]["phase"] == "ready",
        "{stored}"
    );

    // A list has the same objects in the same order, and a watch shows them.
    let list = disks.get(&v2).await?;
    let items = list["items"].as_array().context("no items")?;
    let sizes: Vec<_> = items
        .iter()
        .map(|item| &item["spec"]["disk"]["size"])
        .collect();
    ensure!(sizes == [5, 9], "{list}");
    let page = disks.get(&format!("{v2}?limit=1")).await?;
    let sizes = page["items"].as_array().context("no items")?;
    ensure!(
        sizes.len() == 1 && page["metadata"]["remainingItemCount"] == 1,
        "{page}"
    );
    let version = list["metadata"]["resourceVersion"].as_str();
    let version = version.context("the list has no version")?;
    let watch = format!("{v2}?watch=true&resourceVersion={version}");
    let request = Request::get(&watch).body(Vec::new())?;
    let mut lines = disks.client.request_stream(request).await?;
    disks
        .ok(
            Method::POST,
            &v1,
            &disks.disk("v1", "c", json!({ "size": 3 })),
        )
        .await?;
    let mut line = String::new();
    lines.read_line(&mut line).await?;
    let event: Value = serde_json::from_str(&line).context("reading an event")?;
    ensure!(
        event["type"] == "ADDED" && event["object"]["spec"] == json!({ "disk": { "size": 3 } }),
        "{event}"
    );
    disks
        .ok(Method::DELETE, &format!("{v2}/c"), &Value::Null)
        .await?;

    let reviews = webhook.seen("/convert");
    let review = reviews.first().context("no review")?;
    ensure!(review["kind"] == "ConversionReview", "{review}");
    ensure!(
        review["apiVersion"] == "apiextensions.k8s.io/v1",
        "{review}"
    );
    disks.end().await
}

both_servers!(a_failed_conversion_says_why_and_stores_nothing);
async fn a_failed_conversion_says_why_and_stores_nothing(server: &TestServer) -> Result<()> {
    let webhook = Webhook::start(|_, review| converted(review, convert)).await?;
    let disks = Disks::install(server, &webhook).await?;
    let (v1, v2) = (disks.path("v1"), disks.path("v2"));
    let new = disks.disk("v2", "broken", json!({ "disk": { "size": 5 } }));
    let (code, refusal) = disks.send(Method::POST, &v2, &new).await?;
    let group = &disks.group;
    let message =
        format!("conversion webhook for {group}/v2, Kind=Disk failed: this one is broken");
    ensure!(
        code == 500 && refusal["message"] == message,
        "{code} {refusal}\nexpected {message}"
    );
    let (code, _) = disks
        .send(Method::GET, &format!("{v1}/broken"), &Value::Null)
        .await?;
    ensure!(code == 404, "it was stored: {code}");
    let good = disks.disk("v2", "good", json!({ "disk": { "size": 1 } }));
    disks.ok(Method::POST, &v2, &good).await?;
    disks.end().await
}
