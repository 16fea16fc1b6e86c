//! Built-in kinds: their defaults, and how their lists merge.

use serde_json::json;

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": {
        "selector": { "matchLabels": { "app": name } },
        "template": {
            "metadata": { "labels": { "app": name } },
            "spec": { "containers": [
                { "name": "web", "image": "nginx:1", "ports": [{ "containerPort": 80 }], "env": [{ "name": "A", "value": "1" }] },
                { "name": "side", "image": "busybox" },
            ] },
        },
    } })
}

#[tokio::test]
async fn the_texts_of_a_secret_are_put_into_a_map_only() {
    let c = Cluster::new();
    let path = "/api/v1/namespaces/default/secrets";
    let secret = |name: &str, data: Value| json!({ "metadata": { "name": name }, "data": data, "stringData": { "a": "b" } });
    let refused = c.post(path, &secret("list", json!(["x"]))).await;
    assert!((400..500).contains(&refused.code), "{}", refused.text);
    let made = c.post(path, &secret("null", Value::Null)).await.ok();
    assert_eq!(made["data"], json!({ "a": "Yg==" }));
}

#[tokio::test]
async fn a_deployments_generation_counts_its_spec_and_status_has_its_own_door() {
    let c = Cluster::new();
    let made = c.post(DEPLOYMENTS, &deployment("d")).await.ok();
    assert_eq!(made["spec"]["replicas"], 1);
    assert_eq!(made["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
    assert_eq!(made["status"], json!({}));
    let path = format!("{DEPLOYMENTS}/d");
    let generation = |o: &Value| o["metadata"]["generation"].as_i64().unwrap();
    let labelled = json!({ "metadata": { "labels": { "l": "1" } } });
    assert_eq!(generation(&c.merge(&path, &labelled).await.ok()), 1);
    let status =
        json!({ "status": { "replicas": 1, "readyReplicas": 1 }, "spec": { "replicas": 9 } });
    assert_eq!(
        c.merge(&path, &json!({ "status": { "replicas": 5 } }))
            .await
            .ok()["status"],
        json!({})
    );
    let seen = c.merge(&format!("{path}/status"), &status).await.ok();
    assert_eq!(
        (generation(&seen), &seen["spec"]["replicas"]),
        (1, &json!(1))
    );
    let scaled = c
        .merge(&path, &json!({ "spec": { "replicas": 2 } }))
        .await
        .ok();
    assert_eq!(generation(&scaled), 2);
    let annotated = json!({ "metadata": { "annotations": { "a": "1" } } });
    assert_eq!(generation(&c.merge(&path, &annotated).await.ok()), 3);
    let table = c.get_as(DEPLOYMENTS, TABLE).await.ok();
    let cells = &table["rows"][0]["cells"];
    assert_eq!(
        (&cells[0], &cells[1], &cells[6]),
        (&json!("d"), &json!("1/2"), &json!("nginx:1,busybox"))
    );
}

#[tokio::test]
async fn a_deployment_is_scaled_through_its_subresource() {
    let c = Cluster::new();
    c.post(DEPLOYMENTS, &deployment("d")).await.ok();
    let path = format!("{DEPLOYMENTS}/d/scale");
    let scale = c.get(&path).await.ok();
    assert_eq!(
        (
            &scale["apiVersion"],
            &scale["kind"],
            &scale["spec"],
            &scale["status"]
        ),
        (
            &json!("autoscaling/v1"),
            &json!("Scale"),
            &json!({ "replicas": 1 }),
            &json!({ "replicas": 0, "selector": "app=d" })
        )
    );
    let mut new = scale.clone();
    new["spec"]["replicas"] = json!(3);
    assert_eq!(c.put(&path, &new).await.ok()["spec"]["replicas"], 3);
    c.put(&path, &new)
        .await
        .refused(409, "Conflict", "modified");
    c.merge(&path, &json!({ "spec": { "replicas": 4 } }))
        .await
        .ok();
    let replace = json!([{ "op": "replace", "path": "/spec/replicas", "value": 5 }]);
    c.patch(&path, "json-patch", &replace).await.ok();
    let live = c.get(&format!("{DEPLOYMENTS}/d")).await.ok();
    assert_eq!(
        (&live["spec"]["replicas"], &live["metadata"]["generation"]),
        (&json!(5), &json!(4))
    );
    let applied = json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "d" }, "spec": { "replicas": 7 } });
    let path_of =
        |manager: &str, force: bool| format!("{path}?fieldManager={manager}&force={force}");
    c.patch(&path_of("me", false), "apply", &applied)
        .await
        .refused(409, "Conflict", ".spec.replicas");
    c.patch(&path_of("me", true), "apply", &applied).await.ok();
    let live = c.get(&format!("{DEPLOYMENTS}/d")).await.ok();
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    let mine = entries.iter().find(|e| e["manager"] == "me").unwrap();
    assert_eq!(
        (
            &mine["subresource"],
            &mine["apiVersion"],
            &mine["operation"],
            &mine["fieldsV1"]
        ),
        (
            &json!("scale"),
            &json!("apps/v1"),
            &json!("Apply"),
            &json!({ "f:spec": { "f:replicas": {} } })
        )
    );
    let negative = json!({ "spec": { "replicas": -1 } });
    c.merge(&path, &negative)
        .await
        .refused(422, "Invalid", "spec.replicas");
    c.get(&format!("{PODS}/x/scale"))
        .await
        .refused(404, "NotFound", "");
    let zero = c
        .merge(&path, &json!({ "spec": { "replicas": 0 } }))
        .await
        .ok();
    assert_eq!(zero["spec"], json!({}));
}

