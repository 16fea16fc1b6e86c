use serde_json::Value;
use vmhost_plugin::testing::TestHost;
use vmhost_plugin::{Effect, Next, ObjectKey};

use super::*;

const API: &str = "http://cloud.test/v1/machines";
const OF: &str = "http://cloud.test/v1/machines?owner=u-1";

fn turn(host: TestHost, status: Value, deleting: bool) -> (Result<Outcome>, Vec<String>) {
    let object = json!({ "metadata": { "name": "web", "uid": "u-1" }, "spec": { "size": "small" }, "status": status });
    let key = ObjectKey::of(&MACHINE, Some("default"), "web");
    let mut request = Request::of("machines", key, Some(&object.to_string()));
    request.deleting = deleting;
    host.setting("url", "http://cloud.test/")
        .run(|| CloudVm::reconcile(&request))
}

fn body(outcome: &Outcome) -> Value {
    let Some(Effect::Patch(patch)) = outcome.effects.first() else {
        panic!("a patch: {outcome:?}")
    };
    assert_eq!(patch.subresource.as_deref(), Some("status"));
    serde_json::from_str(&patch.body).unwrap()
}

#[test]
fn a_machine_is_asked_for_and_waited_for() {
    let none = TestHost::new().http("GET", OF, 200, r#"{"machines":[]}"#);
    let made = none.http("POST", API, 201, r#"{"id":"m-1"}"#);
    let (outcome, lines) = turn(made, json!({}), false);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.next, Next::RequeueAfterMs(POLL));
    let creating = json!({ "status": { "phase": "creating", "id": "m-1" } });
    assert_eq!(body(&outcome), creating);
    let posted = format!(r#"http: POST {API} {{"owner":"u-1","size":"small"}}"#);
    assert_eq!(lines, [format!("http: GET {OF}"), posted]);

    let still = TestHost::new().http("GET", OF, 200, r#"{"machines":[{"id":"m-1"}]}"#);
    let (outcome, lines) = turn(still, creating["status"].clone(), false);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.effects.len(), lines.len()), (0, 1));
    assert_eq!(outcome.next, Next::RequeueAfterMs(POLL));
}

#[test]
fn a_machine_that_is_made_is_complete() {
    let listed = r#"{"machines":[{"id":"m-1","address":"192.0.2.7"}]}"#;
    let host = TestHost::new().http("GET", OF, 200, listed);
    let outcome = turn(host, json!({ "phase": "creating", "id": "m-1" }), false);
    let outcome = outcome.0.unwrap();
    assert_eq!(body(&outcome)["status"]["address"], "192.0.2.7");
    assert_eq!(
        (outcome.effects.len(), outcome.next),
        (2, Next::AwaitChange)
    );
    let (outcome, lines) = turn(TestHost::new(), json!({ "phase": "complete" }), false);
    assert_eq!(outcome.unwrap(), Outcome::await_change());
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn it_is_deleted_before_the_object_goes() {
    let one = format!("{API}/m-1");
    for status in [204, 404] {
        let listed = TestHost::new().http("GET", OF, 200, r#"{"machines":[{"id":"m-1"}]}"#);
        let host = listed.http("DELETE", &one, status, "");
        let (outcome, lines) = turn(host, json!({}), true);
        assert_eq!(outcome.unwrap().next, Next::RequeueAfterMs(POLL));
        assert_eq!(lines.last(), Some(&format!("http: DELETE {one}")));
    }
    let none = TestHost::new().http("GET", OF, 200, r#"{"machines":[]}"#);
    let outcome = turn(none, json!({}), true).0;
    assert_eq!(outcome.unwrap(), Outcome::finalized());
    // The API does not show it yet.
    let none = TestHost::new().http("GET", OF, 200, r#"{"machines":[]}"#);
    let host = none.http("DELETE", &one, 204, "");
    let (outcome, lines) = turn(host, json!({ "phase": "creating", "id": "m-1" }), true);
    assert_eq!(outcome.unwrap(), Outcome::finalized());
    assert_eq!(lines.last(), Some(&format!("http: DELETE {one}")));
}

#[test]
fn a_failure_is_tried_again() {
    let down = TestHost::new().http("GET", OF, 503, "try later");
    let error = turn(down, json!({}), false).0.unwrap_err();
    assert_eq!(error.to_string(), "status 503: try later");
    let error = turn(TestHost::new(), json!({}), false).0.unwrap_err();
    assert!(error.to_string().starts_with("the request was not sent"));
}
