//! The example `foo`, upstream's sample-controller: what a user of Foos sees.
//! `tests/compare/sample-controller.sh` compares it with upstream's.

#![allow(clippy::disallowed_names, reason = "a Foo is what the kind is called")]

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::example::{self, User, manifests, said};
use vmhost_tests::guests::EXAMPLE_FOO;
use vmhost_tests::host::Host;
use vmhost_tests::server::TestServer;

const EXAMPLE: &str = "examples/foo/manifests/example-foo.yaml";
const API_VERSION: &str = "samplecontroller.k8s.io/v1alpha1";
const MISSING: &str = "spec.deploymentName is missing";

/// A user with a namespace of their own, and its controller.
struct Sample {
    user: User,
    namespace: String,
    host: Host,
}

impl Sample {
    async fn start(server: &TestServer) -> Result<Sample> {
        let user = User::of(server).await?;
        user.install_definitions_of("foo").await?;
        let namespace = server.namespace("foo").await?;
        let host = example::host(server)?
            .namespace(&namespace)
            .plugin(EXAMPLE_FOO)
            .ready()
            .await?;
        Ok(Sample {
            user,
            namespace,
            host,
        })
    }

    fn foo(&self, name: &str) -> String {
        format!(
            "/apis/{API_VERSION}/namespaces/{}/foos{name}",
            self.namespace
        )
    }

    fn deployment(&self, name: &str) -> String {
        format!(
            "/apis/apps/v1/namespaces/{}/deployments{name}",
            self.namespace
        )
    }

    async fn create(&self, name: &str, spec: Value) -> Result<Value> {
        let foo = json!({ "apiVersion": API_VERSION, "kind": "Foo", "metadata": { "name": name }, "spec": spec });
        self.user.create(&self.foo(""), &foo).await
    }

    /// Returns the example and its Deployment once the controller has finished both.
    async fn example(&self) -> Result<(Value, Value)> {
        let foo = manifests(EXAMPLE)?.pop().context("it holds a Foo")?;
        let foo = self.user.create(&self.foo(""), &foo).await?;
        self.until_available("example-foo", 0).await?;
        let deployment = self.until_replicas("example-foo", 1).await?;
        Ok((foo, deployment))
    }

    async fn until_replicas(&self, deployment: &str, replicas: i32) -> Result<Value> {
        let path = self.deployment(&format!("/{deployment}"));
        let what = format!("{deployment} has {replicas} replicas");
        let has = |object: &Value| object["spec"]["replicas"] == replicas;
        self.user.until(&path, &what, has).await
    }

    async fn until_available(&self, foo: &str, available: i32) -> Result<Value> {
        let path = self.foo(&format!("/{foo}"));
        let what = format!("{foo} shows {available} available replicas");
        let shows = |object: &Value| object["status"]["availableReplicas"] == available;
        self.user.until(&path, &what, shows).await
    }

    /// Creates a Deployment that does not belong to a Foo.
    async fn foreign(&self, name: &str) -> Result<Value> {
        let labels = json!({ "app": "other" });
        let containers = json!([{ "name": "other", "image": "other" }]);
        let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name }, "spec": {
            "replicas": 2, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } } } });
        self.user.create(&self.deployment(""), &deployment).await
    }

    /// Acts as the Deployment controller.
    async fn make_available(&self, deployment: &str, available: i32) -> Result<()> {
        let path = self.deployment(&format!("/{deployment}/status"));
        let status = json!({ "replicas": available, "readyReplicas": available, "availableReplicas": available });
        self.user.merge(&path, json!({ "status": status })).await?;
        Ok(())
    }

    async fn scale(&self, deployment: &str, replicas: i32) -> Result<()> {
        let path = self.deployment(&format!("/{deployment}/scale"));
        let scale = json!({ "spec": { "replicas": replicas } });
        self.user.merge(&path, scale).await?;
        Ok(())
    }

    /// Waits until a new Foo is synced: the controller has then seen all earlier changes.
    async fn settle(&self) -> Result<()> {
        let name = format!("marker-{:08x}", fastrand::u32(..));
        self.create(&name, json!({ "deploymentName": name }))
            .await?;
        self.user
            .until_event(&self.namespace, &name, "Synced")
            .await?;
        Ok(())
    }

    async fn event(&self, foo: &str, reason: &str) -> Result<Value> {
        self.user.until_event(&self.namespace, foo, reason).await
    }
}

fn image(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}

