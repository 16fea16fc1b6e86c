//! A host with the guest `loops`, whose turns do what `spec.mode` of their object says.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use vmhost_runtime::journal::story::{Story, Warning};

use crate::example::User;
use crate::guests::{self, PolicyFile};
use crate::host::{self, Host};
use crate::server::TestServer;
use crate::wait::eventually;

/// The kind of the objects.
pub const KIND: &str = "Loop";
/// The field manager of the user who makes and changes the objects.
pub const USER: &str = "a-user";

/// The host, its objects, and the guest's file.
pub struct Loops {
    /// A user with all rights.
    pub user: User,
    /// The host.
    pub host: Host,
    /// The guest's file.
    pub policy: PolicyFile,
    /// The namespace of the objects.
    pub namespace: String,
}

impl Loops {
    /// Installs the kind and starts a host, with these flags, for a new namespace.
    pub async fn start(server: &TestServer, flags: &[&str]) -> Result<Loops> {
        let user = User::of(server).await?;
        user.install(&definition()).await?;
        let namespace = server.namespace("loops").await?;
        let policy = PolicyFile::new("loops", &guests::read(guests::LOOPS)?)?;
        let host = host::on(&server.kubeconfig())?
            .namespace(&namespace)
            .plugin(policy.path())
            .args(flags)
            .ready()
            .await?;
        Ok(Loops {
            user,
            host,
            policy,
            namespace,
        })
    }

    /// Returns the path of an object.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    /// Returns the key of an object.
    pub fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.namespace)
    }

    /// Creates an object in status `creating` with this mode, which is also its name.
    pub async fn create(&self, mode: &str) -> Result<()> {
        self.create_as(mode, json!({})).await
    }

    /// Like [`Loops::create`], with metadata: the label `case` selects a controller.
    pub async fn create_as(&self, mode: &str, mut metadata: Value) -> Result<()> {
        metadata["name"] = mode.into();
        let object = json!({
            "apiVersion": "test.vmhost.dev/v1",
            "kind": "Loop",
            "metadata": metadata,
            "spec": { "mode": mode, "status": "creating", "replicas": 1, "count": 0 },
        });
        let path = format!("{}?fieldManager={USER}", self.collection());
        self.user.create(&path, &object).await.map(drop)
    }

    /// Sets a field of an object's spec as this field manager.
    pub async fn set(&self, name: &str, manager: &str, field: &str, value: Value) -> Result<()> {
        let path = format!("{}?fieldManager={manager}", self.path(name));
        let patch = json!({ "spec": { field: value } });
        self.user.merge(&path, patch).await.map(drop)
    }

    /// Waits until an object is complete.
    pub async fn until_complete(&self, name: &str) -> Result<()> {
        let complete = |object: &Value| object["spec"]["status"] == "complete";
        let what = "it is complete";
        self.user.until(&self.path(name), what, complete).await?;
        Ok(())
    }

    /// Returns the story of an object's key.
    pub async fn story(&self, name: &str) -> Result<Story> {
        self.host.story(KIND, &self.namespace, name).await
    }

    /// Waits until the story of an object's key satisfies `wanted`, and returns it.
    pub async fn until_story(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Story) -> bool,
    ) -> Result<Story> {
        eventually(what, async || {
            let story = self.story(name).await?;
            match wanted(&story) {
                true => Ok(Some(story)),
                false => bail!("the story of {name} is {story:#?}"),
            }
        })
        .await
    }

    /// Waits for a warning of this name about an object's key, and returns it. Does `meanwhile`
    /// before each look.
    pub async fn until_warning(
        &self,
        warning: &str,
        name: &str,
        mut meanwhile: impl AsyncFnMut() -> Result<()>,
    ) -> Result<Warning> {
        let key = self.key(name);
        let what = format!("a warning {warning} about {key}");
        // A few seconds. On a busy machine each look takes longer, and looks are as much rarer.
        eventually(&what, async || {
            meanwhile().await?;
            let all = self.host.warnings().await?;
            let is_it = |one: &&Warning| one.name == warning && one.key == key;
            match all.iter().find(is_it) {
                Some(found) => Ok(Some(found.clone())),
                None => bail!("there are {all:#?}"),
            }
        })
        .await
    }

    fn collection(&self) -> String {
        format!(
            "/apis/test.vmhost.dev/v1/namespaces/{}/loops",
            self.namespace
        )
    }
}

/// Returns the CustomResourceDefinition of the objects.
pub fn definition() -> Value {
    let spec = json!({
        "type": "object",
        "properties": {
            "mode": { "type": "string" },
            "status": { "type": "string" },
            "replicas": { "type": "integer" },
            "count": { "type": "integer" },
        },
    });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "loops.test.vmhost.dev" },
        "spec": {
            "group": "test.vmhost.dev",
            "scope": "Namespaced",
            "names": { "kind": "Loop", "listKind": "LoopList", "plural": "loops", "singular": "loop" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}
