//! The kinds that controllers work with, on the embedded server and on a real one: their defaults,
//! scaling, patches and partial forms, and how a watch sees the deletion of a kind.
//!
//! Garbage collection is not tested here, because the real server has no controllers, so nothing
//! collects there.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use futures_util::AsyncBufReadExt;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::net::{self, APPLY, MERGE};
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A client with paths, bodies and status codes.
struct Plain(Client);

impl Plain {
    async fn of(server: &TestServer) -> Result<Plain> {
        Ok(Plain(server.client().await?))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: &Value,
    ) -> Result<(u16, Value)> {
        net::send(&self.0, method, path, media, body).await
    }

    /// Sends a request that must succeed.
    async fn ok(&self, method: Method, path: &str, media: &str, body: &Value) -> Result<Value> {
        match self.send(method.clone(), path, media, body).await? {
            (200..=299, value) => Ok(value),
            (code, value) => bail!("{method} {path}: {code} {value}"),
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ok(Method::POST, path, "application/json", body).await
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.ok(Method::GET, path, "", &Value::Null).await
    }

    async fn get_as(&self, path: &str, accept: &str) -> Result<Value> {
        let request = Request::get(path)
            .header("accept", accept)
            .body(Vec::new())?;
        match net::answer(&self.0, request).await? {
            (200, value) => Ok(value),
            (code, value) => bail!("GET {path} as {accept}: {code} {value}"),
        }
    }

    async fn patch(&self, path: &str, media: &str, body: &Value) -> Result<Value> {
        self.ok(Method::PATCH, path, media, body).await
    }

    /// Returns the events of a watch until `enough`, or until its end.
    async fn watch(
        &self,
        path: &str,
        accept: &str,
        enough: impl Fn(&[Value]) -> bool,
    ) -> Result<Vec<Value>> {
        let request = Request::get(path)
            .header("accept", accept)
            .body(Vec::new())?;
        let mut lines = self.0.request_stream(request).await?;
        let mut events: Vec<Value> = Vec::new();
        let reading = async {
            while !enough(&events) {
                let mut line = String::new();
                if lines.read_line(&mut line).await? == 0 {
                    break;
                }
                events.push(serde_json::from_str(&line).context("reading an event")?);
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), reading)
            .await
            .with_context(|| format!("watching {path}"))??;
        Ok(events)
    }
}

/// Removes what differs between two creations.
fn timeless(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
            "namespace",
        ] {
            metadata.remove(field);
        }
    }
    object
}

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "x" } },
        "spec": {
            "containers": [{
                "name": "web", "image": "nginx",
                "ports": [{ "containerPort": 80 }],
                "env": [{ "name": "A", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
                "livenessProbe": { "httpGet": { "port": 80 } },
            }],
            "volumes": [{ "name": "c", "configMap": { "name": "c" } }, { "name": "e" }],
        },
    })
}

/// Returns the template as the server returns it.
fn filled_template() -> Value {
    let mut filled = template();
    let spec = json!({
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "securityContext": {}, "schedulerName": "default-scheduler",
        "containers": [{
            "name": "web", "image": "nginx", "imagePullPolicy": "Always", "resources": {},
            "ports": [{ "containerPort": 80, "protocol": "TCP" }],
            "env": [{ "name": "A", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } } }],
            "livenessProbe": {
                "httpGet": { "path": "/", "port": 80, "scheme": "HTTP" },
                "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
            },
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        }],
        "volumes": [{ "name": "c", "configMap": { "name": "c", "defaultMode": 420 } }, { "name": "e", "emptyDir": {} }],
    });
    filled["spec"] = spec;
    filled
}

