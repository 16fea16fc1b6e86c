use super::*;
use vmhost_plugin::meta::{ConditionStatus, find_status_condition};
use vmhost_plugin::testing::TestHost;
use vmhost_plugin::{Effect, Next, Refusal};

fn app(status: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "App",
        "metadata": { "name": "web", "namespace": "team", "uid": "u-1", "generation": 3 },
        "spec": { "image": "nginx:1.27", "replicas": 2, "message": "hello", "secretName": "web-secret" },
        "status": status,
    })
}

fn request(object: Option<&Value>) -> Request {
    let key = ObjectKey::of(&APP, Some("team"), "web");
    Request::of("apps", key, object.map(Value::to_string).as_deref())
}

fn secret() -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "web-secret", "namespace": "team", "resourceVersion": "77" } })
}

fn child(api_version: &str, kind: &str, owner: &str, status: Value) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "status": status, "metadata": {
        "name": "web", "namespace": "team", "generation": 4,
        "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "App", "name": "web", "uid": owner, "controller": true }] } })
}

fn deployment(observed: i64, available: i64) -> Value {
    let status = json!({ "observedGeneration": observed, "availableReplicas": available });
    child("apps/v1", "Deployment", "u-1", status)
}

fn turn(host: TestHost, request: &Request) -> Outcome {
    host.run(|| Apps::reconcile(request)).0.unwrap()
}

/// Returns the effects as short words, in order.
fn effects(outcome: &Outcome) -> Vec<String> {
    let word = |effect: &Effect| match effect {
        Effect::Apply(apply) => {
            let object: Value = serde_json::from_str(&apply.object).unwrap();
            let sub = apply.subresource.as_deref().map(|sub| format!("/{sub}"));
            format!(
                "apply {}{}",
                object["kind"].as_str().unwrap(),
                sub.unwrap_or_default()
            )
        }
        Effect::Patch(patch) => format!("patch {} {}", patch.key.name, patch.body),
        Effect::Event(event) => format!("event {}", event.reason),
        other => panic!("{other:?}"),
    };
    outcome.effects.iter().map(word).collect()
}

fn status(outcome: &Outcome) -> Status {
    let find = |effect: &Effect| match effect {
        Effect::Apply(apply) if apply.subresource.is_some() => Some(apply.object.clone()),
        _ => None,
    };
    let object = outcome.effects.iter().find_map(find).unwrap();
    let object: Value = serde_json::from_str(&object).unwrap();
    serde_json::from_value(object["status"].clone()).unwrap()
}

#[test]
fn a_new_app_is_registered_and_gets_its_children() {
    let outcome = turn(
        TestHost::new().object(secret()),
        &request(Some(&app(json!({})))),
    );
    assert_eq!(
        effects(&outcome),
        [
            r#"patch app-registry {"data":{"team.web":"u-1"}}"#,
            "apply ConfigMap",
            "apply Service",
            "apply Deployment",
            "event Created",
            "apply App/status",
        ]
    );
    assert_eq!(outcome.next, Next::RequeueAfterMs(NOT_READY_MS));
    let status = status(&outcome);
    assert!(status.registered && !status.is_ready());
    assert_eq!(status.observed_generation, 3);
}

#[test]
fn children_are_controlled_by_the_app_and_follow_its_secret() {
    let app: App = serde_json::from_value(app(json!({}))).unwrap();
    let [config_map, service, deployment] = desired::all(&app, "77");
    for child in [&config_map, &service, &deployment] {
        let owner = &child["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["uid"], &owner["controller"]),
            (&json!("u-1"), &json!(true))
        );
        assert_eq!(child["metadata"]["namespace"], "team");
    }
    assert_eq!(config_map["data"]["message"], "hello");
    let template = &deployment["spec"]["template"];
    assert_eq!(
        template["metadata"]["annotations"]["example.com/secret-version"],
        "77"
    );
    assert_eq!(service["spec"]["selector"], template["metadata"]["labels"]);
    assert_eq!(deployment["spec"]["replicas"], 2);
}

#[test]
fn an_app_becomes_ready_once_and_says_so_once() {
    let host = || TestHost::new().object(secret()).object(deployment(4, 2));
    let registered = app(json!({ "registered": true }));
    let outcome = turn(host(), &request(Some(&registered)));
    assert_eq!(
        effects(&outcome),
        [
            "apply ConfigMap",
            "apply Service",
            "apply Deployment",
            "apply App/status",
            "event Ready"
        ]
    );
    assert_eq!(outcome.next, Next::AwaitChange);
    let ready = status(&outcome);
    assert_eq!(ready.available_replicas, 2);
    let again = turn(
        host(),
        &request(Some(&app(serde_json::to_value(&ready).unwrap()))),
    );
    assert_eq!(effects(&again).last().unwrap(), "apply App/status");
    assert_eq!(
        status(&again),
        ready,
        "nothing changed, the transition time neither"
    );
}

#[test]
fn a_status_of_an_older_specification_does_not_count() {
    let host = TestHost::new().object(secret()).object(deployment(3, 2));
    let outcome = turn(host, &request(Some(&app(json!({ "registered": true })))));
    assert!(!status(&outcome).is_ready());
    assert_eq!(outcome.next, Next::RequeueAfterMs(NOT_READY_MS));
}

#[test]
fn without_its_secret_an_app_is_degraded_and_makes_nothing() {
    let outcome = turn(TestHost::new(), &request(Some(&app(json!({})))));
    assert_eq!(effects(&outcome), ["apply App/status"]);
    let status = status(&outcome);
    let degraded = find_status_condition(&status.conditions, "Degraded").unwrap();
    assert_eq!(degraded.status, ConditionStatus::True);
    assert_eq!(degraded.reason, "SecretNotFound");
    assert!(degraded.message.contains("web-secret"), "{degraded:?}");
    assert!(!status.registered && !status.is_ready());
}

#[test]
fn an_object_of_somebody_else_is_not_taken_over() {
    let foreign = child("v1", "Service", "u-9", Value::Null);
    let outcome = turn(
        TestHost::new().object(secret()).object(foreign),
        &request(Some(&app(json!({})))),
    );
    assert_eq!(effects(&outcome), ["apply App/status"]);
    let status = status(&outcome);
    let degraded = find_status_condition(&status.conditions, "Degraded").unwrap();
    assert_eq!(degraded.reason, "NameTaken");
    assert!(degraded.message.starts_with("Service web "), "{degraded:?}");
}

#[test]
fn a_deleted_app_leaves_the_registry_before_it_goes() {
    let mut request = request(Some(&app(json!({ "registered": true }))));
    request.deleting = true;
    let outcome = turn(TestHost::new(), &request);
    assert_eq!(
        effects(&outcome),
        [
            r#"patch app-registry {"data":{"team.web":null}}"#,
            "event Released"
        ]
    );
    assert_eq!(outcome.next, Next::Finalized);
    request.last = Some(Refusal {
        effect: 0,
        code: 404,
        reason: "NotFound".into(),
        message: r#"configmaps "app-registry" not found"#.into(),
    });
    assert_eq!(
        turn(TestHost::new(), &request),
        Outcome::finalized(),
        "no registry, nothing to release"
    );
}

#[test]
fn what_is_going_or_gone_without_the_finalizer_is_left_alone() {
    let mut going = app(json!({}));
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for object in [Some(&going), None] {
        assert_eq!(
            turn(TestHost::new(), &request(object)),
            Outcome::await_change()
        );
    }
}
