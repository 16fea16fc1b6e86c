//! Tests that the parts of a recorded case are read as they were written.

use vmhost_core::IndexMatch;

use super::*;

#[test]
fn an_entry_is_read_as_it_was_written() {
    let text = r#"{"ask":{"verb":"list","live":true,"apiVersion":"apps/v1","kind":"Deployment","namespace":"a","labelSelector":"app","index":["by","x"],"limit":2,"after":"c"},"answer":{"objects":[{"b": 1,"a":1e3}],"next":"d"}}"#;
    let read: Read = serde_json::from_str(text).unwrap();
    assert_eq!(read.answer.objects[0].get(), r#"{"b": 1,"a":1e3}"#);
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    let none = r#"{"ask":{"verb":"get","apiVersion":"v1","kind":"Node","name":"n"},"answer":{"error":{"tooLarge":7}}}"#;
    let read: Read = serde_json::from_str(none).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), none);
    let error = ReadError::from(read.answer.error.unwrap());
    assert_eq!(error, ReadError::TooLarge(7));
}

#[test]
fn questions_are_equal_if_they_ask_the_same() {
    let kind = Gvk::new("", "v1", "Pod");
    let ask = |live, name| Ask::get(live, &kind, &ObjectName::new(Some("a"), name));
    assert_eq!(ask(false, "x"), ask(false, "x"));
    assert_ne!(ask(false, "x"), ask(true, "x"));
    assert_ne!(ask(false, "x"), ask(false, "y"));
}

#[test]
fn what_was_not_drawn_is_not_written() {
    assert_eq!(serde_json::to_string(&Random::default()).unwrap(), "{}");
    let random = Random {
        seed: Some("0f".into()),
        wall: Readings {
            start: Vec::new(),
            call: vec![1_769_860_800_000_000_001],
        },
        ..Random::default()
    };
    let text = serde_json::to_string(&random).unwrap();
    assert_eq!(
        text,
        r#"{"seed":"0f","wall":{"call":[1769860800000000001]}}"#
    );
    assert_eq!(serde_json::from_str::<Random>(&text).unwrap(), random);
}

#[test]
fn a_question_is_told_in_words() {
    let kind = Gvk::new("apps", "v1", "Deployment");
    let get = Ask::get(false, &kind, &ObjectName::new(Some("a"), "x"));
    assert_eq!(get.to_string(), "get Deployment.v1.apps a/x");
    let mut query = ListQuery {
        kind,
        namespace: None,
        label_selector: None,
        index: None,
        owner: None,
        limit: 500,
        after: None,
    };
    let list = Ask::list(true, &query).to_string();
    assert_eq!(list, "live list Deployment.v1.apps");
    query.namespace = Some("a".into());
    query.label_selector = Some("app=web".into());
    query.index = Some(IndexMatch {
        name: "by".into(),
        value: "n".into(),
    });
    query.owner = Some("u".into());
    query.after = Some("a/p".into());
    assert_eq!(
        Ask::list(false, &query).to_string(),
        "list Deployment.v1.apps in a, labels app=web, index by=n, owner u, after a/p"
    );
}