both_servers!(workloads_are_filled_in);
async fn workloads_are_filled_in(server: &TestServer) -> Result<()> {
    let plain = Plain::of(server).await?;
    let namespace = server.namespace("filled").await?;
    let selector = json!({ "matchLabels": { "app": "x" } });
    let spec = json!({ "selector": selector, "template": template() });
    let cases = [
        (
            "deployments",
            json!({
                "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } },
                "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            }),
            json!({}),
        ),
        ("replicasets", json!({}), json!({ "replicas": 0 })),
        (
            "statefulsets",
            json!({
                "serviceName": "", "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10,
                "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
                "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain", "whenScaled": "Retain" },
            }),
            json!({ "replicas": 0, "availableReplicas": 0 }),
        ),
    ];
    for (plural, more, status) in cases {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/{plural}");
        let made = plain
            .post(&path, &json!({ "metadata": { "name": "x" }, "spec": spec }))
            .await?;
        let mut expected =
            json!({ "replicas": 1, "selector": selector, "template": filled_template() });
        for (field, value) in more.as_object().context("more is an object")? {
            expected[field] = value.clone();
        }
        ensure!(made["spec"] == expected, "{plural}: {}", made["spec"]);
        ensure!(made["status"] == status, "{plural}: {}", made["status"]);
        ensure!(made["metadata"]["generation"] == 1);
        let object = format!("{path}/x");
        for (patch, generation) in [
            (json!({ "metadata": { "labels": { "l": "1" } } }), 1),
            (json!({ "status": { "replicas": 7 } }), 1),
            (json!({ "spec": { "replicas": 2 } }), 2),
            (json!({ "spec": { "replicas": 2 } }), 2),
        ] {
            let now = plain.patch(&object, MERGE, &patch).await?;
            ensure!(
                now["metadata"]["generation"] == generation,
                "{plural} {patch}: {now}"
            );
            ensure!(now["status"] == status, "{plural} {patch}: {now}");
        }
        let annotated = json!({ "metadata": { "annotations": { "a": "1" } } });
        let now = plain.patch(&object, MERGE, &annotated).await?;
        let expected = if plural == "deployments" { 3 } else { 2 };
        ensure!(now["metadata"]["generation"] == expected, "{plural}: {now}");
        let up = json!({ "spec": { "replicas": 9 }, "status": { "replicas": 2 } });
        let now = plain.patch(&format!("{object}/status"), MERGE, &up).await?;
        ensure!(
            now["spec"]["replicas"] == 2 && now["status"]["replicas"] == 2,
            "{now}"
        );
        ensure!(now["metadata"]["generation"] == expected, "{plural}: {now}");
    }
    Ok(())
}

both_servers!(pods_services_and_endpoints_are_filled_in);
async fn pods_services_and_endpoints_are_filled_in(server: &TestServer) -> Result<()> {
    let plain = Plain::of(server).await?;
    let namespace = server.namespace("core").await?;
    let at = |plural: &str| format!("/api/v1/namespaces/{namespace}/{plural}");
    let container =
        json!({ "name": "c", "image": "x:1", "resources": { "limits": { "cpu": "1" } } });
    let pod = json!({ "metadata": { "name": "x" }, "spec": { "containers": [container] } });
    let pod = timeless(plain.post(&at("pods"), &pod).await?);
    let missing = |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x", "generation": 1 },
        "spec": {
            "containers": [{
                "name": "c", "image": "x:1", "imagePullPolicy": "IfNotPresent",
                "resources": { "limits": { "cpu": "1" }, "requests": { "cpu": "1" } },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "securityContext": {}, "schedulerName": "default-scheduler", "priority": 0,
            "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [missing("node.kubernetes.io/not-ready"), missing("node.kubernetes.io/unreachable")],
        },
        "status": { "phase": "Pending", "qosClass": "Burstable" },
    });
    ensure!(pod == expected, "{pod}");

    let service = json!({ "metadata": { "name": "x" }, "spec": { "selector": { "a": "b" }, "ports": [{ "port": 80 }] } });
    let mut made = timeless(plain.post(&at("services"), &service).await?);
    let address = made["spec"]["clusterIP"]
        .as_str()
        .context("a service has an address")?
        .to_owned();
    ensure!(address.starts_with("10."), "{address}");
    ensure!(made["spec"]["clusterIPs"] == json!([address]));
    for field in ["clusterIP", "clusterIPs"] {
        made["spec"][field] = json!("-");
    }
    let expected = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "x" },
        "spec": {
            "selector": { "a": "b" }, "ports": [{ "port": 80, "protocol": "TCP", "targetPort": 80 }],
            "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "clusterIP": "-", "clusterIPs": "-",
        },
        "status": { "loadBalancer": {} },
    });
    ensure!(made == expected, "{made}");
    let path = format!("{}/x", at("services"));
    let again = plain
        .ok(Method::PUT, &path, "application/json", &service)
        .await?;
    ensure!(again["spec"]["clusterIP"] == address.as_str(), "{again}");
    // The server may have chosen any of these addresses itself.
    let mut others = ["10.0.0.251", "10.0.0.252"].into_iter();
    let other = others.find(|other| *other != address);
    let other = json!({ "spec": { "clusterIP": other } });
    let (code, refusal) = plain.send(Method::PATCH, &path, MERGE, &other).await?;
    let field = refusal["details"]["causes"][0]["field"].clone();
    ensure!(
        (code, field.as_str()) == (422, Some("spec.clusterIPs[0]")),
        "{code} {refusal}"
    );

    let subsets = json!([{ "addresses": [{ "ip": "10.1.1.1" }], "ports": [{ "port": 80 }] }]);
    let made = plain
        .post(
            &at("endpoints"),
            &json!({ "metadata": { "name": "e" }, "subsets": subsets }),
        )
        .await?;
    ensure!(
        made["subsets"][0]["ports"] == json!([{ "port": 80, "protocol": "TCP" }]),
        "{made}"
    );
    let secret =
        json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" }, "data": { "c": "ZA==" } });
    let made = plain.post(&at("secrets"), &secret).await?;
    ensure!(
        made["data"] == json!({ "a": "Yg==", "c": "ZA==" }) && made["type"] == "Opaque",
        "{made}"
    );
    ensure!(made.get("stringData").is_none(), "{made}");
    Ok(())
}

