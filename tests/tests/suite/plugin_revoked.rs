//! Rights that are taken away in the middle of a rollout: nothing is held against a candidate that
//! is not granted for a while, and a current revision that is not granted any more is nothing to go
//! back to.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::host;
use vmhost_tests::plugin_objects::{Objects, POLICIES, message};
use vmhost_tests::server::TestServer;

use crate::plugin_objects::asking;

/// The Plugin, and the name in the description of its component.
const NAME: &str = "caller";

/// The host that only the first revision may send requests to while the policy [`NARROW`] exists.
const FIRST: &str = "https://first.example.com";
const SECOND: &str = "https://second.example.com";

const NARROW: &str = "narrow";

fn policy(name: &str, host: &str) -> Value {
    json!({
        "apiVersion": "vmhost.dev/v1alpha1",
        "kind": "PluginPolicy",
        "metadata": { "name": name },
        "spec": { "grants": { "http": [host] } },
    })
}

both_servers!(what_is_revoked_holds_up_no_rollout, own);
async fn what_is_revoked_holds_up_no_rollout(server: &TestServer) -> Result<()> {
    let namespace = server.namespace("revoked").await?;
    let objects = Objects::of(server, &namespace).await?;
    let user = &objects.user;
    let upstream = json!({ "host": "unset.example.com", "urlSetting": "upstream" });
    let component = asking(NAME, &json!({ "http": [upstream] }))?;
    objects.component(NAME, &component).await?;
    user.create(POLICIES, &policy("wide", "*")).await?;
    let narrow = policy(NARROW, "first.example.com");
    let narrow_path = format!("{POLICIES}/{NARROW}");
    let spec = json!({
        "settings": { "upstream": FIRST },
        "rollout": { "strategy": "Canary", "steps": [{ "weight": 50 }] },
    });
    objects.plugin(NAME, spec).await?;
    let host = host::on(&server.kubeconfig())?
        .arg(format!("--plugins-from-cluster={namespace}"))
        .args(["--host-name", "one"])
        .namespace(&namespace)
        .ready()
        .await?;
    let first = objects
        .until(NAME, "Available", "True", "Available")
        .await?;
    let one = first["status"]["currentRevision"].clone();
    let path = objects.at(NAME);
    let want = async |upstream: &str| {
        let spec = json!({ "spec": { "settings": { "upstream": upstream } } });
        user.merge(&path, spec).await.map(drop)
    };

    // The candidate is not granted for a while.
    want(SECOND).await?;
    let tried = objects.until(NAME, "Progressing", "True", "Canary").await?;
    ensure!(tried["status"]["currentRevision"] == one, "{tried}");
    user.create(POLICIES, &narrow).await?;
    let denied = objects.until(NAME, "Granted", "False", "Denied").await?;
    let why = message(&denied, "Granted");
    ensure!(why.contains("second.example.com"), "{why}");
    ensure!(denied["status"]["currentRevision"] == one, "{denied}");
    host.wait_for_line("the candidate is aborted").await?;
    user.delete(&narrow_path).await?;
    let again = objects.until(NAME, "Progressing", "True", "Canary").await?;
    ensure!(again["status"]["refusedRevision"].is_null(), "{again}");

    // The current revision is not granted any more, while the first one is tried again.
    host.end_canary(NAME, "promote").await?;
    let promoted = user.until(&path, "the second is current", |plugin| {
        let current = &plugin["status"]["currentRevision"];
        current.is_string() && *current != one
    });
    promoted.await?;
    want(FIRST).await?;
    let tries_first = user.until(&path, "the first is tried", |plugin| {
        plugin["status"]["candidateRevision"] == one
    });
    tries_first.await?;
    user.create(POLICIES, &narrow).await?;
    host.wait_for_line("taken off this host").await?;
    let runs = user.until(&path, "the first runs", |plugin| {
        plugin["status"]["currentRevision"] == one
    });
    runs.await?;
    let done = objects
        .until(NAME, "Available", "True", "Available")
        .await?;
    ensure!(done["status"]["refusedRevision"].is_null(), "{done}");
    let state = host.state().await?;
    let running = state.plugins.first().context("nothing runs")?;
    ensure!(running.name == NAME, "{state:?}");
    Ok(())
}
