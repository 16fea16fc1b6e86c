//! The cases of a test that has many: each is told, and all are counted.
//!
//! Must not know what a case is.

use std::fmt::Display;
use std::io::{Write, stderr};

use anyhow::{Result, ensure};

/// The cases so far.
pub struct Tally {
    test: String,
    cases: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Begins to count the cases of a test.
    pub fn of(test: impl Display) -> Tally {
        Tally {
            test: test.to_string(),
            cases: 0,
            wrong: Vec::new(),
        }
    }

    /// Counts a case. Its line is in the output of a test that fails, or of one with `--nocapture`.
    #[allow(
        clippy::print_stderr,
        reason = "libtest captures it and shows it beside the failure"
    )]
    pub fn case(&mut self, what: impl Display, outcome: Result<()>) {
        self.cases += 1;
        match outcome {
            Ok(()) => eprintln!("ok    {} {what}", self.cases),
            Err(error) => {
                eprintln!("WRONG {} {what}", self.cases);
                self.wrong.push(format!("{what}: {error:#}"));
            }
        }
    }

    /// Writes the count to the terminal. Returns an error if a case is wrong, or if there are fewer
    /// cases than the test is meant to have.
    pub fn finish(self, at_least: usize) -> Result<()> {
        let Tally { test, cases, wrong } = self;
        let good = cases - wrong.len();
        // Not captured: this is the number of cases that a run has checked.
        let _ = writeln!(stderr(), "CASES {test}: {good} of {cases}");
        let (count, lines) = (wrong.len(), wrong.join("\n"));
        ensure!(wrong.is_empty(), "{count} of {cases} cases:\n{lines}");
        ensure!(
            cases >= at_least,
            "{cases} cases instead of {at_least} or more"
        );
        Ok(())
    }
}