both_servers!(a_deployment_is_scaled);
async fn a_deployment_is_scaled(server: &TestServer) -> Result<()> {
    let plain = Plain::of(server).await?;
    let namespace = server.namespace("scale").await?;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let selector = json!({ "matchLabels": { "app": "x" }, "matchExpressions": [{ "key": "app", "operator": "Exists" }] });
    let spec = json!({ "selector": selector, "template": template() });
    plain
        .post(&path, &json!({ "metadata": { "name": "x" }, "spec": spec }))
        .await?;
    let scale = format!("{path}/x/scale");
    let seen = plain.get(&scale).await?;
    ensure!(
        seen["kind"] == "Scale" && seen["apiVersion"] == "autoscaling/v1",
        "{seen}"
    );
    ensure!(seen["spec"] == json!({ "replicas": 1 }), "{seen}");
    ensure!(
        seen["status"] == json!({ "replicas": 0, "selector": "app=x,app" }),
        "{seen}"
    );
    let keys: BTreeSet<&String> = seen["metadata"]
        .as_object()
        .context("metadata")?
        .keys()
        .collect();
    let expected = [
        "creationTimestamp",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ];
    ensure!(keys.iter().map(|k| k.as_str()).eq(expected), "{seen}");

    let mut new = seen.clone();
    new["spec"]["replicas"] = json!(2);
    plain
        .ok(Method::PUT, &scale, "application/json", &new)
        .await?;
    let (code, refusal) = plain
        .send(Method::PUT, &scale, "application/json", &new)
        .await?;
    ensure!(
        (code, &refusal["reason"]) == (409, &json!("Conflict")),
        "{code} {refusal}"
    );
    plain
        .patch(&scale, MERGE, &json!({ "spec": { "replicas": 3 } }))
        .await?;
    let replace = json!([{ "op": "replace", "path": "/spec/replicas", "value": 4 }]);
    let seen = plain.patch(&scale, JSON_PATCH, &replace).await?;
    ensure!(seen["spec"]["replicas"] == 4, "{seen}");
    let live = plain.get(&format!("{path}/x")).await?;
    ensure!(
        live["spec"]["replicas"] == 4 && live["metadata"]["generation"] == 4,
        "{live}"
    );

    let applied = |replicas: i64| json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "x" }, "spec": { "replicas": replicas } });
    let by = |manager: &str, force: bool| format!("{scale}?fieldManager={manager}&force={force}");
    let (code, refusal) = plain
        .send(Method::PATCH, &by("me", false), APPLY, &applied(5))
        .await?;
    ensure!(code == 409, "{code} {refusal}");
    ensure!(
        refusal["details"]["causes"][0]["field"] == ".spec.replicas",
        "{refusal}"
    );
    let seen = plain.patch(&by("me", true), APPLY, &applied(5)).await?;
    ensure!(seen["spec"]["replicas"] == 5, "{seen}");
    let live = plain.get(&format!("{path}/x")).await?;
    let entries = live["metadata"]["managedFields"]
        .as_array()
        .context("owners")?;
    let mine = entries
        .iter()
        .find(|e| e["manager"] == "me")
        .context("an owner")?;
    let seen = [
        &mine["subresource"],
        &mine["operation"],
        &mine["apiVersion"],
        &mine["fieldsV1"],
    ];
    let fields = json!({ "f:spec": { "f:replicas": {} } });
    ensure!(
        seen == [&json!("scale"), &json!("Apply"), &json!("apps/v1"), &fields],
        "{mine}"
    );
    let zero = plain.patch(&by("me", true), APPLY, &applied(0)).await?;
    ensure!(zero["spec"] == json!({}), "{zero}");
    let (code, refusal) = plain
        .send(
            Method::PATCH,
            &scale,
            MERGE,
            &json!({ "spec": { "replicas": -1 } }),
        )
        .await?;
    ensure!(
        code == 422 && refusal["details"]["causes"][0]["field"] == "spec.replicas",
        "{refusal}"
    );
    let (code, _) = plain
        .send(Method::GET, &format!("{path}/none/scale"), "", &Value::Null)
        .await?;
    ensure!(code == 404);
    Ok(())
}