#[tokio::test]
async fn pods_and_services_get_what_a_cluster_gives_them() {
    let c = Cluster::new();
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "x" }] } });
    let pod = c.post(PODS, &pod).await.ok();
    assert_eq!(
        pod["status"],
        json!({ "phase": "Pending", "qosClass": "BestEffort" })
    );
    assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "Always");
    let pending = c
        .get(&format!("{PODS}?fieldSelector=status.phase%3DPending"))
        .await
        .ok();
    assert_eq!(pending["items"].as_array().map(Vec::len), Some(1));
    let up = json!({ "status": { "phase": "Running", "containerStatuses": [{ "name": "c", "ready": true }] } });
    c.merge(&format!("{PODS}/p/status"), &up).await.ok();
    let table = c.get_as(PODS, TABLE).await.ok();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(
        cells[..4],
        [json!("p"), json!("1/1"), json!("Running"), json!("0")]
    );

    let service = json!({ "metadata": { "name": "s" }, "spec": { "ports": [{ "port": 80 }], "selector": { "a": "b" } } });
    let made = c.post(SERVICES, &service).await.ok();
    let address = made["spec"]["clusterIP"].as_str().unwrap();
    assert!(address.starts_with("10.96."), "{address}");
    assert_eq!(made["spec"]["clusterIPs"], json!([address]));
    assert_eq!(
        made["spec"]["ports"],
        json!([{ "port": 80, "protocol": "TCP", "targetPort": 80 }])
    );
    // One client replaces the service without its address, another with a different address.
    let again = c.put(&format!("{SERVICES}/s"), &service).await.ok();
    assert_eq!(again["spec"]["clusterIP"], address);
    let other = json!({ "spec": { "clusterIP": "10.96.250.250" } });
    c.merge(&format!("{SERVICES}/s"), &other).await.refused(
        422,
        "Invalid",
        "may not change once set",
    );
    let mut taken = service.clone();
    taken["metadata"]["name"] = json!("t");
    taken["spec"]["clusterIP"] = json!(address);
    c.post(SERVICES, &taken)
        .await
        .refused(422, "Invalid", "already allocated");
    taken["spec"]["clusterIP"] = json!("None");
    assert_eq!(
        c.post(SERVICES, &taken).await.ok()["spec"]["clusterIPs"],
        json!(["None"])
    );
    let table = c.get_as(SERVICES, TABLE).await.ok();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(
        cells[..5],
        [
            json!("s"),
            json!("ClusterIP"),
            json!(address),
            json!("<none>"),
            json!("80/TCP")
        ]
    );
}

