//! A host's own cluster, called home, and member clusters, all on embedded servers of this process.
//! Their kubeconfigs are in Secrets that multicluster-runtime's kubeconfig provider reads as well,
//! so that a bench can run both programs in the same clusters.
//!
//! Must not know which program works in the members.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::example::{User, manifests};
use crate::fleet::{instance, instances, text};
use crate::marks::Marks;
use crate::real::Options;
use crate::server::{Target, TestServer, Unavailable};

/// The namespace of the Secrets at home, and of the objects in each member.
pub const NAMESPACE: &str = "default";

/// The label of Secrets with kubeconfigs.
const LABEL: &str = "sigs.k8s.io/multicluster-runtime-kubeconfig";

/// Home and the members.
pub struct Members {
    /// The server of home.
    pub home: TestServer,
    user: User,
    /// The members.
    pub all: Vec<Member>,
}

/// A member.
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its server.
    pub server: TestServer,
    /// A user with all rights.
    pub user: User,
    /// What is marked in it.
    pub marks: Marks,
}

impl Members {
    /// Starts home and this many members, which nobody is told of yet.
    pub async fn start(count: usize) -> Result<Members> {
        let home = server().await?;
        let user = User::of(&home).await?;
        let mut all = Vec::new();
        for number in 0..count {
            all.push(Member::start(format!("member-{number:02}")).await?);
        }
        Ok(Members { home, user, all })
    }

    /// Adds a member with this kubeconfig.
    pub async fn add(&self, name: &str, kubeconfig: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name, "labels": { LABEL: "true" } },
            "data": data(kubeconfig),
        });
        self.user.create(&secrets(), &secret).await.map(drop)
    }

    /// Gives a member another kubeconfig.
    pub async fn change(&self, name: &str, kubeconfig: &str) -> Result<()> {
        let patch = json!({ "data": data(kubeconfig) });
        let path = format!("{}/{name}", secrets());
        self.user.merge(&path, patch).await.map(drop)
    }

    /// Takes the kubeconfig of a member away.
    pub async fn remove(&self, name: &str) -> Result<()> {
        self.user.delete(&format!("{}/{name}", secrets())).await
    }

    /// Takes all kubeconfigs away, and deletes all objects.
    pub async fn empty(&self) -> Result<()> {
        for member in &self.all {
            self.remove(&member.name).await?;
            member.user.delete(&instances(NAMESPACE)).await?;
        }
        Ok(())
    }

    /// Creates an object of this name in each member.
    pub async fn create(&self, name: &str) -> Result<()> {
        for member in &self.all {
            member.create(name).await?;
        }
        Ok(())
    }

    /// Waits until the object of this name is marked in each member, and returns when the last was
    /// seen.
    pub async fn until_marked(&self, name: &str, generation: i64) -> Result<Instant> {
        let mut last = None;
        for member in &self.all {
            last = last.max(Some(member.marks.until(name, generation).await?));
        }
        last.context("there is no member")
    }
}

impl Member {
    async fn start(name: String) -> Result<Member> {
        let server = server().await?;
        let user = User::of(&server).await?;
        for definition in manifests("examples/fleet/manifests/vgpuinstance.yaml")? {
            user.install(&definition).await?;
        }
        let marks = Marks::follow(server.client().await?, NAMESPACE);
        Ok(Member {
            name,
            server,
            user,
            marks,
        })
    }

    /// Returns the kubeconfig of a user with all rights.
    pub fn kubeconfig(&self) -> Result<String> {
        text(&self.server.kubeconfig())
    }

    /// Creates an object.
    pub async fn create(&self, name: &str) -> Result<()> {
        let (path, object) = (instances(NAMESPACE), instance(name));
        self.user.create(&path, &object).await.map(drop)
    }

    /// Changes the spec of an object, which has another generation then.
    pub async fn change(&self, name: &str, spec: Value) -> Result<()> {
        let path = format!("{}/{name}", instances(NAMESPACE));
        let changed = self.user.merge(&path, json!({ "spec": spec }));
        changed.await.map(drop)
    }

    /// Creates an object, and returns how long it took from before the request until a watch showed
    /// it marked; `None` if it is lost.
    pub async fn mark(&self, name: &str) -> Result<Option<Duration>> {
        let start = Instant::now();
        self.create(name).await?;
        let at = self.marks.seen(name, 1).await;
        Ok(at.map(|at| at.saturating_duration_since(start)))
    }
}

fn secrets() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets")
}

/// Returns the `data` of a Secret.
fn data(kubeconfig: &str) -> Value {
    json!({ "kubeconfig": BASE64_STANDARD.encode(kubeconfig) })
}

async fn server() -> Result<TestServer> {
    match TestServer::own(Target::Embedded, Options::default()).await? {
        Ok(server) => Ok(server),
        Err(Unavailable(reason)) => bail!("an embedded server: {reason}"),
    }
}