both_servers!(lists_merge_by_their_keys);
async fn lists_merge_by_their_keys(server: &TestServer) -> Result<()> {
    let plain = Plain::of(server).await?;
    let namespace = server.namespace("merge").await?;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let spec = json!({ "selector": { "matchLabels": { "app": "x" } }, "template": template() });
    plain
        .post(
            &path,
            &json!({ "metadata": { "name": "x", "finalizers": ["example.com/a"] }, "spec": spec }),
        )
        .await?;
    let path = format!("{path}/x");
    let owner = |uid: &str, name: &str| json!({ "apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid });
    let patch = json!({
        "metadata": { "finalizers": ["example.com/b"], "ownerReferences": [owner("1", "a"), owner("2", "b")] },
        "spec": { "template": { "spec": {
            "containers": [
                {
                    "name": "web", "image": "nginx:2", "env": [{ "name": "B", "value": "2" }],
                    "ports": [{ "containerPort": 80, "name": "http" }, { "containerPort": 443, "protocol": "TCP" }],
                },
                { "name": "side", "image": "s:1" },
            ],
            "volumes": [{ "name": "c", "$patch": "delete" }, { "name": "d", "emptyDir": {} }],
        } } },
    });
    let live = plain.patch(&path, STRATEGIC, &patch).await?;
    let key = |items: &Value, key: &str| -> Vec<String> {
        let items = items.as_array().into_iter().flatten();
        items.map(|item| item[key].to_string()).collect()
    };
    // The order matters: containers start in it.
    let list = |items: &[&str]| -> Vec<String> { items.iter().map(|i| (*i).to_owned()).collect() };
    let pod = &live["spec"]["template"]["spec"];
    ensure!(
        key(&pod["containers"], "name") == list(&["\"web\"", "\"side\""]),
        "{pod}"
    );
    let web = pod["containers"].as_array().context("containers")?.iter();
    let web = web
        .clone()
        .find(|c| c["name"] == "web")
        .context("the container is there")?;
    ensure!(
        web["image"] == "nginx:2" && web["livenessProbe"]["periodSeconds"] == 10,
        "{web}"
    );
    ensure!(
        key(&web["env"], "name") == list(&["\"B\"", "\"A\""]),
        "{web}"
    );
    ensure!(
        key(&web["ports"], "containerPort") == list(&["80", "443"]),
        "{web}"
    );
    ensure!(
        key(&web["ports"], "name") == list(&["\"http\"", "null"]),
        "{web}"
    );
    ensure!(
        key(&pod["volumes"], "name") == list(&["\"d\"", "\"e\""]),
        "{pod}"
    );
    let metadata = &live["metadata"];
    ensure!(
        metadata["finalizers"] == json!(["example.com/b", "example.com/a"]),
        "{metadata}"
    );
    let again = json!({ "metadata": {
        "ownerReferences": [owner("1", "c"), { "uid": "2", "$patch": "delete" }],
        "$deleteFromPrimitiveList/finalizers": ["example.com/a"],
    } });
    let live = plain.patch(&path, STRATEGIC, &again).await?;
    let metadata = &live["metadata"];
    ensure!(
        metadata["ownerReferences"] == json!([owner("1", "c")]),
        "{metadata}"
    );
    ensure!(
        metadata["finalizers"] == json!(["example.com/b"]),
        "{metadata}"
    );
    plain
        .patch(&path, MERGE, &json!({ "metadata": { "finalizers": null } }))
        .await?;
    Ok(())
}

fn definition(plural: &str) -> Value {
    let group = "kinds.vmhost.dev";
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "kind": plural, "plural": plural },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            } } }],
        },
    })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Defines a kind and waits until it is served.
