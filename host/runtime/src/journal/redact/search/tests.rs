//! Tests that a value is found in each of its forms, and nothing else is.

use serde_json::json;

use super::*;

const VALUE: &str = "p\"ä<s>\\wörd\n1";

fn hidden(values: &[&str], text: &str) -> String {
    let mut text = text.to_owned();
    Search::new(values.iter().map(|value| (*value, "*"))).text(&mut text);
    text
}

#[test]
fn a_value_is_found_in_each_form() {
    let json = json!({ "v": VALUE }).to_string();
    let nested = json!({ "text": json }).to_string();
    let python = r#"{"v": "p\"\u00e4<s>\\w\u00f6rd\n1"}"#.to_owned();
    let go = r#"{"v":"p\"ä\u003cs\u003e\\wörd\n1"}"#.to_owned();
    let line = one_line(VALUE).into_owned();
    let base64 = STANDARD.encode(VALUE);
    for text in [VALUE, &json, &nested, &python, &go, &line, &base64] {
        let text = hidden(&[VALUE], &format!("<{text}>"));
        assert!(text.contains('*'), "{text}");
        assert!(
            !text.contains("rd") && !text.contains(&base64[2..8]),
            "{text}"
        );
    }
}

#[test]
fn a_value_is_found_inside_of_a_longer_text_in_base64() {
    for before in ["", "u", "us", "user:"] {
        for after in ["", "@", "@host"] {
            let text = STANDARD.encode(format!("{before}correct?>horse{after}"));
            for text in [text.replace('+', "-").replace('/', "_"), text] {
                let hidden = hidden(&["correct?>horse"], &text);
                let left = hidden.replace('*', "");
                // Two characters on each side depend on the neighbours.
                let neighbours = (before.len() + after.len()).div_ceil(3) * 4 + 4;
                assert!(hidden.contains('*') && left.len() <= neighbours, "{hidden}");
            }
        }
    }
}

#[test]
fn a_secrets_value_is_found_encoded_and_decoded() {
    let secret = STANDARD.encode("hunter2\n");
    for text in ["hunter2", "xhunter2x", &*secret, &*STANDARD.encode(&secret)] {
        let text = hidden(&[&secret], text);
        assert!(text.contains('*'), "{text}");
    }
}

#[test]
fn a_value_is_found_in_a_url() {
    let url = "https://a.com/k%2Fe%2By%3D?of=k%2Fe%2By%3D&with=a%20space&or=a+space";
    assert_eq!(
        hidden(&["k/e+y=", "a space"], url),
        "https://a.com/*?of=*&with=*&or=*"
    );
}

#[test]
fn values_that_overlap_leave_nothing() {
    assert_eq!(hidden(&["abcd", "cdefgh"], "-abcdefgh-"), "-*-");
    assert_eq!(hidden(&["abcd", "abcdef"], "abcdef abcd"), "* *");
    assert_eq!(hidden(&["abcd"], "abcdabcd éabcd"), "** é*");
}

#[test]
fn the_longest_of_many_values_is_found() {
    let mut values: Vec<String> = (0..3000).map(|at| format!("aaaa{at}")).collect();
    values.push("a".repeat(20));
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    assert_eq!(hidden(&values, "-aaaa123-aaaa12x"), "-*-*x");
    assert_eq!(hidden(&values, "baaab aaaa aaaaa1"), "baaab aaaa a*");
    // This is fast only if the search does not try all values at each position.
    let long = "a".repeat(200_000);
    assert_eq!(hidden(&values, &long), "*");
}

/// Who writes a Secret also writes objects, and a search of seconds would hold up all readers of
/// the journal.
#[test]
fn a_text_that_takes_too_long_is_hidden_as_a_whole() {
    let long = "a".repeat(100_000);
    assert_eq!(hidden(&[&long], &"a".repeat(90_000)), WHOLE);
    let secret = "0123456789".repeat(100);
    let text = format!("-{secret}").repeat(100);
    assert_eq!(hidden(&[&secret], &text), "-*".repeat(100));
}

#[test]
fn a_short_value_is_not_searched_for() {
    assert_eq!(hidden(&["abc", "", "YWI="], "abc YWI="), "abc YWI=");
    assert_eq!(hidden(&[], "abc"), "abc");
}

#[test]
fn a_value_is_found_at_the_end_of_a_text_that_was_cut() {
    let long = " ".repeat(CUT);
    assert_eq!(
        hidden(&["correct-horse"], &format!("{long}correct-h")),
        format!("{long}*")
    );
    assert_eq!(hidden(&["correct-horse"], "correct-h"), "correct-h");
}

#[test]
fn texts_and_numbers_are_hidden_and_names_stay() {
    let search = Search::new([("1234", "*"), ("true", "*")]);
    let mut value = json!({ "1234": ["a1234", 1234, 12345, true, null, { "x": "true" }] });
    search.value(&mut value);
    assert_eq!(
        value,
        json!({ "1234": ["a*", "*", 12345, true, null, { "x": "*" }] })
    );
}
