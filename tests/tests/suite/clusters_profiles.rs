//! Clusters of the ClusterProfile API: a profile with a Secret beside it is a cluster, and one
//! without is reported with what it lacks.

use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::fleet::{Pair, marked, text, until_phase};
use vmhost_tests::guests::EXAMPLE_FLEET;
use vmhost_tests::host;
use vmhost_tests::server::TestServer;

/// The definition of ClusterProfile, without a schema of its fields.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "clusterprofiles.multicluster.x-k8s.io" },
        "spec": {
            "group": "multicluster.x-k8s.io",
            "scope": "Namespaced",
            "names": {
                "kind": "ClusterProfile",
                "listKind": "ClusterProfileList",
                "plural": "clusterprofiles",
                "singular": "clusterprofile",
            },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

fn profile(name: &str) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "kind": "ClusterProfile",
        "metadata": { "name": name },
        "spec": { "displayName": name, "clusterManager": { "name": "tests" } },
    })
}

fn secret(name: &str, consumer: &str, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name, "labels": {
            "x-k8s.io/cluster-profile": "east",
            "x-k8s.io/cluster-inventory-consumer": consumer,
        } },
        "data": { "Config": BASE64_STANDARD.encode(kubeconfig) },
    })
}

both_servers!(a_profile_with_its_secret_is_a_cluster, own);
async fn a_profile_with_its_secret_is_a_cluster(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let Pair {
        user, east, there, ..
    } = &pair;
    user.install(&definition()).await?;
    let fleet = home.namespace("fleet").await?;
    let far = east.namespace("far").await?;
    let group = "/apis/multicluster.x-k8s.io/v1alpha1";
    let profiles = format!("{group}/namespaces/{fleet}/clusterprofiles");
    let secrets = format!("/api/v1/namespaces/{fleet}/secrets");
    user.create(&profiles, &profile("east")).await?;
    user.create(&profiles, &profile("alone")).await?;
    // The credentials of another consumer are not for this host.
    user.create(&secrets, &secret("others", "other", "clusters: 1"))
        .await?;
    let host = host::on(&home.kubeconfig())?
        .plugin(EXAMPLE_FLEET)
        .args(["--clusters", &format!("clusterprofiles:{fleet}")])
        .ready()
        .await?;
    let missing = "x-k8s.io/cluster-profile: alone";
    until_phase(&host, "alone", "refused", missing).await?;
    user.until_event(&fleet, "alone", "ClusterRefused").await?;
    until_phase(&host, "east", "refused", "runs none").await?;

    let kubeconfig = text(&east.kubeconfig())?;
    user.create(&secrets, &secret("own", "vmhost", &kubeconfig))
        .await?;
    marked(there, &far, "one", "east").await?;
    until_phase(&host, "east", "up", "").await?;

    user.create(&secrets, &secret("second", "vmhost", &kubeconfig))
        .await?;
    until_phase(&host, "east", "refused", "own and second are both for it").await?;
    user.delete(&format!("{secrets}/second")).await?;
    marked(there, &far, "two", "east").await?;

    user.delete(&format!("{profiles}/east")).await?;
    host.wait_for_line("cluster east: removed").await?;
    Ok(())
}
