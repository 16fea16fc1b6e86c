//! Reviews without a host: which objects may be stored.

use serde_json::{Value, json};
use vmhost_plugin::testing::TestHost;

use super::*;

fn host() -> TestHost {
    TestHost::new().setting("registries", "docker.io, ghcr.io/team")
}

/// Returns the text of the refusal; `None` if the object may be stored.
fn refusal(host: TestHost, object: Value, old: Value) -> Option<String> {
    let request = json!({ "uid": "u", "operation": "CREATE", "object": object, "oldObject": old });
    let review = Review::of("images", &request.to_string()).unwrap();
    let (verdict, _) = host.run(|| ImagePolicy::admit(&review));
    let verdict = verdict.unwrap();
    assert_eq!(verdict.is_allowed(), verdict.message().is_none());
    verdict.message().map(str::to_owned)
}

fn pod_spec(image: &str) -> Value {
    json!({ "containers": [{ "name": "a", "image": "nginx" }, { "name": "b", "image": image }] })
}

#[test]
fn all_places_of_images_are_looked_at() {
    let evil = "evil.example/x";
    let places = [
        (pod_spec(evil), "container b"),
        (
            json!({ "initContainers": [{ "name": "i", "image": evil }] }),
            "init container i",
        ),
        (
            json!({ "ephemeralContainers": [{ "name": "e", "image": evil }] }),
            "ephemeral container e",
        ),
        (
            json!({ "volumes": [{ "name": "v", "image": { "reference": evil } }, { "name": "w" }] }),
            "volume v",
        ),
    ];
    for (spec, place) in places {
        let template = json!({ "template": { "metadata": {}, "spec": spec } });
        for object in [
            json!({ "kind": "Pod", "spec": spec }),
            json!({ "kind": "Deployment", "spec": template }),
            json!({ "kind": "CronJob", "spec": { "jobTemplate": { "spec": template } } }),
        ] {
            let told = refusal(host(), object.clone(), Value::Null);
            let told = told.unwrap_or_else(|| panic!("allowed: {object}"));
            let wanted = format!(
                "{place}: the image \"{evil}\" is of evil.example, which is not allowed; allowed: docker.io, ghcr.io/team"
            );
            assert_eq!(told, wanted);
        }
    }
}

#[test]
fn images_of_allowed_registries_may_run() {
    for image in ["nginx", "ghcr.io/team/app:v1", "docker.io/x/y"] {
        let object = json!({ "spec": pod_spec(image) });
        assert_eq!(refusal(host(), object, Value::Null), None, "{image}");
    }
    assert_eq!(
        refusal(
            host(),
            Value::Null,
            json!({ "spec": pod_spec("evil.example/x") })
        ),
        None
    );
}

#[test]
fn what_runs_already_may_be_changed_otherwise() {
    let object =
        json!({ "metadata": { "labels": { "a": "b" } }, "spec": pod_spec("evil.example/x") });
    let old = json!({ "spec": pod_spec("evil.example/x") });
    assert_eq!(refusal(host(), object.clone(), old), None);
    let other = json!({ "spec": pod_spec("evil.example/y") });
    assert!(refusal(host(), object, other).is_some());
}

#[test]
fn many_images_are_not_all_named() {
    let containers: Vec<Value> = (0..5)
        .map(|number| json!({ "name": format!("c{number}"), "image": "Evil/x" }))
        .collect();
    let told = refusal(
        host(),
        json!({ "spec": { "containers": containers } }),
        Value::Null,
    )
    .unwrap();
    assert!(
        told.contains("container c2: \"Evil/x\" is no name of an image; and 2 more;"),
        "{told}"
    );
}

#[test]
fn the_registries_may_stand_in_a_config_map() {
    let map = |namespace: &str| {
        let metadata = json!({ "name": "image-policy", "namespace": namespace });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "registries": "ghcr.io" } })
    };
    let object = json!({ "spec": { "containers": [{ "name": "a", "image": "ghcr.io/x" }] } });
    let found = TestHost::new().object(map("kube-system"));
    assert_eq!(refusal(found, object.clone(), Value::Null), None);
    let elsewhere = TestHost::new()
        .object(map("policies"))
        .setting("namespace", "policies");
    assert_eq!(refusal(elsewhere, object.clone(), Value::Null), None);
    let told = refusal(TestHost::new(), object, Value::Null).unwrap();
    assert!(told.contains("allowed: nothing"), "{told}");
}
