//! Every built-in kind: what is done with objects of any kind, on one object of each
//! (`cases/kinds.json`, which describes its format). The embedded server passes because a real one
//! does.

mod classes;

use anyhow::{Context, Result, bail, ensure};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::net::{APPLY, JSON, MERGE, answer, send};
use vmhost_tests::server::TestServer;
use vmhost_tests::tally::Tally;

const TABLE: &str = include_str!("../../cases/kinds.json");
const MANAGERS: [&str; 2] = ["one", "two"];
const AS_TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

both_servers!(objects_of_every_kind, own);
async fn objects_of_every_kind(server: &TestServer) -> Result<()> {
    let table: Value = serde_json::from_str(TABLE).context("reading the table")?;
    let client = server.client().await?;
    let cases = table["cases"].as_array().context("the table has cases")?;
    ensure!(cases.len() >= 50, "{} cases", cases.len());
    let mut tally = Tally::of(format!("every_kind {:?}", server.target()));
    for case in cases {
        Case::read(&client, case)?.run(&mut tally).await;
    }
    for kind in classes::KINDS {
        let outcome = kind.is_named_by_default(&client).await;
        tally.case(format!("{}: the default class", kind.path), outcome);
    }
    tally.finish(cases.len() * 9 + classes::KINDS.len())
}

struct Case<'a> {
    client: &'a Client,
    collection: &'a str,
    /// The path of the object.
    path: String,
    object: &'a Value,
    filled: &'a Value,
    /// Whether two managers that apply the object own it together.
    shared: bool,
    /// Whether its labels can be patched.
    patched: bool,
    /// The metadata that a write to its status changes: a part of `LAFO` for labels, annotations,
    /// finalizers and owners. Unset: it has no such subresource.
    status: Option<&'a str>,
}

