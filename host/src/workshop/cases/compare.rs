//! Compares the actual result with the expected one, and shows a readable difference. This module
//! must not know where the results come from.

use serde_json::Value;
use similar::TextDiff;

use super::form::Expectation;

/// Lines of context around a difference.
const CONTEXT: usize = 3;

/// Returns the difference between the expected and the actual result. `None` if they are equal.
pub(crate) fn difference(expected: &Expectation, actual: &Expectation) -> Option<String> {
    difference_between(("expected", expected), ("actual", actual))
}

/// Returns the difference between two results, each with its name in the difference. The first is
/// the expected one. `None` if they are equal.
pub(crate) fn difference_between(
    (expected_name, expected): (&str, &Expectation),
    (actual_name, actual): (&str, &Expectation),
) -> Option<String> {
    let mut actual = actual.clone();
    actual.as_far_as(expected);
    if let (Some(wanted), Some(error)) = (&expected.error, &actual.error)
        && error.contains(wanted)
    {
        actual.error = expected.error.clone();
    }
    if *expected == actual {
        return None;
    }
    let (expected, actual) = (text(expected), text(&actual));
    Some(shown((expected_name, &expected), (actual_name, &actual)))
}

/// Returns the difference between two values, each with what it is called. `None` if they are
/// equal.
pub(crate) fn difference_of_values(
    (expected_name, expected): (&str, &Value),
    (actual_name, actual): (&str, &Value),
) -> Option<String> {
    // `{:#}` ends without a line break.
    let lines = |value: &Value| format!("{value:#}\n");
    let (old, new) = (lines(expected), lines(actual));
    (expected != actual).then(|| shown((expected_name, &old), (actual_name, &new)))
}

fn shown((old_name, old): (&str, &str), (new_name, new): (&str, &str)) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut shown = diff.unified_diff();
    shown
        .context_radius(CONTEXT)
        .header(old_name, new_name)
        .to_string()
}

/// Turns the actual result into an expectation: with logs, unless the previous expectation had
/// none.
pub(crate) fn updated(expected: Option<&Expectation>, actual: &Expectation) -> Expectation {
    let mut updated = actual.clone();
    if expected.is_some_and(|expected| expected.logs.is_none()) {
        updated.logs = None;
    }
    updated
}

/// Formats an `expect.json`: pretty, with fields in the order of the form, and members of bodies in
/// alphabetical order.
pub(crate) fn text(expectation: &Expectation) -> String {
    // Serialising cannot fail, since there are only strings and JSON.
    let mut text = serde_json::to_string_pretty(expectation).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Expectation {
        let read: Expectation = serde_json::from_str(text).unwrap();
        read.settle().unwrap()
    }

    #[test]
    fn logs_are_compared_where_they_are_expected() {
        let actual = read(r#"{"next":"awaitChange","logs":[{"level":"info","message":"hello"}]}"#);
        assert_eq!(
            difference(&read(r#"{"next":"awaitChange"}"#), &actual),
            None
        );
        let silent = read(r#"{"next":"awaitChange","logs":[]}"#);
        let told = difference(&silent, &actual).unwrap();
        assert!(told.contains("+      \"message\": \"hello\""), "{told}");
    }

    #[test]
    fn an_effect_for_a_named_cluster_is_compared_with_its_cluster_and_its_effect() {
        let of = |body: &str| {
            let effect = format!(r#"{{"other":{{"name":"in-cluster"{body}}}}}"#);
            read(&format!(r#"{{"effects":[{effect}],"next":"awaitChange"}}"#))
        };
        let there = |cluster: &str, value: u32| {
            of(&format!(
                r#","body":{{"cluster":{cluster},"effect":{{"apply":{{"object":{{"data":{value}}}}}}}}}"#
            ))
        };
        let actual = there("\"east\"", 1);
        assert_eq!(difference(&there("\"east\"", 1), &actual), None);
        let told = difference(&there("null", 1), &actual).unwrap();
        assert!(told.contains("-          \"cluster\": null,"), "{told}");
        assert!(told.contains("+          \"cluster\": \"east\","), "{told}");
        let told = difference(&there("\"east\"", 2), &actual).unwrap();
        assert!(told.contains("\"data\": 2\n"), "{told}");
        // As older hosts recorded it.
        assert_eq!(difference(&of(""), &actual), None);
    }

    #[test]
    fn an_error_holds_what_is_expected_of_it() {
        let actual = read(r#"{"error":"the plugin trapped: panic: at src/lib.rs:7"}"#);
        assert_eq!(
            difference(&read(r#"{"error":"trapped: panic"}"#), &actual),
            None
        );
        let told = difference(&read(r#"{"error":"deadline"}"#), &actual).unwrap();
        assert!(told.contains("-  \"error\": \"deadline\""), "{told}");
        let told = difference(&read(r#"{"next":"requeue"}"#), &actual).unwrap();
        assert!(
            told.contains("+  \"error\": \"the plugin trapped"),
            "{told}"
        );
    }

    #[test]
    fn a_difference_shows_the_lines_around_it_and_no_others() {
        let of = |ms: u32| read(&format!(r#"{{"next":{{"requeueAfterMs":{ms}}}}}"#));
        assert_eq!(
            difference(&of(5), &of(6)).unwrap(),
            "--- expected\n+++ actual\n@@ -1,6 +1,6 @@\n {\n   \"effects\": [],\n   \"next\": {\n-    \"requeueAfterMs\": 5\n+    \"requeueAfterMs\": 6\n   }\n }\n"
        );
    }

    #[test]
    fn an_update_keeps_what_is_not_looked_at() {
        let actual = read(r#"{"next":"requeue","logs":[]}"#);
        assert_eq!(updated(None, &actual), actual);
        let kept = updated(Some(&read(r#"{"next":"finalized"}"#)), &actual);
        assert_eq!(
            text(&kept),
            "{\n  \"effects\": [],\n  \"next\": \"requeue\"\n}\n"
        );
    }
}
