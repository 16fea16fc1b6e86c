//! What a service keeps and loses when its type changes.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::json;
use vmhost_tests::both_servers;
use vmhost_tests::net::{JSON, MERGE, send};
use vmhost_tests::server::TestServer;

/// What a service of any type has here.
const ALWAYS: [&str; 3] = ["ports", "sessionAffinity", "type"];
const IN_CLUSTER: [&str; 5] = [
    "clusterIP",
    "clusterIPs",
    "internalTrafficPolicy",
    "ipFamilies",
    "ipFamilyPolicy",
];

both_servers!(a_service_loses_what_its_type_does_not_need);
async fn a_service_loses_what_its_type_does_not_need(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let namespace = server.namespace("service-types").await?;
    let path = format!("/api/v1/namespaces/{namespace}/services");
    let spec = json!({ "type": "NodePort", "ports": [{ "port": 80 }] });
    let new = json!({ "metadata": { "name": "s" }, "spec": spec });
    let (code, made) = send(&client, Method::POST, &path, JSON, &new).await?;
    ensure!(code == 201, "{code} {made}");
    let address = made["spec"]["clusterIP"].clone();
    let path = format!("{path}/s");
    for (kind, is_open, more, keeps_address) in [
        ("ClusterIP", false, &[][..], true),
        (
            "LoadBalancer",
            true,
            &["externalTrafficPolicy", "allocateLoadBalancerNodePorts"],
            true,
        ),
        ("NodePort", true, &["externalTrafficPolicy"], true),
        ("ExternalName", false, &["externalName"], false),
        ("ClusterIP", false, &["externalName"], false),
    ] {
        let mut patch = json!({ "spec": { "type": kind } });
        if kind == "ExternalName" {
            patch["spec"]["externalName"] = json!("a.b");
        }
        let (code, made) = send(&client, Method::PATCH, &path, MERGE, &patch).await?;
        ensure!(code == 200, "{kind}: {code} {made}");
        let spec = made["spec"].as_object().context("a service has a spec")?;
        let in_cluster = if kind == "ExternalName" {
            &[][..]
        } else {
            &IN_CLUSTER
        };
        let all = ALWAYS.iter().chain(in_cluster).chain(more);
        let expected: BTreeSet<&str> = all.copied().collect();
        let found: BTreeSet<&str> = spec.keys().map(String::as_str).collect();
        ensure!(found == expected, "{kind}: {made}");
        let port = &spec["ports"][0]["nodePort"];
        ensure!(port.is_null() != is_open, "{kind}: {made}");
        let same = spec.get("clusterIP") == Some(&address);
        ensure!(same == keeps_address, "{kind}: {made}");
    }
    let kept = json!({ "spec": { "ports": [{ "port": 80, "nodePort": 30_123 }] } });
    let (code, refused) = send(&client, Method::PATCH, &path, MERGE, &kept).await?;
    let field = &refused["details"]["causes"][0]["field"];
    ensure!(
        code == 422 && field == "spec.ports[0].nodePort",
        "{code} {refused}"
    );
    Ok(())
}
