use super::*;
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn paths_are_read_and_printed_as_written() {
    for (text, root) in [
        ("spec", "spec"),
        ("spec.volumes[*].secret.secretName", "spec.volumes"),
        (
            r#"metadata.labels["app.kubernetes.io/name"]"#,
            "metadata.labels",
        ),
        (r#"spec["plain"].x"#, "spec.plain.x"),
        (r#"data["a\"]b"]"#, r#"data.a"]b"#),
        ("spec.rules[*][*].host", "spec.rules"),
        (r#"data["\u00e9.x"].y"#, "data"),
    ] {
        let path = FieldPath::parse(text).unwrap();
        assert_eq!(path.root_dotted(), root, "{text}");
        assert_eq!(path.to_string(), text);
        let json = serde_json::to_string(&path).unwrap();
        assert_eq!(serde_json::from_str::<FieldPath>(&json).unwrap(), path);
    }
}

#[test]
fn the_text_at_fault_is_named() {
    for (text, names) in [
        ("", "missing at its end"),
        ("spec.", "missing at its end"),
        (".spec", "before \".spec\""),
        ("spec..x", "before \".x\""),
        ("[*].x", "before \"[*].x\""),
        ("spec.[*]", "before \"[*]\""),
        ("spec[0]", "\"[0]\" begins with neither"),
        ("spec[*", "\"[*\" begins with neither"),
        ("spec[*]x", "\"x\" begins with neither"),
        ("spec['a']", "begins with neither"),
        ("spec[\"a]", "contains no JSON string"),
        ("spec[\"a\"x", "no `]`"),
        ("spec a", "' ' in \"spec a\""),
        ("spec.*", "'*' in \"*\""),
        ("spec.a\u{7}", "in \"a\\u{7}\""),
        (&"a.".repeat(600), "longer than 1024 bytes"),
    ] {
        let error = FieldPath::parse(text).unwrap_err().to_string();
        assert!(error.contains(names), "{text}: {error}");
    }
}

#[test]
fn values_are_scalars_as_text() {
    let object = r#" { "a" : "x", "n":9007199254740993, "e":-1.50e3, "t":true,"f":false,"z":null,
        "o":{"k.v":"dotted","k":{"v":"nested"},"":"empty"}, "l":[1,[2,3],{"n":"four"},null,"\u0068\"i"],
        "sp\u0065c":{"n\u00e4me":"\ud83d\ude00\n"}, "deep":[{"x":[{"y":1},{"y":"2"}]},{"x":[]},{},{"x":{"q":{"y":5}}},7] }"#;
    for (path, values) in [
        ("a", &["x"][..]),
        ("n", &["9007199254740993"]),
        ("e", &["-1.50e3"]),
        ("t", &["true"]),
        ("f", &["false"]),
        ("z", &[]),
        ("o", &[]),
        ("l", &[]),
        ("missing", &[]),
        ("a.b", &[]),
        ("n[*]", &[]),
        ("z.b", &[]),
        ("o.k.v", &["nested"]),
        (r#"o["k.v"]"#, &["dotted"]),
        (r#"o[""]"#, &["empty"]),
        ("o[*]", &["dotted", "empty"]),
        ("o[*].v", &["nested"]),
        ("l[*]", &["1", "h\"i"]),
        ("l[*][*]", &["2", "3", "four"]),
        ("l[*].n", &["four"]),
        ("spec.n\u{e4}me", &["\u{1f600}\n"]),
        ("deep[*].x[*].y", &["1", "2", "5"]),
    ] {
        assert_eq!(
            FieldPath::parse(path).unwrap().values(object),
            values,
            "{path}"
        );
    }
}

#[test]
fn a_plain_string_is_borrowed_and_the_walk_ends_early() {
    let path = FieldPath::parse("a.b").unwrap();
    let found = path.values(r#"{"a":{"b":"x"},"c": this is never looked at"#);
    assert!(matches!(found[..], [Cow::Borrowed("x")]), "{found:?}");
}

#[test]
fn text_that_is_not_json_gives_nothing() {
    for text in [
        "",
        "{",
        r#"{"a""#,
        r#"{"a":[1,2"#,
        r#"{"a":[1,x]}"#,
        r#"{"b":tru,"a":[1]}"#,
        "\u{feff}{}",
        &"[".repeat(100_000),
        &format!("{}1", r#"{"b":"#.repeat(100_000)),
    ] {
        let found = FieldPath::parse("a[*]").unwrap().values(text);
        assert!(
            found.is_empty(),
            "{}: {found:?}",
            crate::text::cut(text, 80)
        );
    }
}

/// Evaluates the path on a parsed tree.
fn naive(steps: &[Step], value: &Value, found: &mut Vec<String>) {
    match (steps.split_first(), value) {
        (None, Value::String(text)) => found.push(text.clone()),
        (None, Value::Number(_) | Value::Bool(_)) => found.push(value.to_string()),
        (Some((Step::Key(key), below)), Value::Object(members)) => {
            if let Some(value) = members.get(&**key) {
                naive(below, value, found);
            }
        }
        (Some((Step::All, below)), Value::Object(members)) => {
            members
                .values()
                .for_each(|value| naive(below, value, found));
        }
        (Some((Step::All, below)), Value::Array(items)) => {
            items.iter().for_each(|value| naive(below, value, found));
        }
        _ => {}
    }
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a".into()),
        Just("b".into()),
        Just("c.d".into()),
        ".{0,3}"
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        2 => Just("[*]".to_owned()),
        3 => key().prop_map(|key| format!("[{}]", Value::from(key))),
    ];
    ("[abx]", prop::collection::vec(step, 0..4))
        .prop_map(|(first, steps)| format!("{first}{}", steps.concat()))
}

proptest! {
    #[test]
    fn a_walk_finds_what_a_tree_holds(
        members in prop::collection::btree_map(key(), json(), 0..5),
        path in path(),
        pretty in any::<bool>(),
    ) {
        let path = FieldPath::parse(&path).unwrap();
        let object = Value::Object(members.into_iter().collect());
        let mut expected = Vec::new();
        naive(&path.steps, &object, &mut expected);
        let text = if pretty { format!("{object:#}") } else { object.to_string() };
        prop_assert_eq!(path.values(&text), expected);
    }

    #[test]
    fn no_text_makes_it_panic(path in ".{0,12}", text in ".{0,40}") {
        if let Ok(path) = FieldPath::parse(&path) {
            path.values(&text);
        }
        FieldPath::parse("a[*]").unwrap().values(&text);
    }
}
