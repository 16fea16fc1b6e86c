//! Reports what was recorded: lines for people, JSON for scripts. This module must not know how a
//! case is replayed.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use vmhost_core::one_line;

use super::save::Place;
use crate::workshop::cases::recorded::{Exact, Recorded};

/// What was recorded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// The cases, the newest turn last.
    pub(super) cases: Vec<Saved>,
    /// Why other turns are not cases: a sentence for each reason.
    pub(super) left_out: Vec<String>,
}

/// A case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Saved {
    folder: String,
    /// Whether the case was there before.
    kept: bool,
    exact: Exact,
    because: Vec<String>,
}

impl Saved {
    /// Describes the case in a folder.
    pub(super) fn of(place: &Place) -> Result<Self> {
        let (folder, kept) = match place {
            Place::New(folder) => (folder, false),
            Place::There(folder) => (folder, true),
        };
        let recorded = Recorded::read(folder)?.unwrap_or_default();
        Ok(Self {
            folder: folder.display().to_string(),
            kept,
            exact: recorded.exact,
            because: recorded.because,
        })
    }
}

impl Report {
    /// Formats one line for each case, with the reason why it is not exact below, and a summary.
    pub(super) fn text(&self, out: &Path) -> String {
        let mut text = String::new();
        for case in &self.cases {
            let exact = match case.exact {
                Exact::Yes => "exact",
                Exact::No => "NOT EXACT",
                Exact::Unknown => "not checked",
            };
            let kept = if case.kept { ", was there before" } else { "" };
            _ = writeln!(text, "{}: {exact}{kept}", one_line(&case.folder));
            for line in case.because.iter().flat_map(|reason| reason.lines()) {
                _ = writeln!(text, "  {}", one_line(line));
            }
        }
        for reason in &self.left_out {
            _ = writeln!(text, "left out: {}", one_line(reason));
        }
        let exact = self.cases.iter().filter(|case| case.exact == Exact::Yes);
        let (all, exact) = (self.cases.len(), exact.count());
        _ = write!(text, "{all} recorded in {}, {exact} exact", out.display());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_exact_is_told_with_the_reason() {
        let saved = |folder: &str, exact: Exact, because: &[&str]| Saved {
            folder: folder.into(),
            kept: exact == Exact::Unknown,
            exact,
            because: because.iter().copied().map(str::to_owned).collect(),
        };
        let report = Report {
            cases: vec![
                saved("c/a", Exact::Yes, &[]),
                saved(
                    "c/b",
                    Exact::No,
                    &["no seed", "a replay differs:\n-1\n+2\u{1b}"],
                ),
                saved("c/c", Exact::Unknown, &[]),
            ],
            left_out: vec!["turns that were too large to keep: 1".into()],
        };
        assert_eq!(
            report.text(Path::new("c")),
            "c/a: exact\n\
             c/b: NOT EXACT\n  no seed\n  a replay differs:\n  -1\n  +2 \n\
             c/c: not checked, was there before\n\
             left out: turns that were too large to keep: 1\n\
             3 recorded in c, 1 exact"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["cases"][1]["exact"], "no");
        assert_eq!(json["leftOut"].as_array().unwrap().len(), 1);
    }
}
