//! The example `app`: a controller in the style of kubebuilder, through an App's whole life.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::example::{User, host, manifests};
use vmhost_tests::guests::EXAMPLE_APP;
use vmhost_tests::host::Host;
use vmhost_tests::real::Options;
use vmhost_tests::server::TestServer;
use vmhost_tests::{both_servers, run};

use crate::rbac::Runner;

const REGISTRY: &str = "/api/v1/namespaces/default/configmaps/app-registry";
const CONCURRENT: &str = "controller_runtime_max_concurrent_reconciles";

/// Sets up what the example requires.
async fn set_up(server: &TestServer) -> Result<User> {
    let user = User::of(server).await?;
    user.install_definitions_of("app").await?;
    if user.get(REGISTRY).await?.is_none() {
        let registry = manifests("examples/app/manifests/registry.yaml")?;
        // Another test may have created it.
        let _ = user
            .create("/api/v1/namespaces/default/configmaps", &registry[0])
            .await;
    }
    Ok(user)
}

/// A namespace with the example's controller.
struct Cluster {
    user: User,
    namespace: String,
    host: Host,
}

impl Cluster {
    async fn start(server: &TestServer) -> Result<Cluster> {
        let user = set_up(server).await?;
        let namespace = server.namespace("app").await?;
        let host = host(server)?
            .namespace(&namespace)
            .plugin(EXAMPLE_APP)
            .ready()
            .await?;
        Ok(Cluster {
            user,
            namespace,
            host,
        })
    }

    /// Starts a host with exactly the rights that `vmhost rbac` prints.
    async fn start_with_least_rights(server: &TestServer) -> Result<Cluster> {
        let user = set_up(server).await?;
        let runner = Runner::of(server, EXAMPLE_APP).await?;
        runner.apply(&runner.yaml(&[]).await?).await?;
        Ok(Cluster {
            user,
            namespace: runner.vms.namespace().to_owned(),
            host: runner.host()?.ready().await?,
        })
    }

    fn path(&self, collection: &str, name: &str) -> String {
        let (api, plural) = collection.rsplit_once('/').unwrap_or_default();
        format!("{api}/namespaces/{}/{plural}/{name}", self.namespace)
    }

    fn app(&self) -> String {
        self.path("/apis/example.com/v1/apps", "web")
    }

    fn deployment(&self) -> String {
        self.path("/apis/apps/v1/deployments", "web")
    }

    fn config_map(&self) -> String {
        self.path("/api/v1/configmaps", "web")
    }

    async fn create(&self, collection: &str, object: &Value) -> Result<Value> {
        let path = self.path(collection, "");
        self.user.create(path.trim_end_matches('/'), object).await
    }

    async fn create_app(&self) -> Result<Value> {
        let mut app = manifests("examples/app/manifests/web.yaml")?
            .pop()
            .context("it holds the App")?;
        app["metadata"] = json!({ "name": "web" });
        self.create("/apis/example.com/v1/apps", &app).await
    }

    async fn create_secret(&self) -> Result<Value> {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "web", "labels": { "example.com/app": "web" } }, "stringData": { "TOKEN": "one" } });
        self.create("/api/v1/secrets", &secret).await
    }

    /// Writes the status of the Deployment's controller, which the servers of these tests do not
    /// run.
    async fn run_pods(&self, available: i64) -> Result<()> {
        let deployment = self
            .user
            .get(&self.deployment())
            .await?
            .context("it is there")?;
        let status = json!({ "status": {
            "observedGeneration": deployment["metadata"]["generation"], "replicas": available,
            "readyReplicas": available, "availableReplicas": available, "updatedReplicas": available } });
        self.user
            .merge(&format!("{}/status", self.deployment()), status)
            .await
            .map(drop)
    }

    /// Waits until a condition of the App has this status and reason, for its newest generation.
    async fn until_condition(&self, type_: &str, status: &str, reason: &str) -> Result<Value> {
        let what = format!("the App is {type_}={status}, {reason}");
        let path = self.app();
        let app = self.user.until(&path, &what, |app| {
            condition(app, type_).is_some_and(|found| {
                found["status"] == status
                    && found["reason"] == reason
                    && found["observedGeneration"] == app["metadata"]["generation"]
            })
        });
        app.await
    }

    async fn registered(&self) -> Result<Option<Value>> {
        let registry = self
            .user
            .get(REGISTRY)
            .await?
            .context("the registry is there")?;
        Ok(registry["data"]
            .get(format!("{}.web", self.namespace))
            .cloned())
    }
}

fn condition<'a>(app: &'a Value, type_: &str) -> Option<&'a Value> {
    let conditions = app["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == type_)
}

both_servers!(an_apps_whole_life);
async fn an_apps_whole_life(server: &TestServer) -> Result<()> {
    whole_life(&Cluster::start(server).await?).await
}

/// As a service account, on a server that requires a permission before an owner reference may block
/// its owner's deletion.
#[test]
fn least_rights_are_enough_for_an_apps_whole_life() {
    let enforced = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";
    let options = Options {
        flags: vec![enforced.to_owned()],
        ..Options::default()
    };
    run::real_only(
        "least_rights_are_enough_for_an_apps_whole_life",
        options,
        async |server| {
            let cluster = Cluster::start_with_least_rights(server).await?;
            whole_life(&cluster).await?;
            let refused = |line: &&String| line.contains("forbidden");
            let output = cluster.host.output();
            let refused: Vec<_> = output.iter().filter(refused).collect();
            ensure!(refused.is_empty(), "{refused:#?}");
            Ok(())
        },
    );
}

