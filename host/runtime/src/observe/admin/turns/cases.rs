//! Answers a question for turns as cases of `vmhost test`. This module chooses the records, and
//! says why other turns are not cases. It must not know the files of a case:
//! [`crate::journal::export`] makes a case of a record, and hides sensitive values.

use std::collections::BTreeMap;

use super::Turns;
use crate::journal::case::{Case, Cases};
use crate::journal::export::{NoCase, Secrecy, case};
use crate::journal::record::TurnRecord;
use crate::observe::admin::asked::{Refused, meant, named, wanted_cases, why_of};
use crate::observe::admin::questions::CasesQuery;
use crate::observe::admin::running::Running;
use crate::observe::admin::wanted::Record;

/// The number of cases if the query gives none.
const COUNT: usize = 10;

impl Turns {
    /// Returns turns as cases, the newest last.
    pub(crate) fn cases(&self, query: &CasesQuery, running: &Running) -> Result<Cases, Refused> {
        let wanted = wanted_cases(query, running)?;
        let records = self.records(&wanted, self.start);
        if let (true, Some(object)) = (records.is_empty(), why_of(query)) {
            let (controllers, _) = meant(&object, running)?;
            return Err(Refused::NoTurn {
                object: named(&controllers, &object),
                why: self.why_none(&controllers, running),
            });
        }
        let mut found = Cases::default();
        let (mut quiet, mut left_out) = (0, BTreeMap::new());
        for record in records.iter().rev() {
            if found.cases.len() == query.count.unwrap_or(COUNT) {
                break;
            }
            match record {
                Record::Turn(turn) => match self.case(turn, running) {
                    Ok(case) => found.cases.push(case),
                    Err(reason) => *left_out.entry(reason).or_insert(0) += 1,
                },
                Record::Quiet(turns) => quiet += turns.count,
            }
        }
        found.cases.reverse();
        found.left_out = left_out.into_iter().map(told).collect();
        if quiet > 0 {
            found.left_out.push(format!(
                "turns that did nothing and succeeded: {quiet}, of which only the number is recorded"
            ));
        }
        Ok(found)
    }

    fn case(&self, turn: &TurnRecord, running: &Running) -> Result<Case, NoCase> {
        let label = &turn.origin.controller;
        let settings = self.settings.hidden();
        let secrecy = Secrecy {
            redact: &self.redact,
            plugin: self.secrets(&settings, label, running),
        };
        case(turn, self.journal.time(turn.began), &secrecy)
    }
}

fn told((reason, count): (NoCase, u32)) -> String {
    let what = match reason {
        NoCase::NoCall => "turns without a call of the plugin",
        NoCase::TooLarge => "turns that were too large to keep",
        NoCase::Secret => "turns that cannot be told without a sensitive value",
        NoCase::Review => "reviews, whose objects are not kept",
    };
    format!("{what}: {count}")
}
