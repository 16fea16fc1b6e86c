use super::*;
use serde_json::value::RawValue;

fn is_value(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.skip().and_then(|()| scanner.end()).is_ok()
}

#[track_caller]
fn as_serde(text: &str) {
    let sound = serde_json::from_str::<&RawValue>(text).is_ok();
    assert_eq!(is_value(text), sound, "{text:?}");
}

#[test]
fn it_takes_what_serde_takes() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "{}",
        " { } ",
        "[]",
        "[ ]",
        "[,]",
        "[1,]",
        "[1 2]",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":1 "b":2}"#,
        r#"{a:1}"#,
        r#"{1:1}"#,
        r#"{"a":[{"b":[]},{}]}"#,
        "[}",
        "{]",
        r#"{"a":1]"#,
        "[1}",
        "0",
        "-0",
        "00",
        "01",
        "-",
        "1.",
        ".5",
        "1.5e",
        "1e5",
        "1E+5",
        "1e-05",
        "1e+",
        "+1",
        "1.5.2",
        "12345678901234567890123",
        "1e400",
        "true",
        "tru",
        "truex",
        "false",
        "null",
        "nul",
        "nullnull",
        "True",
        "\"",
        "\"a",
        r#""a""#,
        r#""\""#,
        r#""\\""#,
        r#""\x""#,
        r#""\u12""#,
        r#""\u12g4""#,
        r#""\u00e9""#,
        r#""\ud800""#,
        r#""é\/\b\f\n\r\t""#,
        "\"\u{1}\"",
        "\"\t\"",
        "\"12345678\u{1f}\"",
        "\"1234567\n\"",
        "\"\u{7f}\u{80}é漢\"",
        "{} {}",
        "1 1",
        "\u{feff}{}",
        "[[[[[[]]]]]]",
        "\u{a0}1",
        "\u{c}1",
        "1\u{b}",
    ] {
        as_serde(text);
    }
}

#[test]
fn damage_anywhere_is_seen_as_serde_sees_it() {
    let sound = r#" {"a":[1,-2.5e+3,"x\u00e9\\",{"bcdefghijkl":null}],"empty":{},"t":true, "f":[false ,[]] ,"long":"0123456789abcdef0123456789"} "#;
    assert!(is_value(sound));
    let mut random = fastrand::Rng::with_seed(1);
    for at in 0..sound.len() {
        as_serde(&sound[..at]);
        for byte in b" \t\n\"\\{}[]:,0-+.eEtfnau\x01\x7f" {
            let mut damaged = sound.as_bytes().to_vec();
            damaged[at] = *byte;
            as_serde(std::str::from_utf8(&damaged).unwrap());
            damaged.insert(random.usize(..damaged.len()), *byte);
            as_serde(std::str::from_utf8(&damaged).unwrap());
        }
    }
}

#[test]
fn random_tokens_read_as_serde_reads_them() {
    let tokens = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\\u0041\"",
        "1",
        "-0.5e1",
        "true",
        "null",
        " ",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..200_000 {
        let text: String = (0..random.usize(1..9))
            .map(|_| tokens[random.usize(..tokens.len())])
            .collect();
        as_serde(&text);
    }
}

#[test]
fn no_depth_overflows() {
    for depth in [1, 63, 64, 65, 127, 128, 129, 200, 1_000_000] {
        let mixed: String = (0..depth)
            .map(|level| if level % 3 == 0 { "[" } else { "{\"a\":" })
            .collect();
        let ends: String = (0..depth)
            .rev()
            .map(|level| if level % 3 == 0 { ']' } else { '}' })
            .collect();
        assert!(is_value(&format!("{mixed}1{ends}")), "{depth}");
        assert!(!is_value(&format!("{mixed}1{}", &ends[1..])), "{depth}");
        assert!(!is_value(&format!("{mixed}1{ends}]")), "{depth}");
    }
    assert!(!is_value(&"[".repeat(1_000_000)));
}

#[test]
fn members_and_items_are_walked() {
    let text = r#"{ "a":1 , "b\u0063": [ 2,{"x":3} ] }"#;
    let mut scanner = Scanner::new(text);
    scanner.open_object().unwrap();
    let one = scanner.member(true).unwrap().unwrap();
    assert!(one.key.says("a") && one.start == one.bare);
    assert_eq!(scanner.value().unwrap(), "1");
    let two = scanner.member(false).unwrap().unwrap();
    assert!(two.key.says("bc") && !two.key.says("b"));
    assert_eq!(
        (&text[two.start..two.bare], &text[two.bare..two.bare + 2]),
        (" ,", " \"")
    );
    scanner.open_array().unwrap();
    assert!(scanner.item(true).unwrap());
    assert_eq!(scanner.value().unwrap(), "2");
    assert!(scanner.item(false).unwrap());
    assert_eq!(scanner.value().unwrap(), r#"{"x":3}"#);
    assert!(!scanner.item(false).unwrap());
    assert!(scanner.member(false).unwrap().is_none());
    scanner.end().unwrap();
    let bad = Scanner::new(" 7").open_object().unwrap_err();
    assert_eq!(bad.to_string(), "expected an object at byte 1");
    assert!(Scanner::new("[ ]").open_array().is_ok() && Scanner::new("x").string().is_err());
}