async fn whole_life(cluster: &Cluster) -> Result<()> {
    let (user, namespace) = (&cluster.user, &cluster.namespace);

    // Without its Secret the App is degraded, and nothing is created.
    let app = cluster.create_app().await?;
    let degraded = cluster
        .until_condition("Degraded", "True", "SecretNotFound")
        .await?;
    ensure!(
        degraded["metadata"]["finalizers"] == json!(["example.com/cleanup"]),
        "{degraded}"
    );
    ensure!(degraded["status"]["observedGeneration"] == 1, "{degraded}");
    ensure!(user.get(&cluster.deployment()).await?.is_none());
    ensure!(cluster.registered().await?.is_none());

    // The Secret wakes the App through its label.
    cluster.create_secret().await?;
    let progressing = cluster
        .until_condition("Ready", "False", "Progressing")
        .await?;
    ensure!(condition(&progressing, "Degraded").is_some_and(|found| found["status"] == "False"));
    let deployment = user
        .get(&cluster.deployment())
        .await?
        .context("it is made")?;
    for path in [
        &cluster.deployment(),
        &cluster.config_map(),
        &cluster.path("/api/v1/services", "web"),
    ] {
        let child = user
            .get(path)
            .await?
            .with_context(|| format!("{path} is made"))?;
        let owner = &child["metadata"]["ownerReferences"][0];
        ensure!(
            owner["uid"] == app["metadata"]["uid"] && owner["controller"] == true,
            "{child}"
        );
        ensure!(
            owner["blockOwnerDeletion"] == true && owner["kind"] == "App",
            "{child}"
        );
    }
    ensure!(deployment["spec"]["replicas"] == 2, "{deployment}");
    ensure!(cluster.registered().await?.as_ref() == Some(&app["metadata"]["uid"]));
    let event = user.until_event(namespace, "web", "Created").await?;
    ensure!(event["reportingController"] == "app-controller", "{event}");

    // One of two pods is not enough; a status change of the Deployment wakes its owner.
    cluster.run_pods(1).await?;
    let half = user
        .until(&cluster.app(), "one replica is available", |app| {
            app["status"]["availableReplicas"] == 1
        })
        .await?;
    let since =
        |app: &Value| condition(app, "Ready").map(|ready| ready["lastTransitionTime"].clone());
    ensure!(
        since(&half) == since(&progressing),
        "not ready since then: {half}"
    );
    cluster.run_pods(2).await?;
    cluster
        .until_condition("Ready", "True", "Available")
        .await?;
    user.until_event(namespace, "web", "Ready").await?;

    // Foreign changes to its children are reverted; changes of the App and the Secret are applied
    // to them.
    user.merge(
        &cluster.config_map(),
        json!({ "data": { "message": "by hand" } }),
    )
    .await?;
    user.until(&cluster.config_map(), "the edit is undone", |map| {
        map["data"]["message"] == "hello"
    })
    .await?;
    user.delete(&cluster.path("/api/v1/services", "web"))
        .await?;
    user.until(
        &cluster.path("/api/v1/services", "web"),
        "it is made again",
        |_| true,
    )
    .await?;
    user.merge(&cluster.app(), json!({ "spec": { "message": "good day" } }))
        .await?;
    user.until(&cluster.config_map(), "the message follows", |map| {
        map["data"]["message"] == "good day"
    })
    .await?;
    let secret = user
        .merge(
            &cluster.path("/api/v1/secrets", "web"),
            json!({ "stringData": { "TOKEN": "two" } }),
        )
        .await?;
    let pointer = "/spec/template/metadata/annotations/example.com~1secret-version";
    user.until(&cluster.deployment(), "the pods are rolled", |deployment| {
        deployment.pointer(pointer) == secret.pointer("/metadata/resourceVersion")
    })
    .await?;

    // The App leaves the registry before it is deleted.
    user.delete(&cluster.app()).await?;
    user.until_gone(&cluster.app()).await?;
    ensure!(
        cluster.registered().await?.is_none(),
        "its entry is left in the registry"
    );
    let metrics = cluster.host.metrics().await?;
    ensure!(metrics.sum(CONCURRENT, &[("controller", "app/apps")]) == 10.0);
    Ok(())
}

both_servers!(what_is_not_its_own_is_not_taken_over);
async fn what_is_not_its_own_is_not_taken_over(server: &TestServer) -> Result<()> {
    let cluster = Cluster::start(server).await?;
    let foreign = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "web" }, "data": { "mine": "yes" } });
    let foreign = cluster.create("/api/v1/configmaps", &foreign).await?;
    cluster.create_secret().await?;
    cluster.create_app().await?;
    let degraded = cluster
        .until_condition("Degraded", "True", "NameTaken")
        .await?;
    let message = condition(&degraded, "Degraded").map(|found| found["message"].clone());
    ensure!(
        message == Some(json!("ConfigMap web exists and is not this App's")),
        "{degraded}"
    );
    let after = cluster.user.get(&cluster.config_map()).await?;
    ensure!(
        after.as_ref() == Some(&foreign),
        "{foreign} became {after:?}"
    );
    ensure!(cluster.user.get(&cluster.deployment()).await?.is_none());

    // No event reports the deletion of a foreign object, because it has no owner: RequeueAfter
    // notices it.
    cluster.user.delete(&cluster.config_map()).await?;
    cluster
        .until_condition("Ready", "False", "Progressing")
        .await?;
    Ok(())
}
