//! JUnit XML, which CI systems read. This module must not know what was run.

use std::fmt::Write as _;
use std::time::Duration;

/// One test case.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) took: Duration,
    /// What is wrong with it. `None` if nothing is.
    pub(crate) problem: Option<(Fault, &'a str)>,
}

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The result differs from the expected one.
    Failure,
    /// There is no result.
    Error,
}

/// Formats one suite of test cases.
pub(crate) fn junit(suite: &str, entries: &[Entry<'_>]) -> String {
    let seconds = |took: Duration| format!("{:.6}", took.as_secs_f64());
    let all = seconds(entries.iter().map(|entry| entry.took).sum());
    let count = |fault: Fault| {
        let faults = entries.iter().filter_map(|entry| entry.problem);
        faults.filter(|(of, _)| *of == fault).count()
    };
    let (tests, failures, errors) = (entries.len(), count(Fault::Failure), count(Fault::Error));
    let counts = format!(r#"tests="{tests}" failures="{failures}" errors="{errors}" time="{all}""#);
    let suite = escaped(suite);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{suite}\" {counts}>\n"
    );
    for entry in entries {
        let (name, took) = (escaped(entry.name), seconds(entry.took));
        _ = write!(
            xml,
            "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{took}\""
        );
        let Some((fault, problem)) = entry.problem else {
            xml.push_str("/>\n");
            continue;
        };
        let element = match fault {
            Fault::Failure => "failure",
            Fault::Error => "error",
        };
        let first = escaped(problem.lines().next().unwrap_or_default());
        let problem = escaped(problem);
        _ = writeln!(
            xml,
            ">\n      <{element} message=\"{first}\">{problem}</{element}>\n    </testcase>"
        );
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// Escapes text for an XML attribute or element. Characters that XML cannot express are left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => {}
            character if character.is_control() => {}
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_errors_are_counted_apart() {
        let entry = |name, problem| Entry {
            name,
            took: Duration::from_micros(1500),
            problem,
        };
        let xml = junit(
            "vm",
            &[
                entry("same", None),
                entry("other", Some((Fault::Failure, "--- recorded\n+1"))),
                entry("none", Some((Fault::Error, "no <controller>"))),
            ],
        );
        let counts = r#"<testsuite name="vm" tests="3" failures="1" errors="1" time="0.004500">"#;
        assert!(xml.contains(counts), "{xml}");
        let failure = "<failure message=\"--- recorded\">--- recorded\n+1</failure>";
        assert!(xml.contains(failure), "{xml}");
        let error = "<error message=\"no &lt;controller&gt;\">no &lt;controller&gt;</error>";
        assert!(xml.contains(error), "{xml}");
    }
}
