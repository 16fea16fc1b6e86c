//! The shared code of the examples' tests: objects of any kind by path, manifests, and the log
//! lines of plugins.

use std::path::Path;

use anyhow::{Context, Result, bail};
use http::Method;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use crate::host::{self, Host, HostCommand};
use crate::kubeconfig;
use crate::net::{self, JSON, MERGE};
use crate::server::TestServer;
use crate::wait::eventually;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A user with a JSON client: paths, objects, status codes.
pub struct User(Client);

impl User {
    /// Returns a user with all rights.
    pub async fn of(server: &TestServer) -> Result<User> {
        Ok(User(server.client().await?))
    }

    /// Returns the user of a kubeconfig.
    pub async fn at(kubeconfig: &Path) -> Result<User> {
        Ok(User(kubeconfig::client(kubeconfig).await?))
    }

    /// Returns an object or a list; `None` if it does not exist.
    pub async fn get(&self, path: &str) -> Result<Option<Value>> {
        match net::send(&self.0, Method::GET, path, "", &Value::Null).await? {
            (404, _) => Ok(None),
            (code, value) => ok(code, value, path).map(Some),
        }
    }

    /// Creates an object in the collection of this path.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value> {
        let (code, value) = net::send(&self.0, Method::POST, path, JSON, object).await?;
        ok(code, value, path)
    }

    /// Applies a JSON merge patch.
    pub async fn merge(&self, path: &str, patch: Value) -> Result<Value> {
        let (code, value) = net::send(&self.0, Method::PATCH, path, MERGE, &patch).await?;
        ok(code, value, path)
    }

    /// Deletes an object; ignores one that is already gone.
    pub async fn delete(&self, path: &str) -> Result<()> {
        match net::send(&self.0, Method::DELETE, path, "", &Value::Null).await? {
            (404, _) => Ok(()),
            (code, value) => ok(code, value, path).map(drop),
        }
    }

    /// Waits until the object satisfies `wanted`, and returns it.
    pub async fn until(
        &self,
        path: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut last = None;
        let waited = eventually(what, async || {
            last = self.get(path).await?;
            Ok(last.clone().filter(|object| wanted(object)))
        });
        let waited = waited.await;
        waited.with_context(|| format!("{path} is {}", last.unwrap_or_default()))
    }

    /// Waits until the object does not exist.
    pub async fn until_gone(&self, path: &str) -> Result<()> {
        eventually(&format!("{path} is gone"), async || {
            Ok(self.get(path).await?.is_none().then_some(()))
        })
        .await
    }

    /// Waits for an Event with this reason about an object of this name, and returns it.
    pub async fn until_event(&self, namespace: &str, name: &str, reason: &str) -> Result<Value> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        eventually(&format!("an Event {reason} about {name}"), async || {
            let events = self.get(&path).await?.unwrap_or_default();
            let mut events = events["items"].as_array().into_iter().flatten();
            let found = events
                .find(|event| event["reason"] == reason && event["regarding"]["name"] == name);
            Ok(found.cloned())
        })
        .await
    }

    /// Installs the CustomResourceDefinitions among the manifests of an example, unless they exist,
    /// and waits until their kinds are served.
    pub async fn install_definitions_of(&self, example: &str) -> Result<()> {
        let folder = match example {
            "vm" => "plugins/vm/manifests".to_owned(),
            example => format!("examples/{example}/manifests"),
        };
        let path = Path::new(ROOT).join(&folder);
        for file in std::fs::read_dir(&path).with_context(|| path.display().to_string())? {
            let file = format!("{folder}/{}", file?.file_name().to_string_lossy());
            for object in manifests(&file)? {
                if object["kind"] == "CustomResourceDefinition" {
                    self.install(&object).await?;
                }
            }
        }
        Ok(())
    }

    /// Installs the definitions of Plugin, PluginRevision and PluginPolicy, unless they exist.
    pub async fn install_plugin_definitions(&self) -> Result<()> {
        for file in ["plugins", "pluginrevisions", "pluginpolicies"] {
            for definition in manifests(&format!("host/package/chart/files/crds/{file}.yaml"))? {
                self.install(&definition).await?;
            }
        }
        Ok(())
    }

    /// Installs a CustomResourceDefinition, unless it exists, and waits until its kind is served.
    pub async fn install(&self, definition: &Value) -> Result<()> {
        match net::send(&self.0, Method::POST, CRDS, JSON, definition).await? {
            (409, _) => {}
            (code, value) => drop(ok(code, value, CRDS)?),
        }
        let text = |pointer: &str| {
            definition
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (group, version) = (text("/spec/group"), text("/spec/versions/0/name"));
        let path = format!("/apis/{group}/{version}/{}", text("/spec/names/plural"));
        self.until(&path, "its kind is served", |_| true)
            .await
            .map(drop)
    }
}

fn ok(code: u16, value: Value, path: &str) -> Result<Value> {
    match code {
        200..=299 => Ok(value),
        _ => bail!("{path}: {code} {value}"),
    }
}

/// Returns the objects of a manifest, by its path from the root.
pub fn manifests(file: &str) -> Result<Vec<Value>> {
    let path = Path::new(ROOT).join(file);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    let objects = documents.map(|document| Value::deserialize(document).context(file.to_owned()));
    objects.collect()
}

/// Returns a host whose plugins' log lines [`said`] can read.
pub fn host(server: &TestServer) -> Result<HostCommand> {
    Ok(host::on(&server.kubeconfig())?.args(["--log-format", "json"]))
}

/// Returns the log lines of plugins, in order.
pub fn said(host: &Host) -> Vec<String> {
    let output = host.output();
    output.iter().filter_map(|line| message(line)).collect()
}

/// Waits for a plugin's log line that starts with this text, and returns it.
pub async fn until_said(host: &Host, start: &str) -> Result<String> {
    let is_it = |line: &str| message(line).is_some_and(|message| message.starts_with(start));
    let lines = host.wait_for_lines(1, is_it).await;
    let lines = lines.with_context(|| format!("waiting for a plugin to say {start:?}"))?;
    lines
        .iter()
        .find_map(|line| message(line))
        .context("it is one")
}

fn message(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    (line["target"] == "plugin").then(|| line["message"].as_str().map(Into::into))?
}

/// Runs the cases of an example with its component, as `vmhost test` does. All must pass.
pub async fn passes_its_cases(component: &Path, example: &str) -> Result<()> {
    let cases = Path::new(ROOT).join("examples").join(example).join("cases");
    let count = std::fs::read_dir(&cases)
        .with_context(|| cases.display().to_string())?
        .count();
    let command = host::bare()?.arg("test").arg(component);
    let exit = command.arg("--cases").arg(&cases).run().await?;
    let wanted = format!("{count} passed, 0 failed");
    if count == 0 || exit.stdout.last() != Some(&wanted) {
        bail!("{example}: {exit:?}");
    }
    Ok(())
}