fn is_event(event: &Value, kind: &str, note: &str) -> Result<()> {
    ensure!(event["type"] == kind && event["note"] == note, "{event}");
    ensure!(
        event["reportingController"] == "sample-controller",
        "{event}"
    );
    Ok(())
}

both_servers!(a_foo_owns_a_deployment);
async fn a_foo_owns_a_deployment(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    let (foo, deployment) = sample.example().await?;
    let owner = json!([{
        "apiVersion": API_VERSION, "kind": "Foo", "name": "example-foo", "uid": foo["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    ensure!(
        deployment["metadata"]["ownerReferences"] == owner,
        "{deployment}"
    );
    ensure!(deployment["metadata"]["labels"].is_null(), "{deployment}");
    let labels = json!({ "app": "nginx", "controller": "example-foo" });
    let spec = &deployment["spec"];
    ensure!(
        spec["selector"] == json!({ "matchLabels": labels }),
        "{spec}"
    );
    ensure!(spec["template"]["metadata"]["labels"] == labels, "{spec}");
    ensure!(image(&deployment) == "nginx:latest", "{spec}");
    let event = sample.event("example-foo", "Synced").await?;
    is_event(&event, "Normal", "Foo synced successfully")
}

both_servers!(replicas_are_kept_and_nothing_else);
async fn replicas_are_kept_and_nothing_else(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    sample.example().await?;
    sample.scale("example-foo", 5).await?;
    sample.until_replicas("example-foo", 1).await?;

    // A change of the image only is left alone; a later turn shows that it was seen.
    let path = sample.deployment("/example-foo");
    let containers =
        json!([{ "name": "nginx", "image": "nginx:mine" }, { "name": "sidecar", "image": "mine" }]);
    let mine = json!({
        "metadata": { "labels": { "mine": "1" }, "annotations": { "mine": "1" } },
        "spec": { "template": { "spec": { "containers": containers } } },
    });
    sample.user.merge(&path, mine).await?;
    sample.make_available("example-foo", 2).await?;
    sample.until_available("example-foo", 2).await?;
    let deployment = sample.until_replicas("example-foo", 1).await?;
    ensure!(image(&deployment) == "nginx:mine", "{deployment}");

    // The image is reset when the replicas must be written.
    let three = json!({ "spec": { "replicas": 3 } });
    sample
        .user
        .merge(&sample.foo("/example-foo"), three)
        .await?;
    let deployment = sample.until_replicas("example-foo", 3).await?;
    ensure!(image(&deployment) == "nginx:latest", "{deployment}");
    let containers = &deployment["spec"]["template"]["spec"]["containers"];
    ensure!(
        containers.as_array().map(Vec::len) == Some(1),
        "{containers}"
    );
    for list in ["labels", "annotations"] {
        let found = &deployment["metadata"][list]["mine"];
        ensure!(found.is_null(), "{list}: {deployment}");
    }
    ensure!(
        deployment["status"]["availableReplicas"] == 2,
        "{deployment}"
    );
    Ok(())
}

both_servers!(a_foo_without_replicas_leaves_them_to_others);
async fn a_foo_without_replicas_leaves_them_to_others(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    sample
        .create("free", json!({ "deploymentName": "free" }))
        .await?;
    sample.until_replicas("free", 1).await?;
    sample.scale("free", 4).await?;
    sample.make_available("free", 4).await?;
    sample.until_available("free", 4).await?;
    sample.until_replicas("free", 4).await.map(drop)
}

both_servers!(available_replicas_are_copied);
async fn available_replicas_are_copied(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    sample.example().await?;
    sample.make_available("example-foo", 1).await?;
    sample.until_available("example-foo", 1).await?;
    let nine = json!({ "status": { "availableReplicas": 9 } });
    let status = sample.foo("/example-foo/status");
    sample.user.merge(&status, nine).await?;
    sample.until_available("example-foo", 1).await.map(drop)
}

both_servers!(a_deployment_that_is_deleted_is_made_again);
async fn a_deployment_that_is_deleted_is_made_again(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    let (_, deployment) = sample.example().await?;
    sample.make_available("example-foo", 1).await?;
    sample.until_available("example-foo", 1).await?;
    let path = sample.deployment("/example-foo");
    sample.user.delete(&path).await?;
    let uid = &deployment["metadata"]["uid"];
    let again = |object: &Value| object["metadata"]["uid"] != *uid;
    sample.user.until(&path, "it is made again", again).await?;
    sample.until_available("example-foo", 0).await.map(drop)
}

both_servers!(a_deployment_of_another_owner_is_not_taken);
async fn a_deployment_of_another_owner_is_not_taken(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    let before = sample.foreign("taken").await?;
    let spec = json!({ "deploymentName": "taken", "replicas": 3 });
    sample.create("taker", spec).await?;
    let event = sample.event("taker", "ErrResourceExists").await?;
    let message = r#"Resource "taken" already exists and is not managed by Foo"#;
    is_event(&event, "Warning", message)?;
    let related = &event["related"];
    ensure!(
        related["kind"] == "Deployment" && related["name"] == "taken",
        "{event}"
    );
    sample
        .host
        .wait_for_line(&message.replace('"', "\\\""))
        .await?;
    sample.settle().await?;
    let after = sample.until_replicas("taken", 2).await?;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    ensure!(version(&before) == version(&after), "{before} {after}");
    let foo = sample.user.get(&sample.foo("/taker")).await?;
    ensure!(foo.is_some_and(|foo| foo["status"].is_null()));

    sample.user.delete(&sample.deployment("/taken")).await?;
    sample.until_replicas("taken", 3).await?;
    sample.event("taker", "Synced").await.map(drop)
}

both_servers!(each_taken_name_has_an_event_of_its_own);
async fn each_taken_name_has_an_event_of_its_own(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    for name in ["one", "two"] {
        sample.foreign(name).await?;
    }
    sample
        .create("taker", json!({ "deploymentName": "one" }))
        .await?;
    sample.event("taker", "ErrResourceExists").await?;
    let two = json!({ "spec": { "deploymentName": "two" } });
    sample.user.merge(&sample.foo("/taker"), two).await?;
    let path = format!(
        "/apis/events.k8s.io/v1/namespaces/{}/events",
        sample.namespace
    );
    let both = |events: &Value| {
        let events = events["items"].as_array().into_iter().flatten();
        let notes: Vec<_> = events.filter_map(|event| event["note"].as_str()).collect();
        ["one", "two"].iter().all(|name| {
            notes
                .iter()
                .any(|note| note.contains(&format!("Resource {name:?}")))
        })
    };
    sample
        .user
        .until(&path, "there is an Event about each", both)
        .await
        .map(drop)
}

both_servers!(a_foo_without_a_name_is_reported_once);
async fn a_foo_without_a_name_is_reported_once(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    sample.create("nameless", json!({ "replicas": 1 })).await?;
    sample.host.wait_for_line(MISSING).await?;
    sample.settle().await?;
    let times = said(&sample.host)
        .iter()
        .filter(|line| *line == MISSING)
        .count();
    ensure!(times == 1, "said {times} times");
    let foo = sample.user.get(&sample.foo("/nameless")).await?;
    ensure!(foo.is_some_and(|foo| foo["status"].is_null()));
    let name = json!({ "spec": { "deploymentName": "named" } });
    sample.user.merge(&sample.foo("/nameless"), name).await?;
    sample.until_replicas("named", 1).await?;
    sample.event("nameless", "Synced").await.map(drop)
}

both_servers!(the_deployment_of_an_old_name_stays);
async fn the_deployment_of_an_old_name_stays(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    let (_, old) = sample.example().await?;
    let name = json!({ "spec": { "deploymentName": "renamed" } });
    sample.user.merge(&sample.foo("/example-foo"), name).await?;
    let new = sample.until_replicas("renamed", 1).await?;
    let owners = |object: &Value| object["metadata"]["ownerReferences"].clone();
    ensure!(owners(&old) == owners(&new), "{old} {new}");
    sample.scale("example-foo", 7).await?;
    sample.settle().await?;
    let left = sample.until_replicas("example-foo", 7).await?;
    ensure!(owners(&old) == owners(&left), "{old} {left}");
    Ok(())
}

both_servers!(nothing_is_made_for_a_foo_that_is_gone);
async fn nothing_is_made_for_a_foo_that_is_gone(server: &TestServer) -> Result<()> {
    let sample = Sample::start(server).await?;
    sample.example().await?;
    sample.user.delete(&sample.foo("/example-foo")).await?;
    sample.user.until_gone(&sample.foo("/example-foo")).await?;
    // A garbage collector may have deleted it already.
    let path = sample.deployment("/example-foo");
    sample.user.delete(&path).await?;
    sample.user.until_gone(&path).await?;
    sample.settle().await?;
    ensure!(sample.user.get(&path).await?.is_none(), "it came back");
    Ok(())
}
