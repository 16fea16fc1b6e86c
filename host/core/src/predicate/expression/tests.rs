use super::*;
use proptest::prelude::*;

const OLD: &str = r#"{"metadata":{"name":"a","labels":{"app":"web"}},"spec":{"n":1,"items":[{"v":1},{"v":2}],"password":"hunter2"},"status":{"phase":"Pending"}}"#;
const NEW: &str = r#"{"metadata":{"name":"a","labels":{"app":"web","x.y/z":"1"}},"spec":{"n":2,"big":9007199254740993,"huge":18446744073709551615,"f":1.5,
    "on":true,"nil":null,"items":[{"v":1},{"v":2},{"v":3}],"password":"hunter3","esc":"a\n\u00e9"},"status":{"phase":"Running"}}"#;

/// Long enough that a stalled machine does not fail a test.
const UNHURRIED: Duration = Duration::from_secs(3600);

fn holds(expression: &str, old: Option<&str>) -> Result<bool, String> {
    Expression::compile(expression)
        .unwrap_or_else(|error| panic!("{expression}: {error}"))
        .with_loop_time(UNHURRIED)
        .holds(old, NEW)
}

#[test]
fn conditions_hold_as_in_an_admission_policy() {
    for (expression, expected) in [
        ("object.spec.n == 2", true),
        ("object.spec.n != oldObject.spec.n", true),
        (
            "object.status.phase == 'Running' && oldObject.status.phase != 'Running'",
            true,
        ),
        ("object.metadata.labels == oldObject.metadata.labels", false),
        ("object.metadata.labels['x.y/z'] == '1'", true),
        ("'x.y/z' in oldObject.metadata.labels", false),
        (
            "oldObject == null || object.spec.n > oldObject.spec.n",
            true,
        ),
        ("has(object.spec.missing)", false),
        (
            "has(object.spec.f) && object.spec.f > 1.0 && object.spec.f < 2",
            true,
        ),
        ("object.spec.big == 9007199254740993", true),
        ("object.spec.big == 9007199254740992", false),
        ("object.spec.huge > object.spec.big", true),
        ("object.spec.on", true),
        ("object.spec.nil == null", true),
        ("object.spec.esc == 'a\\n\\u00e9'", true),
        ("object.spec.items.all(i, i.v > 0)", true),
        ("object.spec.items.exists(i, i.v > 2)", true),
        ("oldObject.spec.items.exists(i, i.v > 2)", false),
        ("object.spec.items.exists_one(i, i.v > 2)", true),
        ("object.spec.items.filter(i, i.v > 1).size() == 2", true),
        ("object.spec.items.map(i, i.v) == [1, 2, 3]", true),
        ("object.spec.items.map(i, i.v > 1, i.v * 2) == [4, 6]", true),
        ("object.spec.items.map(i, i.v).exists(v, v == 3)", true),
        (
            "object.spec.items.all(i, oldObject.spec.items.exists(o, o.v == i.v))",
            false,
        ),
        (
            "size(object.spec.items) == oldObject.spec.items.size() + 1",
            true,
        ),
        ("object.metadata.name.matches('^[a-c]$')", true),
        ("matches(object.metadata.name, '^[b-c]$')", false),
        (
            "object.metadata.name.startsWith('a') && 'abc'.contains(object.metadata.name)",
            true,
        ),
        ("object.?spec.?missing.orValue('x') == 'x'", true),
        ("optional.of(object.spec.n).hasValue()", true),
        ("object.spec.missing == 1 || true", true),
        (
            "type(object.spec.n) == int && string(object.spec.n) == '2'",
            true,
        ),
    ] {
        assert_eq!(holds(expression, Some(OLD)), Ok(expected), "{expression}");
    }
    assert_eq!(
        holds("oldObject == null && object.spec.n == 2", None),
        Ok(true)
    );
}