async fn define(plain: &Plain, plural: &str) -> Result<()> {
    plain.post(DEFINITIONS, &definition(plural)).await?;
    let path = format!("/apis/kinds.vmhost.dev/v1/namespaces/default/{plural}");
    eventually("the kind is served", async || {
        let (code, _) = plain.send(Method::GET, &path, "", &Value::Null).await?;
        Ok(Some(()).filter(|()| code == 200))
    })
    .await
}

both_servers!(a_definition_that_goes_ends_the_watches_of_its_kind);
async fn a_definition_that_goes_ends_the_watches_of_its_kind(server: &TestServer) -> Result<()> {
    let plain = Plain::of(server).await?;
    let path = "/apis/kinds.vmhost.dev/v1/namespaces/default/goners";
    define(&plain, "goners").await?;
    let object = |name: &str| json!({ "apiVersion": "kinds.vmhost.dev/v1", "kind": "goners", "metadata": { "name": name } });
    for name in ["a", "b"] {
        eventually("the object is made", async || {
            // A newly established definition may not accept objects yet.
            let (code, _) = plain
                .send(Method::POST, path, "application/json", &object(name))
                .await?;
            Ok(Some(()).filter(|()| matches!(code, 201 | 409)))
        })
        .await?;
    }
    let watched = format!("{path}?watch=1&resourceVersion=0");
    let started = tokio::sync::Notify::new();
    let watching = plain.watch(&watched, "application/json", |events| {
        if events.len() == 2 {
            started.notify_one();
        }
        false
    });
    let deleting = async {
        let path = format!("{DEFINITIONS}/goners.kinds.vmhost.dev");
        started.notified().await;
        plain.ok(Method::DELETE, &path, "", &Value::Null).await?;
        eventually("the definition is gone", async || {
            let (code, _) = plain.send(Method::GET, &path, "", &Value::Null).await?;
            Ok(Some(()).filter(|()| code == 404))
        })
        .await
    };
    let (events, ()) = tokio::try_join!(watching, deleting)?;
    for name in ["a", "b"] {
        let of_name = events
            .iter()
            .filter(|e| e["object"]["metadata"]["name"] == name);
        let types: Vec<&Value> = of_name.map(|e| &e["type"]).collect();
        let ended = types.last() == Some(&&json!("DELETED"));
        ensure!(ended, "{name}: {types:?}");
    }
    eventually("the path is gone", async || {
        let (code, _) = plain.send(Method::GET, path, "", &Value::Null).await?;
        Ok(Some(()).filter(|()| code == 404))
    })
    .await?;
    define(&plain, "goners").await?;
    let list = plain.get(path).await?;
    ensure!(list["items"] == json!([]), "{list}");
    Ok(())
}

