//! The example `endpoints-logger`: it logs the event, the key and the object as one line of JSON,
//! and drops a key that keeps failing after five retries.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::example::{User, host, manifests, said, until_said};
use vmhost_tests::expect::RECONCILE_ERRORS;
use vmhost_tests::guests::{EXAMPLE_ENDPOINTS_LOGGER, PolicyFile, Way, read, with_comment};
use vmhost_tests::server::TestServer;

const MANIFEST: &str = "examples/endpoints-logger/manifests/endpoints.yaml";

/// Returns the example's Endpoints under this name, without the namespace.
fn endpoints(name: &str) -> Result<Value> {
    let mut object = manifests(MANIFEST)?.pop().context("it holds an object")?;
    object["metadata"] = json!({ "name": name });
    Ok(object)
}

fn collection(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/endpoints")
}

/// Returns the object in a line.
fn object(line: &str) -> Result<Value> {
    let start = line.find('{').context("no JSON")?;
    serde_json::from_str(&line[start..]).with_context(|| line.to_owned())
}

both_servers!(each_change_is_one_line);
async fn each_change_is_one_line(server: &TestServer) -> Result<()> {
    let user = User::of(server).await?;
    let (namespace, other) = (server.namespace("ep").await?, server.namespace("ep").await?);
    let component = read(EXAMPLE_ENDPOINTS_LOGGER)?;
    let policy = PolicyFile::new("endpoints-logger", &component)?;
    user.create(&collection(&other), &endpoints("elsewhere")?)
        .await?;
    user.create(&collection(&namespace), &endpoints("early")?)
        .await?;
    let host = host(server)?
        .namespace(&namespace)
        .plugin(policy.path())
        .ready()
        .await?;
    until_said(&host, &format!("Added {namespace}/early ")).await?;

    user.create(&collection(&namespace), &endpoints("web")?)
        .await?;
    let added = object(&until_said(&host, &format!("Added {namespace}/web ")).await?)?;
    ensure!(
        added["kind"] == "Endpoints" && added["apiVersion"] == "v1",
        "{added}"
    );
    ensure!(
        added["subsets"][0]["addresses"][1]["ip"] == "10.0.0.12",
        "{added}"
    );

    let web = format!("{}/web", collection(&namespace));
    let fewer = json!({ "subsets": [{ "addresses": [{ "ip": "10.0.0.13" }], "ports": [{ "port": 8080 }] }] });
    user.merge(&web, fewer).await?;
    let updated = object(&until_said(&host, &format!("Updated {namespace}/web ")).await?)?;
    ensure!(
        updated["subsets"][0]["addresses"] == json!([{ "ip": "10.0.0.13" }]),
        "{updated}"
    );

    // A swap wakes all keys, although nothing has changed.
    policy.swap(&with_comment(&component, "again"), Way::Rename)?;
    host.wait_for_line("swapped endpoints-logger").await?;

    user.delete(&web).await?;
    let deleted = object(&until_said(&host, &format!("Deleted {namespace}/web ")).await?)?;
    ensure!(
        deleted["metadata"]["uid"] == added["metadata"]["uid"],
        "{deleted}"
    );
    ensure!(
        deleted["subsets"] == updated["subsets"],
        "the last known object: {deleted}"
    );

    // The swap woke the key before `web` was deleted, and this change wakes it again.
    user.merge(
        &format!("{}/early", collection(&namespace)),
        json!({ "metadata": { "labels": { "a": "b" } } }),
    )
    .await?;
    until_said(&host, &format!("Updated {namespace}/early ")).await?;
    let said = said(&host);
    ensure!(
        said.len() == 5,
        "one line for each change, of this namespace only: {said:#?}"
    );
    Ok(())
}

both_servers!(a_key_that_keeps_failing_is_dropped_and_reported);
async fn a_key_that_keeps_failing_is_dropped_and_reported(server: &TestServer) -> Result<()> {
    let user = User::of(server).await?;
    let namespace = server.namespace("ep").await?;
    let mut large = endpoints("large")?;
    large["metadata"]["annotations"] = json!({ "padding": "x".repeat(64 * 1024) });
    user.create(&collection(&namespace), &large).await?;
    let host = host(server)?
        .namespace(&namespace)
        .plugin(EXAMPLE_ENDPOINTS_LOGGER)
        .ready()
        .await?;
    host.wait_for_line("given up after 5 retries").await?;
    let label = [("controller", "endpoints-logger/endpoints")];
    // The first turn and five retries, the last of which drops the key. A turn is counted after its
    // decision.
    let metrics = host.until_metric(RECONCILE_ERRORS, &label, 6.0).await?;
    let errors = metrics.sum(RECONCILE_ERRORS, &label);
    ensure!(errors == 6.0, "{errors} errors");
    ensure!(metrics.sum("vmhost_retries_exhausted_total", &label) == 1.0);
    ensure!(said(&host).is_empty(), "half an object was printed");

    // A change of the object enqueues the key again.
    let path = format!("{}/large", collection(&namespace));
    user.merge(&path, json!({ "metadata": { "annotations": null } }))
        .await?;
    until_said(&host, &format!("Added {namespace}/large ")).await?;
    Ok(())
}
