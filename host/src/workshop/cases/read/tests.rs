//! Tests what a case's files may contain, and how errors are reported.

use std::fs;

use serde_json::json;

use super::*;

const OBJECT: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"a"}}"#;
const EXPECTATION: &str = r#"{"next":"awaitChange"}"#;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn read_case(files: &[(&str, &str)]) -> Result<Case, String> {
    let folder = folder(files);
    let case = Case::read(folder.path());
    // The folder's name differs each time.
    let place = format!("{}/", folder.path().display());
    case.map_err(|error| format!("{error:#}").replace(&place, ""))
}

#[test]
fn a_case_is_read_whole() {
    let list = json!({ "kind": "PodList", "items": [
        { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "y" } },
        { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "z" } },
    ] });
    let array = r#"[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one"}}]"#;
    let request = r#"{"controller":"c","attempt":2,"settings":{"a":"b"},"last":{"code":409,"reason":"Conflict"}}"#;
    let case = read_case(&[
        ("object.json", OBJECT),
        ("cache/b.json", &list.to_string()),
        ("cache/a.json", array),
        ("cache/.hidden", "x"),
        ("request.json", request),
        ("expect.json", EXPECTATION),
        ("README.md", "why"),
    ])
    .unwrap();
    let names: Vec<&str> = case
        .cache
        .iter()
        .map(|given| given.key.name.as_str())
        .collect();
    assert_eq!(names, ["one", "y", "z"]);
    assert_eq!(case.object.unwrap().key.to_string(), "Pod.v1 a/x");
    assert_eq!(case.request.controller.as_deref(), Some("c"));
    assert_eq!(
        (case.request.attempt, &*case.request.settings["a"]),
        (2, "b")
    );
    assert_eq!(case.request.last.unwrap().code, 409);
    assert_eq!(case.expect.unwrap().effects, Some(Vec::new()));
}

#[test]
fn an_empty_case_is_an_object_that_is_gone() {
    let case = read_case(&[]).unwrap();
    assert!(case.object.is_none() && case.expect.is_none() && case.cache.is_empty());
    assert_eq!(case.request, RequestFile::default());
}

#[test]
fn a_recorded_turn_keeps_the_texts_of_its_objects() {
    let pod = |name: &str| {
        format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}"}},"n":1.0}}"#)
    };
    let (own, other, before) = (pod("x"), pod("y"), pod("z"));
    let reads = r#"[{"ask":{"verb":"get","apiVersion":"v1","kind":"Pod","name":"y"},"answer":{"object":{"b":1,"a":2}}}]"#;
    let files = |request: &str| {
        let file = format!("{own}\n");
        read_case(&[
            ("object.json", file.as_str()),
            ("cache/000-pod.json", other.as_str()),
            ("request.json", request),
            ("reads.json", reads),
        ])
        .unwrap()
    };
    let texts = |case: &Case| {
        let object = case.object.as_ref().and_then(|given| given.text.clone());
        (object, case.cache[0].text.clone(), case.previous.clone())
    };
    let recorded = files(&format!(
        "{{ \"now\": \"2026-01-31T12:00:00Z\", \"previous\": {before} }}"
    ));
    assert_eq!(
        texts(&recorded),
        (Some(own.clone()), Some(other.clone()), Some(before.clone()))
    );
    let entries = recorded.reads.unwrap();
    let object = entries[0].answer.object.as_ref().unwrap();
    assert_eq!(object.get(), r#"{"b":1,"a":2}"#);
    let written = files(&format!("{{ \"previous\": {before} }}"));
    assert_eq!(texts(&written), (None, None, None));
}

#[test]
fn a_mistake_is_named_by_file_field_and_place() {
    let pod = |name: &str| format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{{name}}}}}"#);
    for (file, text, says) in [
        (
            "object.json",
            "{\n  \"kind\": ,\n}",
            "object.json: kind: expected value at line 2 column 11",
        ),
        (
            "object.json",
            "{} {}",
            "object.json: trailing characters at line 1 column 4",
        ),
        (
            "object.json",
            "",
            "object.json: EOF while parsing a value at line 1 column 0",
        ),
        (
            "object.json",
            "[]",
            "object.json: apiVersion is missing or not a string",
        ),
        (
            "object.json",
            r#"{"apiVersion":"v1","kind":7}"#,
            "object.json: kind is missing or not a string",
        ),
        (
            "object.json",
            &pod(""),
            "object.json: metadata.name is missing or not a string",
        ),
        (
            "cache/a.json",
            "[{}]",
            "cache/a.json: item 0: apiVersion is missing or not a string",
        ),
        (
            "cache/a.json",
            &pod(r#""name":"x","namespace":"a""#),
            "cache/a.json: Pod.v1 a/x is also in object.json",
        ),
        (
            "cache/a.yaml",
            "kind: Pod",
            "cache/a.yaml is not a .json file; convert it to JSON",
        ),
        (
            "request.json",
            r#"{"attempts":1}"#,
            "request.json: attempts: unknown field `attempts`, expected one of `controller`",
        ),
        (
            "request.json",
            r#"{"attempt":-1}"#,
            "request.json: attempt: invalid value: integer `-1`",
        ),
        (
            "request.json",
            r#"{"last":{"code":409}}"#,
            "request.json: last: missing field `reason`",
        ),
        (
            "reads.json",
            r#"[{"ask":{"verb":"watch"}}]"#,
            "reads.json: [0].ask.verb: unknown variant `watch`",
        ),
        ("expect.json", "{}", "expect.json: next is missing"),
        (
            "expect.json",
            r#"{"next":"later"}"#,
            "expect.json: next: unknown variant `later`, expected one of `awaitChange`",
        ),
        (
            "expect.json",
            r#"{"next":"requeue","effects":[{"patch":{"bodi":{}}}]}"#,
            "expect.json: effects[0].patch.bodi: unknown field `bodi`, expected one of `key`",
        ),
        (
            "expect.json",
            r#"{"next":"requeue","effects":[{"event":{"type":"odd","reason":"","note":""}}]}"#,
            "expect.json: effects[0].event.type: unknown variant `odd`",
        ),
        (
            "expected.json",
            EXPECTATION,
            "expected.json is not part of a case",
        ),
        ("objects/a.json", OBJECT, "objects is not part of a case"),
    ] {
        let error = read_case(&[("object.json", OBJECT), (file, text)]).unwrap_err();
        assert!(error.starts_with(says), "{error}\n{says}");
    }
}

#[test]
fn folders_are_cases_and_no_case_is_an_error() {
    let root = folder(&[
        ("b/expect.json", ""),
        ("a/object.json", ""),
        (".git/x", ""),
        ("README.md", ""),
    ]);
    let names: Vec<String> = folders(root.path())
        .unwrap()
        .iter()
        .map(|of| name_of(of))
        .collect();
    assert_eq!(names, ["a", "b"]);
    for empty in [folder(&[]).path(), Path::new("/nowhere/cases")] {
        let error = folders(empty).unwrap_err().to_string();
        assert!(error.contains("a case is a folder in it"), "{error}");
    }
}
