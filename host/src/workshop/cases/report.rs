//! Reports a run: lines for people, JSON for scripts, JUnit XML for CI. This module must not know
//! how a case is run.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::junit::{Entry, Fault, junit};

/// The results of all cases of a plugin.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) plugin: String,
    /// The number of passed cases.
    pub(crate) passed: usize,
    /// The number of failed cases.
    pub(crate) failed: usize,
    /// The cases, by name.
    pub(crate) cases: Vec<Tested>,
}

/// The result of one case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tested {
    pub(crate) name: String,
    /// The duration, including reading the files.
    #[serde(serialize_with = "as_millis", rename = "milliseconds")]
    pub(crate) took: Duration,
    /// What is wrong. `None` if the case passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// The expectation that was written, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wrote: Option<PathBuf>,
}

/// Writes a duration as milliseconds with three digits.
pub(crate) fn as_millis<S: serde::Serializer>(
    took: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((took.as_secs_f64() * 1e6).round() / 1e3)
}

impl Report {
    /// Counts the cases.
    pub(crate) fn new(plugin: &str, cases: Vec<Tested>) -> Self {
        let failed = cases.iter().filter(|case| case.problem.is_some()).count();
        Self {
            plugin: plugin.to_owned(),
            passed: cases.len() - failed,
            failed,
            cases,
        }
    }

    /// Formats one line per case, with its problem below, and a summary.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for case in &self.cases {
            match &case.problem {
                None => _ = writeln!(text, "ok {}", case.name),
                Some(problem) => {
                    _ = writeln!(text, "FAILED {}", case.name);
                    for line in problem.lines() {
                        _ = writeln!(text, "  {line}");
                    }
                }
            }
            if let Some(path) = &case.wrote {
                _ = writeln!(text, "  wrote {}", path.display());
            }
        }
        _ = write!(text, "{} passed, {} failed", self.passed, self.failed);
        text
    }

    /// Formats JUnit XML.
    pub(crate) fn junit(&self) -> String {
        let entries = self.cases.iter().map(|case| Entry {
            name: &case.name,
            took: case.took,
            problem: case.problem.as_deref().map(|text| (Fault::Failure, text)),
        });
        junit(&self.plugin, &entries.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let tested = |name: &str, problem: Option<&str>, wrote: Option<&str>| Tested {
            name: name.into(),
            took: Duration::from_micros(1500),
            problem: problem.map(Into::into),
            wrote: wrote.map(Into::into),
        };
        Report::new(
            "vm",
            vec![
                tested("greets", None, None),
                tested(
                    "quiet",
                    Some("--- expected\n+++ \"a\" <b> & \u{1b}c\n"),
                    None,
                ),
                tested("new", None, Some("cases/new/expect.json")),
            ],
        )
    }

    #[test]
    fn a_case_is_a_line_and_its_problem_stands_below() {
        assert_eq!(
            report().text(),
            "ok greets\nFAILED quiet\n  --- expected\n  +++ \"a\" <b> & \u{1b}c\nok new\n  wrote cases/new/expect.json\n2 passed, 1 failed"
        );
    }

    #[test]
    fn json_says_the_same() {
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!((&json["passed"], &json["failed"]), (&2.into(), &1.into()));
        assert_eq!(
            json["cases"][0],
            serde_json::json!({ "name": "greets", "milliseconds": 1.5 })
        );
        assert_eq!(json["cases"][2]["wrote"], "cases/new/expect.json");
    }

    #[test]
    fn junit_is_xml_whatever_a_policy_says() {
        let xml = report().junit();
        assert!(xml.contains(
            r#"<testsuite name="vm" tests="3" failures="1" errors="0" time="0.004500">"#
        ));
        assert!(xml.contains(r#"<testcase classname="vm" name="greets" time="0.001500"/>"#));
        assert!(
            xml.contains("+++ &quot;a&quot; &lt;b&gt; &amp; c\n</failure>"),
            "{xml}"
        );
    }
}
