//! Lists with nothing in them and times that are not set, which Go prints as null: both servers do,
//! and nobody owns them.

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::net::{JSON, send};
use vmhost_tests::server::TestServer;

both_servers!(empty_lists_are_null);
async fn empty_lists_are_null(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let namespace = server.namespace("empty-lists").await?;
    let rbac = "apis/rbac.authorization.k8s.io/v1";
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" });
    let scaled = json!({ "spec": { "scaleTargetRef": target, "maxReplicas": 1 } });
    let driver = json!({ "name": "a.b", "nodeID": "n" });
    let volume = json!({ "name": "v", "projected": {} });
    let container = json!({ "name": "c", "image": "x:1" });
    for (path, object, nulls) in [
        (format!("{rbac}/clusterroles"), json!({}), &["/rules"][..]),
        (
            format!("{rbac}/namespaces/{namespace}/roles"),
            json!({}),
            &["/rules"],
        ),
        (
            format!("apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"),
            json!({ "addressType": "IPv4" }),
            &["/endpoints", "/ports"],
        ),
        (
            format!("apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"),
            scaled,
            &["/status/currentMetrics"],
        ),
        (
            format!("api/v1/namespaces/{namespace}/limitranges"),
            json!({ "spec": {} }),
            &["/spec/limits"],
        ),
        (
            format!("api/v1/namespaces/{namespace}/events"),
            json!({ "involvedObject": { "namespace": namespace } }),
            &["/eventTime", "/firstTimestamp", "/lastTimestamp"],
        ),
        (
            "apis/storage.k8s.io/v1/csinodes".to_owned(),
            json!({ "spec": {} }),
            &["/spec/drivers"],
        ),
        (
            "apis/storage.k8s.io/v1/csinodes".to_owned(),
            json!({ "spec": { "drivers": [driver] } }),
            &["/spec/drivers/0/topologyKeys"],
        ),
        (
            format!("apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"),
            json!({ "spec": {} }),
            &["/spec/devices/requests"],
        ),
        (
            format!("api/v1/namespaces/{namespace}/pods"),
            json!({ "spec": { "containers": [container], "volumes": [volume] } }),
            &["/spec/volumes/0/projected/sources"],
        ),
    ] {
        let mut object = object;
        object["metadata"] = json!({ "name": "empty" });
        let path = format!("/{path}?dryRun=All");
        let (code, made) = send(&client, Method::POST, &path, JSON, &object).await?;
        ensure!(code == 201, "{path}: {code} {made}");
        let owned = made["metadata"]["managedFields"].to_string();
        for null in nulls {
            ensure!(made.pointer(null) == Some(&Value::Null), "{null}: {made}");
            let name = null.rsplit('/').next().context("a path has a name")?;
            let is_owned = owned.contains(&format!("\"f:{name}\""));
            // What is in a new item of a list is owned with it.
            let in_item = ["topologyKeys", "sources"].contains(&name);
            ensure!(is_owned == in_item, "{name}: {owned}");
        }
    }
    Ok(())
}
