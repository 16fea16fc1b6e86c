//! Replays recorded cases: calls a plugin with what each case holds, and returns how the result
//! differs from the record. This module must not know which version ran, or what a difference
//! means.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tracing::instrument::WithSubscriber as _;
use tracing_subscriber::layer::SubscriberExt as _;
use vmhost_core::Grants;
use vmhost_engine::Plugin;

use super::compare::difference_between;
use super::lines::Lines;
use super::prepare::prepare;
use super::read::{Case, EXPECT, name_of};
use super::recorded::Recorded;
use super::run::{Ran, run};
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::journal::case::Ask;

/// The result of replaying a case.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The name of the case.
    pub(crate) name: String,
    /// How long the replay took, with reading the files.
    pub(crate) took: Duration,
    /// What became of the replay.
    pub(crate) end: End,
    /// `recorded.json`, if there is one.
    pub(crate) recorded: Option<Recorded>,
}

/// What became of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The plugin did what is recorded.
    Same,
    /// The plugin did something else, or read something that is not recorded.
    Differs(String),
    /// The case could not be replayed.
    Error(String),
}

/// A plugin, and what its calls need.
struct Again {
    plugin: Plugin,
    grants: Grants,
    lines: Lines,
}

/// Replays the cases in these folders, in order. Each case gets its own instance.
pub(crate) async fn replay(
    loader: &Loader,
    plugin: Plugin,
    folders: Vec<PathBuf>,
) -> Result<Vec<Replayed>> {
    let lines = Lines::default();
    let log = tracing_subscriber::registry().with(lines.clone());
    let again = Again {
        grants: Grants::of(plugin.description()),
        plugin,
        lines,
    };
    let replays = async move {
        let mut replayed = Vec::new();
        for folder in &folders {
            replayed.push(again.replay(folder).await);
        }
        replayed
    };
    let replayed = loader.guests.spawn(replays.with_subscriber(log)).await;
    replayed.context("the replay broke off")
}

impl Again {
    async fn replay(&self, folder: &Path) -> Replayed {
        let started = Instant::now();
        let (recorded, differs) = match Recorded::read(folder) {
            Ok(recorded) => {
                let differs = self.differs(folder, recorded.as_ref()).await;
                (recorded, differs)
            }
            Err(error) => (None, Err(error)),
        };
        Replayed {
            name: name_of(folder),
            took: started.elapsed(),
            end: match differs {
                Ok(None) => End::Same,
                Ok(Some(how)) => End::Differs(how),
                Err(error) => End::Error(format!("{error:#}")),
            },
            recorded,
        }
    }

    /// Returns how the result differs from the record. `None` if it does not.
    async fn differs(&self, folder: &Path, recorded: Option<&Recorded>) -> Result<Option<String>> {
        let case = Case::read(folder)?;
        let expected = case.expect.as_ref();
        let expected = expected
            .with_context(|| format!("{} does not exist", folder.join(EXPECT).display()))?;
        let prepared = prepare(&case, self.plugin.description())?;
        let ran = run(&self.plugin, &self.grants, prepared, &self.lines).await;
        let difference = difference_between(("recorded", expected), ("replayed", &ran.actual));
        // If the host refuses what it carried out before, that is a difference. If it refused it
        // before too, the refusal is a part of the record.
        let has_failed = recorded.is_some_and(|recorded| recorded.failed);
        let is_refused = !has_failed || difference.is_some();
        let mut problems: Vec<String> = match (&case.reads, recorded) {
            (None, Some(recorded)) => not_recorded(&ran, recorded),
            _ => ran.unread.into_iter().collect(),
        };
        problems.extend(ran.unsent);
        problems.extend(ran.refused.filter(|_| is_refused));
        problems.extend(difference);
        if problems.is_empty() {
            return Ok(None);
        }
        problems.extend(ran.draws.map(str::to_owned));
        Ok(Some(problems.join("\n")))
    }
}

/// Lists the reads that the recorded call did not make, each once: the case may lack their answers.
fn not_recorded(ran: &Ran, recorded: &Recorded) -> Vec<String> {
    let mut told: Vec<&Ask> = Vec::new();
    for ask in &ran.asked {
        if !recorded.asked.contains(ask) && !told.contains(&ask) {
            told.push(ask);
        }
    }
    let text = |ask: &&Ask| format!("the call reads what is not recorded: {ask}");
    told.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use vmhost_core::{Gvk, ObjectName};

    use super::super::form::Expectation;
    use super::*;

    fn get(name: &str) -> Ask {
        Ask::get(
            false,
            &Gvk::new("", "v1", "Pod"),
            &ObjectName::new(Some("a"), name),
        )
    }

    #[test]
    fn reads_that_the_record_does_not_have_are_named_once() {
        let ran = Ran {
            actual: Expectation::default(),
            refused: None,
            unread: None,
            unsent: None,
            draws: None,
            asked: vec![get("x"), get("y"), get("z"), get("y")],
        };
        let recorded = Recorded {
            asked: vec![get("z"), get("x"), get("w")],
            ..Recorded::default()
        };
        assert_eq!(
            not_recorded(&ran, &recorded),
            ["the call reads what is not recorded: get Pod.v1 a/y"]
        );
    }
}
