//! Reports a replay: lines for people, JSON for scripts, JUnit XML for CI. This module must not
//! know how a case is replayed.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use vmhost_core::one_line;

use crate::workshop::cases::again::{End, Replayed};
use crate::workshop::cases::junit::{Entry, Fault, junit};
use crate::workshop::cases::recorded::{Exact, Recorded};
use crate::workshop::cases::report::as_millis;

/// The results of all cases.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    plugin: String,
    /// `sha256:` and the digest of the version.
    digest: String,
    /// The number of cases in which the version does what is recorded.
    pub(super) same: usize,
    /// The number of cases in which it does something else.
    pub(super) differs: usize,
    /// The number of cases that could not be replayed.
    pub(super) errors: usize,
    /// The cases, by name.
    pub(super) cases: Vec<Line>,
}

/// The result of one case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Line {
    name: String,
    /// The duration, including reading the files.
    #[serde(serialize_with = "as_millis", rename = "milliseconds")]
    took: Duration,
    end: Word,
    /// What differs, or why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Why the case is not exact, or may not be: a sentence for each reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// The result of a case in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Same,
    Differs,
    Error,
}

impl From<Replayed> for Line {
    fn from(replayed: Replayed) -> Self {
        let (end, problem) = match replayed.end {
            End::Same => (Word::Same, None),
            End::Differs(how) => (Word::Differs, Some(how)),
            End::Error(why) => (Word::Error, Some(why)),
        };
        let notes = match replayed.recorded {
            Some(Recorded { exact, because, .. }) if exact != Exact::Yes => because,
            _ => Vec::new(),
        };
        Self {
            name: replayed.name,
            took: replayed.took,
            end,
            problem,
            notes,
        }
    }
}

impl Report {
    /// Counts the cases.
    pub(super) fn new(plugin: String, digest: String, replayed: Vec<Replayed>) -> Self {
        let cases: Vec<Line> = replayed.into_iter().map(Line::from).collect();
        let count = |end: Word| cases.iter().filter(|line| line.end == end).count();
        Self {
            plugin,
            digest,
            same: count(Word::Same),
            differs: count(Word::Differs),
            errors: count(Word::Error),
            cases,
        }
    }

    /// Formats one line for each case, with its problem below, and a summary.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.cases {
            let word = match line.end {
                Word::Same => "same",
                Word::Differs => "DIFFERS",
                Word::Error => "ERROR",
            };
            _ = writeln!(text, "{word} {}", one_line(&line.name));
            let Some(problem) = &line.problem else {
                continue;
            };
            for problem in problem.lines() {
                _ = writeln!(text, "  {}", one_line(problem));
            }
            for reason in &line.notes {
                let first = reason.lines().next().unwrap_or_default();
                _ = writeln!(text, "  note: {}", one_line(first));
            }
        }
        let Self {
            same,
            differs,
            errors,
            ..
        } = self;
        _ = write!(
            text,
            "{same} same, {differs} different, {errors} not replayed"
        );
        text
    }

    /// Formats JUnit XML.
    pub(super) fn junit(&self) -> String {
        let entry = |line: &Line| -> Option<(Fault, String)> {
            let problem = line.problem.as_deref()?;
            let fault = match line.end {
                Word::Error => Fault::Error,
                _ => Fault::Failure,
            };
            let reasons = line.notes.iter();
            let reasons = reasons.map(|reason| format!("\nnote: {reason}"));
            Some((fault, problem.to_owned() + &reasons.collect::<String>()))
        };
        let problems: Vec<Option<(Fault, String)>> = self.cases.iter().map(entry).collect();
        let entries = self.cases.iter().zip(&problems);
        let entries = entries.map(|(line, problem)| Entry {
            name: &line.name,
            took: line.took,
            problem: problem
                .as_ref()
                .map(|(fault, text)| (*fault, text.as_str())),
        });
        junit(&self.plugin, &entries.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let replayed = |name: &str, end, recorded| Replayed {
            name: name.into(),
            took: Duration::from_micros(1500),
            end,
            recorded,
        };
        let flagged = Recorded {
            exact: Exact::No,
            because: vec!["no seed".into(), "a replay differs:\n-1\n+2".into()],
            ..Recorded::default()
        };
        let exact = Recorded {
            exact: Exact::Yes,
            ..Recorded::default()
        };
        let all = vec![
            replayed("a", End::Same, Some(flagged.clone())),
            replayed("b", End::Differs("-1\n+3\u{1b}".into()), Some(flagged)),
            replayed("c", End::Differs("-4\n+5".into()), Some(exact)),
            replayed("d", End::Error("no <controller>".into()), None),
        ];
        Report::new("vm".into(), "sha256:ab".into(), all)
    }

    #[test]
    fn a_difference_is_told_with_why_it_may_mean_nothing() {
        let text = report().text();
        assert_eq!(
            text,
            "same a\n\
             DIFFERS b\n  -1\n  +3 \n  note: no seed\n  note: a replay differs:\n\
             DIFFERS c\n  -4\n  +5\n\
             ERROR d\n  no <controller>\n\
             1 same, 2 different, 1 not replayed"
        );
    }

    #[test]
    fn json_says_the_same() {
        let json = serde_json::to_value(report()).unwrap();
        let counts = ["same", "differs", "errors"].map(|name| json[name].as_u64());
        assert_eq!(counts, [Some(1), Some(2), Some(1)]);
        assert_eq!(json["cases"][0]["end"], "same");
        assert_eq!(json["cases"][1]["notes"][0], "no seed");
        assert_eq!(
            json["cases"][2],
            serde_json::json!({ "name": "c", "milliseconds": 1.5, "end": "differs", "problem": "-4\n+5" })
        );
    }

    #[test]
    fn junit_tells_differences_and_errors_apart() {
        let xml = report().junit();
        assert!(
            xml.contains(r#"tests="4" failures="2" errors="1""#),
            "{xml}"
        );
        assert!(xml.contains("note: no seed"), "{xml}");
        assert!(
            xml.contains("<error message=\"no &lt;controller&gt;\">"),
            "{xml}"
        );
    }
}