impl<'a> Case<'a> {
    fn read(client: &'a Client, case: &'a Value) -> Result<Case<'a>> {
        let collection = case["path"].as_str().context("a case has a path")?;
        let name = case["object"]["metadata"]["name"].as_str();
        let name = name.context("an object has a name")?;
        Ok(Case {
            client,
            collection,
            path: format!("{collection}/{name}"),
            object: &case["object"],
            filled: &case["filled"],
            shared: case["shared"] != false,
            patched: case["patched"] != false,
            status: case["status"].as_str(),
        })
    }

    /// Sends a request that must be answered with this code.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: &Value,
        code: u16,
    ) -> Result<Value> {
        let (got, value) = send(self.client, method.clone(), path, media, body).await?;
        ensure!(got == code, "{method} {path}: {got} {value}");
        Ok(value)
    }

    /// Does all that is done with an object, each as a case of its own.
    async fn run(&self, tally: &mut Tally) {
        let path = &self.path;
        let outcome = self.is_refused().await;
        tally.case(format!("{path} is refused with unknown fields"), outcome);
        let outcome = self.is_tried().await;
        tally.case(format!("{path} is tried, and not created"), outcome);
        let outcome = self.is_created().await;
        tally.case(format!("{path} is created"), outcome);
        let outcome = self.is_read().await;
        tally.case(format!("{path} is read"), outcome);
        let outcome = self.is_listed().await;
        tally.case(format!("{path} is listed, as a table too"), outcome);
        if self.patched {
            let outcome = self.is_patched().await;
            tally.case(format!("{path} is patched in three forms"), outcome);
        }
        if self.status.is_some() {
            let outcome = self.has_a_status().await;
            tally.case(format!("{path} has a status of its own"), outcome);
        }
        for manager in MANAGERS {
            let outcome = self.is_applied(manager).await;
            tally.case(format!("{path} is applied by {manager}"), outcome);
        }
        let outcome = self.is_owned().await;
        tally.case(format!("{path} is owned by what applied it"), outcome);
        let outcome = self.is_deleted().await;
        tally.case(format!("{path} is deleted"), outcome);
    }

    async fn is_tried(&self) -> Result<()> {
        let dry = format!("{}?dryRun=All", self.collection);
        let tried = self.ask(Method::POST, &dry, JSON, self.object, 201).await?;
        self.check(&tried)?;
        let gone = self.ask(Method::GET, &self.path, "", &Value::Null, 404);
        gone.await.map(drop)
    }

    async fn is_created(&self) -> Result<()> {
        let made = self
            .ask(Method::POST, self.collection, JSON, self.object, 201)
            .await?;
        self.check(&made)
    }

    async fn is_read(&self) -> Result<()> {
        let got = self.ask(Method::GET, &self.path, "", &Value::Null, 200);
        self.check(&got.await?)
    }

    /// Compares an object with what is expected.
    fn check(&self, object: &Value) -> Result<()> {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let seen = comparable(object, uid);
        ensure!(seen == *self.filled, "got {seen}\nexpected {}", self.filled);
        Ok(())
    }

    /// A write to the status changes the metadata that the kind lets through, and no other.
    async fn has_a_status(&self) -> Result<()> {
        let Some(open) = self.status else {
            return Ok(());
        };
        let path = format!("{}/status", self.path);
        // An owner that exists: the garbage collector leaves the object alone.
        let namespace = "/api/v1/namespaces/default";
        let namespace = self.ask(Method::GET, namespace, "", &Value::Null, 200);
        let owner = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "name": "default",
            "uid": namespace.await?["metadata"]["uid"],
        });
        let patch = json!({ "metadata": {
            "labels": { "written": "to-the-status" },
            "annotations": { "written": "to-the-status" },
            "finalizers": ["example.com/written"],
            "ownerReferences": [owner],
        } });
        let written = self.ask(Method::PATCH, &path, MERGE, &patch, 200).await?;
        let metadata = &written["metadata"];
        let mut changed = String::new();
        for (letter, is) in [
            ('L', !metadata["labels"]["written"].is_null()),
            ('A', !metadata["annotations"]["written"].is_null()),
            (
                'F',
                metadata["finalizers"]
                    .to_string()
                    .contains("example.com/written"),
            ),
            ('O', !metadata["ownerReferences"].is_null()),
        ] {
            if is {
                changed.push(letter);
            }
        }
        ensure!(
            changed == open,
            "a write to the status changed {changed:?}, not {open:?}"
        );
        let back = json!({ "metadata": {
            "labels": { "written": null },
            "annotations": { "written": null },
            "finalizers": null,
            "ownerReferences": null,
        } });
        self.ask(Method::PATCH, &self.path, MERGE, &back, 200)
            .await?;
        Ok(())
    }

    /// Unknown fields are refused if a client asks for that.
    async fn is_refused(&self) -> Result<()> {
        let mut unknown = self.object.clone();
        unknown["unknownField"] = json!(1);
        let path = format!("{}?fieldValidation=Strict", self.collection);
        let refused = self.ask(Method::POST, &path, JSON, &unknown, 400).await?;
        let message = refused["message"].as_str().unwrap_or_default();
        ensure!(
            message.contains("strict decoding error: unknown field \"unknownField\""),
            "{message}"
        );
        let path = format!("{}?fieldSelector=spec.nope%3Dx", self.collection);
        self.ask(Method::GET, &path, "", &Value::Null, 400).await?;
        Ok(())
    }

    async fn is_listed(&self) -> Result<()> {
        let name = &self.object["metadata"]["name"];
        let list = self
            .ask(Method::GET, self.collection, "", &Value::Null, 200)
            .await?;
        let items = list["items"].as_array().context("a list has items")?;
        let item = items.iter().find(|item| item["metadata"]["name"] == *name);
        let item = item.context("the object is not in the list")?;
        ensure!(item.get("kind").is_none(), "an item has a kind: {item}");
        let request = Request::get(self.collection)
            .header("accept", AS_TABLE)
            .body(Vec::new())?;
        let (_, table) = answer(self.client, request).await?;
        let columns = table["columnDefinitions"].as_array().map(Vec::len);
        let rows = table["rows"].as_array().context("a table has rows")?;
        let row = rows
            .iter()
            .find(|row| row["object"]["metadata"]["name"] == *name)
            .context("the object is not in the table")?;
        let cells = row["cells"].as_array().map(Vec::len);
        // Of an IPAddress, a real server prints one more cell than it has columns.
        ensure!(cells >= columns, "{cells:?} cells, {columns:?} columns");
        Ok(())
    }

    async fn is_patched(&self) -> Result<()> {
        let label = |value: &str| json!({ "metadata": { "labels": { "kinds": value } } });
        for (media, value, patch) in [
            ("merge-patch", "merge", label("merge")),
            ("strategic-merge-patch", "strategic", label("strategic")),
            (
                "json-patch",
                "json",
                json!([{ "op": "replace", "path": "/metadata/labels/kinds", "value": "json" }]),
            ),
        ] {
            let media = format!("application/{media}+json");
            let patched = self
                .ask(Method::PATCH, &self.path, &media, &patch, 200)
                .await?;
            ensure!(
                patched["metadata"]["labels"]["kinds"] == value,
                "{media}: {patched}"
            );
        }
        Ok(())
    }

    async fn is_applied(&self, manager: &str) -> Result<()> {
        let path = format!("{}?fieldManager={manager}&force=true", self.path);
        let applied = self.ask(Method::PATCH, &path, APPLY, self.object, 200);
        applied.await.map(drop)
    }

    /// Both managers own what they applied.
    async fn is_owned(&self) -> Result<()> {
        let got = self.ask(Method::GET, &self.path, "", &Value::Null, 200);
        let got = got.await?;
        let entries = got["metadata"]["managedFields"].as_array();
        for manager in MANAGERS.into_iter().filter(|_| self.shared) {
            let mut all = entries.into_iter().flatten();
            let owns = all.any(|e| e["manager"] == manager && e["operation"] == "Apply");
            ensure!(owns, "{manager} owns nothing: {got}");
        }
        Ok(())
    }

    /// Deletes the object. Finalizers that admission adds are removed as their controllers would.
    async fn is_deleted(&self) -> Result<()> {
        let now = json!({ "gracePeriodSeconds": 0, "propagationPolicy": "Background" });
        self.ask(Method::DELETE, &self.path, JSON, &now, 200)
            .await?;
        let free = json!({ "metadata": { "finalizers": null } });
        send(self.client, Method::PATCH, &self.path, MERGE, &free).await?;
        // A real server leaves a namespace to a controller, which is not there.
        let waits = self.object["kind"] == "Namespace";
        match send(self.client, Method::GET, &self.path, "", &Value::Null).await? {
            (404, _) => Ok(()),
            (200, _) if waits => Ok(()),
            (code, value) => bail!("still there: {code} {value}"),
        }
    }
}

/// Returns an object without what differs each time.
fn comparable(object: &Value, uid: &str) -> Value {
    let mut seen = scrubbed(object, uid);
    let metadata = seen["metadata"].take();
    seen["metadata"] = json!({});
    for field in ["labels", "annotations", "generation"] {
        if let Some(value) = metadata.get(field) {
            seen["metadata"][field] = value.clone();
        }
    }
    let spec = seen.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec.filter(|_| object["kind"] == "Service") {
        spec.retain(|field, _| !matches!(field.as_str(), "clusterIP" | "clusterIPs"));
    }
    if let Some(status) = seen.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
        // Controllers within the server set these.
        status.remove("conditions");
    }
    seen
}

fn scrubbed(value: &Value, uid: &str) -> Value {
    match value {
        Value::Object(map) => {
            let set = map.iter().filter(|(_, value)| !value.is_null());
            set.map(|(name, value)| (name.clone(), scrubbed(value, uid)))
                .collect()
        }
        Value::Array(items) => items.iter().map(|item| scrubbed(item, uid)).collect(),
        Value::String(text) if text == uid => json!("UID"),
        other => other.clone(),
    }
}