#[test]
fn what_cannot_be_decided_is_an_error_without_values() {
    for (expression, names) in [
        ("object.spec.missing == 1", "no such key: missing"),
        ("object.spec.n", "type int, not bool"),
        ("object.spec.password", "type string, not bool"),
        ("object.spec.password > 1", "no matching overload"),
        (
            "object.spec.password + 1 == ''",
            "add is not defined for these types",
        ),
        ("!object.spec.password", "no matching overload"),
        ("object.spec.password ? true : false", "not of type bool"),
        ("object.spec.password.all(x, true)", "not of type iterable"),
        ("object.spec.password && true", "no matching overload"),
        (
            "int(object.spec.password) == 1",
            "int does not accept this value",
        ),
        (
            "object.spec.items[object.spec.password].v == 1",
            "no matching overload",
        ),
        ("object.spec.items[3].v == 1", "no such item"),
        ("object.spec.n / 0 == 1", "division by zero"),
        ("9223372036854775807 + object.spec.n == 1", "too big"),
        ("oldObject.spec.n == 1", "null"),
    ] {
        let error = holds(expression, None).unwrap_err();
        assert!(
            error.starts_with("cel: ") && error.contains(names),
            "{expression}: {error}"
        );
        assert!(!error.contains("hunter"), "{expression}: {error}");
    }
    let error = Expression::compile("object.a == 1").unwrap();
    for text in ["", "[]", "{", "{\"a\":1} x", &"{\"a\":".repeat(10_000)] {
        assert_eq!(
            error.holds(None, text),
            Err("cel: the object cannot be read".into())
        );
    }
}

