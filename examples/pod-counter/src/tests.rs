use super::*;
use serde_json::Value;
use vmhost_plugin::testing::TestHost;
use vmhost_plugin::{Effect, Next};

fn turn(controller: &str, host: TestHost) -> (Outcome, Vec<String>) {
    let timer = Kind::new("vmhost", "v1", "Timer");
    let request = Request::of(controller, ObjectKey::of(&timer, None, controller), None);
    let (outcome, lines) = host.run(|| PodCounter::reconcile(&request));
    (outcome.unwrap(), lines)
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": namespace, "name": name }, "status": { "phase": "Running" } })
}

fn deployment(replicas: u32) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": "default", "name": "web" }, "spec": { "replicas": replicas } })
}

fn scaling(replicas: &str) -> TestHost {
    TestHost::new()
        .setting("deployment", "default/web")
        .setting("replicas", replicas)
}

#[test]
fn pods_of_all_namespaces_are_counted() {
    let host = TestHost::new()
        .object(pod("a", "one"))
        .object(pod("b", "one"))
        .object(deployment(1));
    let (outcome, lines) = turn("count", host);
    assert_eq!(outcome, Outcome::await_change());
    assert_eq!(lines, ["info: there are 2 pods in the cluster"]);
}

#[test]
fn one_pod_is_looked_at_again_and_again() {
    let host = TestHost::new()
        .object(pod("a", "one"))
        .setting("pod", "a/one");
    let (outcome, lines) = turn("look", host);
    assert_eq!(outcome, Outcome::requeue_after_ms(EVERY_MS));
    assert_eq!(lines, ["info: pod a/one is Running"]);
    let (outcome, lines) = turn("look", TestHost::new().setting("pod", "a/two"));
    assert_eq!(outcome, Outcome::requeue_after_ms(EVERY_MS));
    assert_eq!(lines, ["info: pod a/two not found"]);
}

#[test]
fn a_deployment_of_another_size_is_scaled() {
    let (outcome, lines) = turn("scale", scaling("3").object(deployment(1)));
    assert_eq!(lines, ["info: scaling default/web from 1 to 3"]);
    let [Effect::Patch(patch)] = &outcome.effects[..] else {
        panic!("one patch")
    };
    assert_eq!(patch.subresource.as_deref(), Some("scale"));
    assert_eq!(patch.body, r#"{"spec":{"replicas":3}}"#);
    assert_eq!(outcome.next, Next::RequeueAfterMs(EVERY_MS));
}

#[test]
fn a_deployment_of_that_size_is_left_alone() {
    let (outcome, lines) = turn("scale", scaling("1").object(deployment(1)));
    assert_eq!(outcome, Outcome::requeue_after_ms(EVERY_MS));
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn without_settings_nothing_is_done_and_that_is_said() {
    for (controller, says) in [
        ("look", "pod-counter.pod="),
        ("scale", "pod-counter.deployment="),
    ] {
        let (outcome, lines) = turn(controller, TestHost::new());
        assert_eq!(outcome, Outcome::await_change());
        assert!(lines.len() == 1 && lines[0].contains(says), "{lines:?}");
    }
}

#[test]
fn settings_that_make_no_sense_fail_for_good_and_are_named() {
    let cases = [
        (
            "look",
            TestHost::new().setting("pod", "one"),
            "pod-counter.pod",
        ),
        ("scale", scaling("many"), "pod-counter.replicas"),
        (
            "scale",
            TestHost::new()
                .setting("deployment", "web")
                .setting("replicas", "1"),
            "pod-counter.deployment",
        ),
    ];
    for (controller, host, says) in cases {
        let (outcome, _) = turn(controller, host);
        let Next::Fail(message) = outcome.next else {
            panic!("{controller} fails")
        };
        assert!(message.contains(says), "{message}");
    }
}
