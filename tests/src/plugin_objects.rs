//! Plugin objects of one namespace, with the definitions of their kinds: what a user creates, and
//! what the conditions say. This module must not know hosts.

use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::example::User;
use crate::server::TestServer;

/// The path of the PluginPolicies.
pub const POLICIES: &str = "/apis/vmhost.dev/v1alpha1/pluginpolicies";

/// The fields of a `spec` that name a component.
const SOURCES: [&str; 3] = ["configMapRef", "image", "path"];

/// The objects of one namespace.
pub struct Objects {
    /// A user with all rights.
    pub user: User,
    namespace: String,
}

impl Objects {
    /// Installs the definitions of the kinds, unless they exist.
    pub async fn of(server: &TestServer, namespace: &str) -> Result<Objects> {
        let user = User::of(server).await?;
        user.install_plugin_definitions().await?;
        Ok(Objects {
            user,
            namespace: namespace.to_owned(),
        })
    }

    /// Returns the path of the objects of this kind, by its plural.
    pub fn path(&self, plural: &str) -> String {
        let namespace = &self.namespace;
        match plural {
            "configmaps" => format!("/api/v1/namespaces/{namespace}/{plural}"),
            _ => format!("/apis/vmhost.dev/v1alpha1/namespaces/{namespace}/{plural}"),
        }
    }

    /// Puts a component into a ConfigMap.
    pub async fn component(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let data = json!({ "plugin.wasm": BASE64_STANDARD.encode(bytes) });
        let maps = self.path("configmaps");
        let one = format!("{maps}/{name}");
        if self.user.get(&one).await?.is_some() {
            let patch = json!({ "binaryData": data });
            return self.user.merge(&one, patch).await.map(drop);
        }
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name },
            "binaryData": data,
        });
        self.user.create(&maps, &map).await.map(drop)
    }

    /// Creates a Plugin. Unless its `spec` names a component, that is of the ConfigMap of the same
    /// name.
    pub async fn plugin(&self, name: &str, mut spec: Value) -> Result<()> {
        if SOURCES.iter().all(|source| spec[*source].is_null()) {
            spec["configMapRef"] = json!({ "name": name });
        }
        let plugin = json!({
            "apiVersion": "vmhost.dev/v1alpha1",
            "kind": "Plugin",
            "metadata": { "name": name },
            "spec": spec,
        });
        let created = self.user.create(&self.path("plugins"), &plugin).await;
        created.map(drop)
    }

    /// Returns the path of a Plugin.
    pub fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path("plugins"))
    }

    /// Waits for a condition with this reason, and returns the Plugin.
    pub async fn until(&self, name: &str, kind: &str, status: &str, reason: &str) -> Result<Value> {
        let what = format!("{kind} is {status} of {name}: {reason}");
        let is = |plugin: &Value| {
            condition(plugin, kind).is_some_and(|condition| {
                condition["status"] == status && condition["reason"] == reason
            })
        };
        self.user.until(&self.at(name), &what, is).await
    }
}

/// Returns a condition of a Plugin.
pub fn condition<'a>(plugin: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut conditions = plugin["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == kind)
}

/// Returns the message of a condition; empty if there is none.
pub fn message(plugin: &Value, kind: &str) -> String {
    let condition = condition(plugin, kind).cloned().unwrap_or_default();
    condition["message"].as_str().unwrap_or_default().to_owned()
}
