//! Tests that bodies are read as a real server reads them, however they are made.

use super::*;
use serde_json::json;

#[test]
fn the_last_of_two_fields_counts_and_both_are_told() {
    let text = br#"{"a":{"b":1,"b":2,"c":[{"d":1,"d":null}]},"x":1.5,"a2":-1,"x":true}"#;
    let body = json(text).unwrap();
    assert_eq!(
        body.value,
        json!({ "a": { "b": 2, "c": [{ "d": null }] }, "x": true, "a2": -1 })
    );
    let told: Vec<String> = body.duplicates.iter().map(Twice::to_string).collect();
    assert_eq!(
        told,
        ["a.b", "a.c[0].d", "x"].map(|path| format!("duplicate field {path:?}"))
    );
    let body = yaml(b"a: 1\nb:\n- c: x\n1: one\n").unwrap();
    assert_eq!(
        body.value,
        json!({ "a": 1, "b": [{ "c": "x" }], "1": "one" })
    );
    assert!(body.duplicates.is_empty());
    assert!(json(b"{} x").is_err() && json(b"{\"a\":").is_err());
}

#[test]
fn long_keys_and_many_fields_take_no_longer_than_they_are() {
    let items = vec!["0"; 1 << 18].join(",");
    let text = format!("{{\"{}\":[{items}]}}", "k".repeat(1 << 20));
    assert!(json(text.as_bytes()).unwrap().duplicates.is_empty());
    let fields: Vec<String> = (0..100_000)
        .map(|n| format!("\"{n}\":1,\"{n}\":2"))
        .collect();
    let text = format!("{{{}}}", fields.join(","));
    let body = json(text.as_bytes()).unwrap();
    assert_eq!(body.duplicates.len(), MOST);
    assert_eq!(body.value["99999"], 2);
}

#[test]
fn aliases_add_only_so_much() {
    let few = yaml(b"a: &a [1, 2]\nb: *a\nc: *a\n").unwrap();
    assert_eq!(few.value, json!({ "a": [1, 2], "b": [1, 2], "c": [1, 2] }));
    let many = |item: &str, count: usize| {
        let aliases = vec!["*a"; count].join(", ");
        yaml(format!("a: &a {item}\nb: [{aliases}]\n").as_bytes())
    };
    assert!(many("[1, 2]", 1000).is_ok());
    let items = format!("[{}]", vec!["1"; 10_000].join(","));
    let error = many(&items, 10_000).unwrap_err().to_string();
    assert!(error.contains("excessive aliasing"), "{error}");
    assert!(many(&"x".repeat(1 << 20), 10_000).is_err());
    // What is written out is read, however much it is.
    let all = vec!["'*'"; 500_000].join(",");
    assert!(yaml(format!("[{all}]").as_bytes()).is_ok());
}

#[test]
fn deep_bodies_are_refused() {
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    assert!(json(&deep).is_err());
}

#[test]
fn yaml_tells_the_lines_of_what_it_gives_twice() {
    let text = b"a: 1\nb:\n  c: x\n  c:\n    d: 1\n    d: 2\na: [1]\na: 3\n";
    let body = yaml(text).unwrap();
    assert_eq!(body.value, json!({ "a": 3, "b": { "c": { "d": 2 } } }));
    let told: Vec<String> = body.duplicates.iter().map(Twice::to_string).collect();
    let lines = [(5, "c"), (6, "d"), (7, "a"), (8, "a")];
    let expected = lines.map(|(line, key)| format!("line {line}: key {key:?} already set in map"));
    assert_eq!(told, expected);
    let many: String = (0..200).map(|n| format!("a: {n}\n")).collect();
    assert_eq!(yaml(many.as_bytes()).unwrap().duplicates.len(), PASSES);
}

#[test]
fn faults_are_told_in_the_order_of_the_body() {
    let text = br#"{"z":1,"a":{"b":1,"b":2,"y":[{"c":3}]},"d":1}"#;
    let body = json(text).unwrap();
    let unknown = ["a.y[0].c", "d", "z"].map(str::to_owned);
    let told = faults(&body.duplicates, &unknown, Some(text));
    let (field, twice) = ("unknown field", "duplicate field");
    assert_eq!(
        told,
        [
            (field, "z"),
            (twice, "a.b"),
            (field, "a.y[0].c"),
            (field, "d")
        ]
        .map(|(what, path)| format!("{what} {path:?}"))
    );
    // Of a custom kind, what is given twice is found before what is unknown.
    let told = faults(&body.duplicates, &unknown, None);
    assert_eq!(told[0], "duplicate field \"a.b\"");
    let lines = yaml(b"a: 1\na: 2\na: 3\n").unwrap().duplicates;
    assert_eq!(
        refusal(&lines, &["d".to_owned()], None),
        "yaml: unmarshal errors:\n  line 2: key \"a\" already set in map\n  line 3: key \"a\" \
         already set in map, unknown field \"d\""
    );
}

#[test]
fn many_unknown_fields_take_no_longer_than_they_are() {
    let unknown: Vec<String> = (0..100_000).map(|n| format!("u{n}")).collect();
    let fields = unknown.iter().map(|name| format!("{name:?}:1"));
    let fields: Vec<String> = fields.collect();
    let text = format!("{{{}}}", fields.join(","));
    assert_eq!(faults(&[], &unknown, Some(text.as_bytes())).len(), MOST);
    // Of a custom kind, all are told.
    assert_eq!(faults(&[], &unknown, None).len(), unknown.len());
}