#[tokio::test]
async fn lists_merge_by_their_keys() {
    let c = Cluster::new();
    c.post(DEPLOYMENTS, &deployment("d")).await.ok();
    let patch = json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "web", "image": "nginx:2", "env": [{ "name": "B", "value": "2" }],
          "ports": [{ "containerPort": 80, "name": "http" }, { "containerPort": 443 }] },
        { "name": "side", "$patch": "delete" },
        { "name": "new", "image": "x:1" },
    ] } } } });
    let path = format!("{DEPLOYMENTS}/d");
    let live = c.patch(&path, "strategic-merge-patch", &patch).await.ok();
    let containers = &live["spec"]["template"]["spec"]["containers"];
    let names: Vec<_> = containers
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["web", "new"]);
    assert_eq!(containers[0]["image"], "nginx:2");
    let mut env: Vec<_> = containers[0]["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    env.sort_unstable();
    assert_eq!(env, ["A", "B"]);
    let ports = containers[0]["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 2);
    assert!(ports.contains(&json!({ "containerPort": 80, "name": "http", "protocol": "TCP" })));
    let owner = |uid: &str, name: &str| json!({ "apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid });
    for (reference, count) in [
        (owner("1", "a"), 1),
        (owner("2", "b"), 2),
        (owner("1", "c"), 2),
    ] {
        let patch = json!({ "metadata": { "ownerReferences": [reference], "finalizers": ["example.com/a"] } });
        let live = c.patch(&path, "strategic-merge-patch", &patch).await.ok();
        let owners = live["metadata"]["ownerReferences"].as_array().unwrap();
        assert_eq!(owners.len(), count, "{owners:?}");
    }
    let patch = json!({ "metadata": { "finalizers": ["example.com/b"], "$deleteFromPrimitiveList/finalizers": ["example.com/a"] } });
    let live = c.patch(&path, "strategic-merge-patch", &patch).await.ok();
    assert_eq!(live["metadata"]["finalizers"], json!(["example.com/b"]));
}

#[tokio::test]
async fn reviews_are_answered_in_their_shape() {
    let c = Cluster::new();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked =
        json!({ "resourceAttributes": { "verb": "get", "resource": "pods", "namespace": "x" } });
    let review = c.post(path, &json!({ "spec": asked })).await.ok();
    assert_eq!(
        (&review["spec"], &review["status"]["allowed"]),
        (&asked, &json!(true))
    );
    c.post(path, &json!({ "spec": {} }))
        .await
        .refused(422, "Invalid", "exactly one of");
    let both =
        json!({ "spec": { "resourceAttributes": {}, "nonResourceAttributes": { "path": "/" } } });
    c.post(path, &both)
        .await
        .refused(422, "Invalid", "in combination");
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let rules = c
        .post(path, &json!({ "spec": { "namespace": "default" } }))
        .await
        .ok();
    assert_eq!(rules["status"]["resourceRules"][0]["verbs"], json!(["*"]));
    assert_eq!(rules["status"]["incomplete"], false);
}

#[tokio::test]
async fn bodies_of_another_shape_are_refused() {
    let c = Cluster::new();
    let collections = [
        PODS,
        SERVICES,
        DEPLOYMENTS,
        "/apis/apps/v1/namespaces/default/statefulsets",
    ];
    for path in collections {
        for spec in [
            json!("x"),
            json!([1]),
            json!(null),
            json!({ "template": 1, "strategy": "x", "ports": [1] }),
        ] {
            let answer = c
                .post(
                    path,
                    &json!({ "metadata": { "generateName": "x" }, "spec": spec }),
                )
                .await;
            let optional = path == SERVICES && spec.is_null();
            let of_type = spec.is_string() || spec.is_array();
            assert!(
                answer.code == 400 || optional || (answer.code == 422 && !of_type),
                "{path} {spec}: {}",
                answer.text
            );
        }
        let parts = json!({ "containers": [1, { "resources": 1, "name": "c" }], "volumes": [7], "tolerations": 1 });
        let spec = json!({ "template": { "spec": parts }, "containers": parts["containers"], "volumes": [7], "ports": 1 });
        let answer = c
            .post(
                path,
                &json!({ "metadata": { "generateName": "x" }, "spec": spec }),
            )
            .await;
        answer.refused(400, "BadRequest", "cannot unmarshal");
    }
}