both_servers!(objects_are_seen_by_their_metadata);
async fn objects_are_seen_by_their_metadata(server: &TestServer) -> Result<()> {
    let plain = Plain::of(server).await?;
    let namespace = server.namespace("partial").await?;
    define(&plain, "partials").await?;
    for (path, api_version, kind) in [
        (
            format!("/api/v1/namespaces/{namespace}/configmaps"),
            "v1",
            "ConfigMap",
        ),
        (
            format!("/apis/kinds.vmhost.dev/v1/namespaces/{namespace}/partials"),
            "kinds.vmhost.dev/v1",
            "partials",
        ),
    ] {
        let metadata =
            json!({ "name": "x", "labels": { "part": "yes" }, "annotations": { "a": "b" } });
        let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "data": { "a": "1" } });
        eventually("the object is made", async || {
            let (code, _) = plain
                .send(Method::POST, &path, "application/json", &object)
                .await?;
            Ok(Some(()).filter(|()| matches!(code, 201 | 409)))
        })
        .await?;
        let whole = plain.get(&format!("{path}/x")).await?;
        let expected = json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": whole["metadata"] });
        let one = plain.get_as(&format!("{path}/x"), PARTIAL).await?;
        ensure!(one == expected, "{one}");
        let list = plain
            .get_as(&format!("{path}?labelSelector=part%3Dyes"), PARTIAL_LIST)
            .await?;
        let said = (&list["kind"], &list["apiVersion"]);
        ensure!(
            said == (
                &json!("PartialObjectMetadataList"),
                &json!("meta.k8s.io/v1")
            ),
            "{list}"
        );
        ensure!(list["items"] == json!([expected]), "{list}");
        ensure!(list["metadata"]["resourceVersion"].is_string(), "{list}");
        let mixed = format!("{PARTIAL_LIST},application/json");
        let plain_list = plain.get_as(&path, &mixed).await?;
        ensure!(
            plain_list["kind"] == "PartialObjectMetadataList",
            "{plain_list}"
        );
        let request = Request::get(&*path)
            .header("accept", PARTIAL)
            .body(Vec::new())?;
        let (code, refusal) = net::answer(&plain.0, request).await?;
        ensure!(code == 406, "{code} {refusal}");

        let query = "watch=1&labelSelector=part%3Dyes&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
        let is_bookmark = |event: &Value| event["type"] == "BOOKMARK";
        let events = plain
            .watch(&format!("{path}?{query}"), PARTIAL, |events| {
                events.iter().any(is_bookmark)
            })
            .await?;
        let types: Vec<&str> = events.iter().filter_map(|e| e["type"].as_str()).collect();
        ensure!(types == ["ADDED", "BOOKMARK"], "{types:?}");
        ensure!(events[0]["object"] == expected, "{}", events[0]);
        let mark = &events[1]["object"];
        ensure!(
            mark["kind"] == "PartialObjectMetadata" && mark["apiVersion"] == "meta.k8s.io/v1",
            "{mark}"
        );
        ensure!(
            mark["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true",
            "{mark}"
        );
        let version = mark["metadata"]["resourceVersion"]
            .as_str()
            .context("a bookmark has a position")?;
        let changed = json!({ "metadata": { "labels": { "more": "1" } } });
        plain.patch(&format!("{path}/x"), MERGE, &changed).await?;
        let events = plain
            .watch(
                &format!("{path}?watch=1&resourceVersion={version}"),
                PARTIAL,
                |events| !events.is_empty(),
            )
            .await?;
        ensure!(
            events[0]["type"] == "MODIFIED" && events[0]["object"].get("data").is_none(),
            "{}",
            events[0]
        );
        ensure!(
            events[0]["object"]["metadata"]["labels"]["more"] == "1",
            "{}",
            events[0]
        );
    }
    plain
        .ok(
            Method::DELETE,
            &format!("{DEFINITIONS}/partials.kinds.vmhost.dev"),
            "",
            &Value::Null,
        )
        .await?;
    Ok(())
}