#[test]
fn a_bad_expression_is_named() {
    for (expression, names) in [
        ("", "not a CEL expression"),
        ("object.spec.n ==", "line 1, column"),
        ("object.spec.\n  n = 1", "line 2, column"),
        ("obj.spec.n == 1", "unknown name \"obj\""),
        ("object.spec.items.all(i, j.v == 1)", "unknown name \"j\""),
        (
            "object.spec.items.all(i, i.v == 1) && i.v == 1",
            "unknown name \"i\"",
        ),
        (
            "timestamp(object.metadata.creationTimestamp) == 1",
            "unknown function \"timestamp\"",
        ),
        (
            "object.spec.n.frobnicate()",
            "unknown function \"frobnicate\"",
        ),
        ("do_it(object.spec.n)", "unknown function \"do_it\""),
        ("optional.frob(1)", "unknown function \"frob\""),
        ("Pod{name: 'a'} == object", "cannot construct \"Pod\""),
        (
            "object.a.matches(object.b)",
            "must be a string in the expression",
        ),
        (
            "object.a.matches('(')",
            "invalid pattern \"(\": error: unclosed group",
        ),
        ("object.a.matches('(a{1000}){1000}')", "invalid pattern"),
        (
            "object.a.all(x, x.b.all(y, y.c.all(z, z)))",
            "nest at most 2 deep",
        ),
        (
            "object.a.map(x, x).map(x, x).map(x, x) == []",
            "nest at most 2 deep",
        ),
        (
            "[object,object,object,object,object,object,object,object,object,object,object,object,object,object,object,object,object] == []",
            "17 additions",
        ),
        (
            &format!("[{}] == []", ["object.a+object.a"; 9].join(",")),
            "18 additions",
        ),
        (
            &format!("object.a == '{}'", "x".repeat(4096)),
            "at most 4096 bytes",
        ),
        (&"(".repeat(10_000), "at most 4096 bytes"),
    ] {
        let error = Expression::compile(expression).unwrap_err();
        assert!(error.contains(names), "{expression}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn no_expression_overflows_the_stack() {
    let nested = |open: &str, inner: &str, close: &str| {
        let turns = (LONGEST - inner.len()) / (open.len() + close.len());
        format!("{}{inner}{}", open.repeat(turns), close.repeat(turns))
    };
    for expression in [
        nested("(", "true", ")"),
        nested("(", "", ""),
        nested("[", "1", "]"),
        nested("{1:", "1", "}"),
        nested("!", "true", ""),
        nested("-", "1", ""),
        nested("", "true", "&&true"),
        nested("", "true", "||false"),
        nested("", "1", "+1"),
        nested("", "1", "<1"),
        nested("", "object", ".a"),
        nested("", "object", "[0]"),
        nested("", "object", ".a()"),
        nested("true?", "true", ":true"),
        nested("true?true:", "true", ""),
        nested("size(", "[]", ")"),
        nested("", "[]", ".map(x,x)"),
        nested("object.a.all(x,", "true", ")"),
        nested("has(", "object.a", ")"),
        nested("'a' in ", "[]", ""),
        nested("", "'", "\\u"),
        nested("", "", "\u{0}"),
        nested("", "", "@"),
        nested("", "", ")"),
        nested("", "", "'''"),
    ] {
        if let Ok(compiled) = Expression::compile(&expression) {
            let _ = compiled.holds(Some(OLD), NEW);
        }
    }
}

#[test]
fn the_deepest_of_all_fits_three_quarters_of_a_workers_stack() {
    let mut deepest = "true".to_owned();
    while let Ok(deeper) = Expression::compile(&format!("true ? !{deepest} : false")) {
        drop(deeper);
        deepest = format!("(true ? !{deepest} : false)");
    }
    assert!(deepest.matches('?').count() >= 6, "{deepest}");
    let nested = format!(r#"{{"a":{}1{}}}"#, r#"{"a":["#.repeat(60), "]}".repeat(60));
    for (expression, expected) in [
        (&*deepest, None),
        ("object == oldObject", Some(true)),
        ("[object.a][0] == object.a", Some(true)),
    ] {
        let compiled = Expression::compile(expression).unwrap();
        let nested = nested.clone();
        let thread = std::thread::Builder::new().stack_size(1536 << 10);
        let outcome = thread
            .spawn(move || compiled.holds(Some(&nested), &nested))
            .unwrap();
        let outcome = outcome.join().unwrap().unwrap();
        assert!(
            expected.is_none_or(|expected| expected == outcome),
            "{expression}"
        );
    }
}

#[test]
fn arithmetic_and_conversions_do_not_panic() {
    let min = "(-9223372036854775807 - 1)";
    for expression in [
        format!("{min} / -1 == 1"),
        format!("{min} % -1 == 1"),
        format!("-{min} == 1"),
        format!("{min} * -1 == 1"),
        format!("{min} - 1 == 1"),
        "1 / 0 == 1".into(),
        "1 % 0 == 1".into(),
        "1u / 0u == 1u".into(),
        "1u % 0u == 1u".into(),
        "0u - 1u == 1u".into(),
        "18446744073709551615u + 1u == 1u".into(),
        "18446744073709551615u * 2u == 1u".into(),
        "1.0 / 0.0 == 1.0".into(),
        "0.0 / 0.0 == 0.0 / 0.0".into(),
        "0.0 / 0.0 < 1.0".into(),
        "int(1e300) == 1".into(),
        "int(0.0 / 0.0) == 1".into(),
        "int('99999999999999999999') == 1".into(),
        "int(18446744073709551615u) == 1".into(),
        "uint(-1) == 1u".into(),
        "uint(1e300) == 1u".into(),
        "double('x') == 1.0".into(),
        "bool('x')".into(),
        "string(b'\\xff') == ''".into(),
        "[1, 2][-1] == 1".into(),
        "[1, 2][9223372036854775807] == 1".into(),
        "[1, 2][18446744073709551615u] == 1".into(),
        "[1, 2][1.5] == 1".into(),
        "[1, 2]['a'] == 1".into(),
        "'abc'[0] == 'a'".into(),
        "{'a': 1}[null] == 1".into(),
        "{1: 1, 1u: 2}[1] == 1".into(),
        "{null: 1} == {}".into(),
        "null.all(x, true)".into(),
        "size(null) == 1".into(),
        "null < null".into(),
        "object < object".into(),
        "object + object == object".into(),
        "optional.none().value() == 1".into(),
        "object.?a.b.c == 1".into(),
        "object[?'a'] == 1".into(),
        "'a'.matches('')".into(),
        "matches('a')".into(),
        "'a'.matches('a', 'b')".into(),
        "size() == 1".into(),
        "value() == 1".into(),
        "[].all(x, x)".into(),
        "{}.map(x, x) == []".into(),
        "'\u{10ffff}'.size() == 1 && 'é'.contains('\u{301}')".into(),
    ] {
        let outcome = Expression::compile(&expression).and_then(|of| of.holds(Some(OLD), NEW));
        if let Err(error) = outcome {
            assert!(
                !error.contains("the interpreter panicked"),
                "{expression}: {error}"
            );
            assert!(
                !error.contains("the parser panicked"),
                "{expression}: {error}"
            );
        }
    }
}

#[test]
fn loops_end_with_their_time() {
    for expression in [
        "object.spec.items.all(i, true)",
        "object.spec.items.exists(i, false)",
        "object.spec.items.exists_one(i, true)",
        "object.spec.items.map(i, i) == []",
        "object.spec.items.map(i, true, i) == []",
        "object.spec.items.filter(i, true) == []",
        "object.spec.items.all(i, true) || true",
        "object.metadata.labels.all(i, object.spec.items.all(i, true) || true)",
        "!has(object.spec.items.filter(i, true)[0].x)",
    ] {
        let compiled = Expression::compile(expression)
            .unwrap()
            .with_loop_time(UNHURRIED);
        assert!(compiled.holds(None, NEW).is_ok(), "{expression}");
        let error = compiled.with_loop_time(Duration::ZERO).holds(None, NEW);
        let error = error.unwrap_err();
        assert!(error.contains("loops take longer"), "{expression}: {error}");
    }
    let no_loop = Expression::compile("object.spec.n == 2").unwrap();
    assert_eq!(
        no_loop.with_loop_time(Duration::ZERO).holds(None, NEW),
        Ok(true)
    );
}

#[test]
fn a_long_text_does_not_reach_a_pattern() {
    for expression in [
        "object.a.matches('(x+x+)+y')",
        "matches(object.a, '(x+x+)+y')",
    ] {
        let compiled = Expression::compile(expression).unwrap();
        let object = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes));
        assert_eq!(compiled.holds(None, &object(MATCHED_BYTES)), Ok(false));
        let error = compiled
            .holds(None, &object(MATCHED_BYTES + 1))
            .unwrap_err();
        assert_eq!(error, "cel: matches accepts strings of at most 16384 bytes");
    }
    let number = Expression::compile("object.a.matches('x')").unwrap();
    assert!(
        number
            .holds(None, r#"{"a":1}"#)
            .unwrap_err()
            .contains("no matching overload")
    );
}

#[test]
fn a_long_list_cannot_hold_up_the_informer() {
    let items = vec![r#"{"v":"aaaaaaaaaaaaaaaaaaaa"}"#; 20_000].join(",");
    let object = format!(r#"{{"spec":{{"items":[{items}]}}}}"#);
    let squared = "object.spec.items.all(a, object.spec.items.all(b, a.v == b.v))";
    let error = Expression::compile(squared).unwrap().holds(None, &object);
    assert!(error.unwrap_err().contains("loops take longer than 50ms"));
}

#[test]
fn the_fields_are_what_pruning_keeps() {
    for (expression, fields) in [
        ("object.spec.n == 2", Some(&["spec.n"][..])),
        (
            "has(object.spec.a.b) && oldObject.status.c == 1",
            Some(&["spec.a.b", "status.c"]),
        ),
        ("object.spec['a'].b == 1", Some(&["spec.a.b"])),
        ("object.?spec.?a.orValue(1) == 1", Some(&["spec.a"])),
        ("object.spec['x.y'].b == 1", Some(&["spec"])),
        (
            "object.spec[object.metadata.name].b == 1",
            Some(&["metadata.name", "spec"]),
        ),
        ("object.spec.items[0].v == 1", Some(&["spec.items"])),
        (
            "object.spec.items.all(i, i.v == object.spec.n)",
            Some(&["spec.items", "spec.n"]),
        ),
        (
            "object.spec.items.all(object, object.v == 1)",
            Some(&["spec.items"]),
        ),
        ("oldObject == null || null != object", Some(&[])),
        ("true", Some(&[])),
        ("object == oldObject", None),
        ("size(object) == 1", None),
        ("object[object.spec.n] == 1", None),
        ("object.all(k, k != 'spec')", None),
        ("[object][0].spec.n == 1", None),
    ] {
        let compiled = Expression::compile(expression).unwrap();
        let expected = fields.map(|fields| fields.iter().map(|&f| f.to_owned()).collect());
        assert_eq!(compiled.fields(), expected.as_ref(), "{expression}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_text_makes_it_panic(words in prop::collection::vec(prop::sample::select(vec![
        "object", ".", "spec", "n", "items", "(", ")", "[", "]", "{", "}", ",", ":", "?", "==", "!", "-", "+", "&&", "||", "<", "in", " ", "1", "'a'", "1.5",
        "2u", "null", "true", ".all(x,", ".map(x,", ".exists_one(x,", "x", "has(", "optional", "of", ".?", "[?", "'", "\"", "\\", "\u{e9}", "0x", "1e", "b'", "`",
    ]), 0..14)) {
        let outcome = Expression::compile(&words.concat()).and_then(|of| of.holds(Some(OLD), NEW));
        if let Err(error) = outcome {
            prop_assert!(!error.contains("the interpreter panicked") && !error.contains("the parser panicked"), "{}", error);
        }
    }
}
