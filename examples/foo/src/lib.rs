//! Kubernetes' sample-controller: a Foo owns an nginx Deployment with the wanted number of
//! replicas, and its status shows how many are available.
//!
//! The steps and their order are those of upstream's `syncHandler`; the README lists the
//! differences.

#![allow(clippy::disallowed_names, reason = "a Foo is what the kind is called")]

use serde::Deserialize;
use serde_json::{Value, json};
use vmhost_plugin::meta::{ObjectMeta, OwnerReference};
use vmhost_plugin::{
    Cluster, Controller, Create, Description, Event, JsonPatch, Kind, ObjectKey, Outcome, Patch,
    Permission, Policy, Request, Result, Verb, Watch,
};

const FOO: Kind = Kind::new("samplecontroller.k8s.io", "v1alpha1", "Foo");
const DEPLOYMENT: Kind = Kind::new("apps", "v1", "Deployment");

#[derive(Default, Deserialize)]
#[serde(default)]
struct Foo {
    metadata: ObjectMeta,
    spec: FooSpec,
    status: FooStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FooSpec {
    deployment_name: String,
    /// `None`: keep the replicas of the Deployment.
    replicas: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FooStatus {
    available_replicas: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Deployment {
    metadata: ObjectMeta,
    spec: DeploymentSpec,
    status: DeploymentStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DeploymentSpec {
    replicas: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeploymentStatus {
    available_replicas: i32,
}

impl Deployment {
    /// Returns the replicas, with the API server's default.
    fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }
}

struct SampleController;

impl Policy for SampleController {
    fn describe() -> Description {
        let foos = Watch::new(FOO).wanted_fields(&["spec", "status"]);
        let deployments =
            Watch::new(DEPLOYMENT).wanted_fields(&["spec.replicas", "status.availableReplicas"]);
        Description::new("foo")
            .version(env!("CARGO_PKG_VERSION"))
            .controller(
                Controller::new("foos", foos)
                    .owns(deployments)
                    .event_source("sample-controller")
                    .concurrency(2)
                    // No event reports the deletion of a foreign Deployment. Upstream checks at its
                    // resync, every 30 s.
                    .retry_ms(5, 30_000)
                    .retry_bucket(50, 300),
            )
            .permission(Permission::new(DEPLOYMENT, &[Verb::Create, Verb::Patch]))
            .permission(Permission::new(FOO, &[Verb::Patch]).subresource("status"))
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let done = Outcome::await_change();
        let Some(foo) = request.object::<Foo>()? else {
            return Ok(done);
        };
        let name = &foo.spec.deployment_name;
        if name.is_empty() {
            // Only an edit can fix this, and an edit enqueues the key again.
            vmhost_plugin::error!("spec.deploymentName is missing");
            return Ok(done);
        }
        let namespace = request.key.namespace.as_deref();
        let deployment = Cluster::get::<Deployment>(&DEPLOYMENT, namespace, name)?;
        let key = ObjectKey::of(&DEPLOYMENT, namespace, name);
        let done = match &deployment {
            None => done.with(Create::new(&wanted(&foo))?),
            Some(found) if !found.metadata.is_controlled_by(&foo.metadata) => {
                return Ok(taken(&key));
            }
            Some(found) if foo.spec.replicas.is_some_and(|n| n != found.replicas()) => {
                done.with(overwrite(&key, &found.metadata.uid, wanted(&foo)))
            }
            Some(_) => done,
        };
        let available = deployment.map_or(0, |found| found.status.available_replicas);
        let done = match foo.status.available_replicas {
            Some(shown) if shown == available => done,
            _ => {
                let status = json!({ "status": { "availableReplicas": available } });
                done.with(Patch::merge(&request.key, &status)?.subresource("status"))
            }
        };
        Ok(done.with(Event::normal("Synced", "Foo synced successfully")))
    }
}

vmhost_plugin::export!(SampleController);

/// Returns the Deployment that upstream's `newDeployment` creates.
fn wanted(foo: &Foo) -> Value {
    let labels = json!({ "app": "nginx", "controller": foo.metadata.name });
    let mut deployment = json!({
        "apiVersion": DEPLOYMENT.api_version(),
        "kind": DEPLOYMENT.name(),
        "metadata": {
            "name": foo.spec.deployment_name,
            "namespace": foo.metadata.namespace,
            "ownerReferences": [OwnerReference::controller_of(&foo.metadata, &FOO)],
        },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx:latest" }] },
            },
        },
    });
    if let Some(replicas) = foo.spec.replicas {
        deployment["spec"]["replicas"] = replicas.into();
    }
    deployment
}

/// Returns the outcome if the Foo does not control the Deployment of this name.
fn taken(deployment: &ObjectKey) -> Outcome {
    let message = format!(
        "Resource {:?} already exists and is not managed by Foo",
        deployment.name
    );
    // Names the Deployment for programs, as the note does for people.
    let event = Event::warning("ErrResourceExists", &message).related(deployment);
    Outcome::retry(message).with(event)
}

/// Replaces the Deployment. As upstream, the caller compares only the replicas; the replacement
/// also reverts other manual changes.
fn overwrite(deployment: &ObjectKey, uid: &str, mut wanted: Value) -> JsonPatch {
    Patch::json(deployment)
        .test("/metadata/uid", uid)
        .add("/metadata/labels", json!({}))
        .add("/metadata/annotations", json!({}))
        .replace(
            "/metadata/ownerReferences",
            wanted["metadata"]["ownerReferences"].take(),
        )
        .replace("/spec", wanted["spec"].take())
}

#[cfg(test)]
mod tests;