both_servers!(access_is_reviewed);
async fn access_is_reviewed(server: &TestServer) -> Result<()> {
    let plain = Plain::of(server).await?;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked = json!({ "resourceAttributes": { "verb": "get", "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": "x" } });
    let review = plain.post(path, &json!({ "spec": asked })).await?;
    ensure!(
        review["kind"] == "SelfSubjectAccessReview" && review["spec"] == asked,
        "{review}"
    );
    ensure!(review["status"]["allowed"] == true, "{review}");
    let both = json!({ "resourceAttributes": { "verb": "get" }, "nonResourceAttributes": { "path": "/" } });
    for (spec, field) in [
        (json!({}), "spec.resourceAttributes"),
        (both, "spec.nonResourceAttributes"),
    ] {
        let (code, refusal) = plain
            .send(
                Method::POST,
                path,
                "application/json",
                &json!({ "spec": spec }),
            )
            .await?;
        ensure!(
            code == 422 && refusal["details"]["causes"][0]["field"] == field,
            "{code} {refusal}"
        );
    }
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let review = plain
        .post(path, &json!({ "spec": { "namespace": "default" } }))
        .await?;
    ensure!(
        review["kind"] == "SelfSubjectRulesReview" && review["spec"] == json!({}),
        "{review}"
    );
    let everything = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] });
    let rules = review["status"]["resourceRules"]
        .as_array()
        .context("rules")?;
    ensure!(
        rules.contains(&everything) && review["status"]["incomplete"] == false,
        "{review}"
    );
    let rules = review["status"]["nonResourceRules"]
        .as_array()
        .context("rules")?;
    ensure!(
        rules.contains(&json!({ "verbs": ["*"], "nonResourceURLs": ["*"] })),
        "{review}"
    );
    Ok(())
}

both_servers!(deletions_wait_for_what_their_policy_asks);
async fn deletions_wait_for_what_their_policy_asks(server: &TestServer) -> Result<()> {
    let plain = Plain::of(server).await?;
    let namespace = server.namespace("policy").await?;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    // A finalizer holds the object, so that no collector deletes it in the meantime.
    let held = json!({ "metadata": { "name": "x", "finalizers": ["example.com/hold"] } });
    plain.post(&path, &held).await?;
    let object = format!("{path}/x");
    for (policy, ours) in [
        ("Background", None),
        ("Foreground", Some("foregroundDeletion")),
        ("Background", None),
    ] {
        let options = json!({ "propagationPolicy": policy });
        let waiting = plain
            .ok(Method::DELETE, &object, "application/json", &options)
            .await?;
        ensure!(
            waiting["metadata"]["deletionTimestamp"].is_string(),
            "{waiting}"
        );
        let finalizers = waiting["metadata"]["finalizers"]
            .as_array()
            .context("finalizers")?;
        let gc: Vec<&str> = finalizers
            .iter()
            .filter_map(Value::as_str)
            .filter(|f| *f != "example.com/hold")
            .collect();
        ensure!(
            gc == ours.into_iter().collect::<Vec<_>>(),
            "{policy}: {waiting}"
        );
    }
    plain
        .patch(
            &object,
            MERGE,
            &json!({ "metadata": { "finalizers": null } }),
        )
        .await?;
    let (code, _) = plain.send(Method::GET, &object, "", &Value::Null).await?;
    ensure!(code == 404);
    plain
        .post(&path, &json!({ "metadata": { "name": "y" } }))
        .await?;
    let (code, gone) = plain
        .send(
            Method::DELETE,
            &format!("{path}/y?propagationPolicy=Sideways"),
            "",
            &Value::Null,
        )
        .await?;
    ensure!(code == 422, "{code} {gone}");
    let both = json!({ "propagationPolicy": "Orphan", "orphanDependents": true });
    let (code, gone) = plain
        .send(
            Method::DELETE,
            &format!("{path}/y"),
            "application/json",
            &both,
        )
        .await?;
    ensure!((400..500).contains(&code), "{code} {gone}");
    let waiting = plain
        .ok(
            Method::DELETE,
            &format!("{path}/y?propagationPolicy=Orphan"),
            "",
            &Value::Null,
        )
        .await?;
    ensure!(
        waiting["metadata"]["finalizers"] == json!(["orphan"]),
        "{waiting}"
    );
    Ok(())
}
