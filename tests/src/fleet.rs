//! Clusters for a host in many: further servers, `Cluster` objects that carry their kubeconfigs,
//! and the objects that the example `fleet` marks.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use vmhost_runtime::observe::admin::state::ClusterState;

use crate::example::{User, manifests};
use crate::host::{self, Host, HostCommand};
use crate::real::Options;
use crate::server::{TestServer, Unavailable};

/// The clusters of a host.
pub const CLUSTERS: &str = "/apis/openapi.example.com/v1/clusters";

/// Where the host finds them.
pub const SOURCE: &str = "field:Cluster.v1.openapi.example.com:spec.connection.kubeConfig";

/// The host's own cluster and a member.
pub struct Pair<'s> {
    /// The host's own server.
    pub home: &'s TestServer,
    /// A user of it.
    pub user: User,
    /// Another server of the same sort.
    pub east: TestServer,
    /// A user of that one.
    pub there: User,
}

impl<'s> Pair<'s> {
    /// Starts another server beside this one, and installs the definitions: `Cluster` at home,
    /// `VGPUInstance` in both.
    pub async fn start(home: &'s TestServer) -> Result<Pair<'s>> {
        let east = match TestServer::own(home.target(), Options::default()).await? {
            Ok(east) => east,
            Err(Unavailable(reason)) => bail!("a second server: {reason}"),
        };
        let (user, there) = (User::of(home).await?, User::of(&east).await?);
        user.install_definitions_of("fleet").await?;
        for definition in manifests("examples/fleet/manifests/vgpuinstance.yaml")? {
            there.install(&definition).await?;
        }
        Ok(Pair {
            home,
            user,
            east,
            there,
        })
    }

    /// A host that works in the clusters of `Cluster` objects.
    pub fn host(&self, plugin: impl AsRef<Path>) -> Result<HostCommand> {
        Ok(host::on(&self.home.kubeconfig())?
            .plugin(plugin)
            .args(["--clusters", SOURCE]))
    }

    /// Creates a `Cluster` with the kubeconfig of this file.
    pub async fn add(&self, name: &str, kubeconfig: &Path) -> Result<()> {
        self.add_text(name, &text(kubeconfig)?).await
    }

    /// Creates a `Cluster` with this kubeconfig.
    pub async fn add_text(&self, name: &str, kubeconfig: &str) -> Result<()> {
        let cluster = cluster(name, kubeconfig);
        self.user.create(CLUSTERS, &cluster).await.map(drop)
    }

    /// Gives a `Cluster` the kubeconfig of this file.
    pub async fn change(&self, name: &str, kubeconfig: &Path) -> Result<()> {
        let spec = json!({ "connection": { "kubeConfig": text(kubeconfig)? } });
        let cluster = format!("{CLUSTERS}/{name}");
        let changed = self.user.merge(&cluster, json!({ "spec": spec })).await;
        changed.map(drop)
    }

    /// Deletes a `Cluster`.
    pub async fn remove(&self, name: &str) -> Result<()> {
        self.user.delete(&format!("{CLUSTERS}/{name}")).await
    }
}

/// Returns the text of a kubeconfig file.
pub fn text(kubeconfig: &Path) -> Result<String> {
    std::fs::read_to_string(kubeconfig).with_context(|| kubeconfig.display().to_string())
}

/// Returns a `Cluster` with this kubeconfig.
pub fn cluster(name: &str, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "openapi.example.com/v1",
        "kind": "Cluster",
        "metadata": { "name": name },
        "spec": { "connection": { "kubeConfig": kubeconfig } },
    })
}

/// Returns the path of a namespace's VGPUInstances.
pub fn instances(namespace: &str) -> String {
    format!("/apis/vgpu.example.com/v1beta1/namespaces/{namespace}/vgpuinstances")
}

/// Returns a VGPUInstance.
pub fn instance(name: &str) -> Value {
    json!({
        "apiVersion": "vgpu.example.com/v1beta1",
        "kind": "VGPUInstance",
        "metadata": { "name": name },
        "spec": { "cards": 1 },
    })
}

/// Creates a VGPUInstance, and waits until it is marked with this cluster.
pub async fn marked(user: &User, namespace: &str, name: &str, cluster: &str) -> Result<()> {
    user.create(&instances(namespace), &instance(name)).await?;
    until_marked(user, namespace, name, (cluster, 1)).await
}

/// Waits until a VGPUInstance is marked with a cluster and a generation.
pub async fn until_marked(
    user: &User,
    namespace: &str,
    name: &str,
    (cluster, generation): (&str, i64),
) -> Result<()> {
    let path = format!("{}/{name}", instances(namespace));
    let what = format!("it is marked with {cluster}, generation {generation}");
    let waited = user.until(&path, &what, |object| {
        let status = &object["status"];
        status["clusterId"] == cluster && status["observedGeneration"] == generation
    });
    waited.await.map(drop)
}

/// Waits until a cluster is in this phase, with this text about it, and returns its state.
pub async fn until_phase(
    host: &Host,
    name: &str,
    phase: &str,
    about: &str,
) -> Result<ClusterState> {
    let is_it = |cluster: &&ClusterState| {
        cluster.name == name && cluster.phase == phase && cluster.about.contains(about)
    };
    let what = format!("cluster {name} is {phase}: {about}");
    let state = host.until_state(&what, |state| state.clusters.iter().any(|of| is_it(&of)));
    let clusters = state.await?.clusters;
    clusters.iter().find(is_it).cloned().context(what)
}
