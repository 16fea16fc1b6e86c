//! The race: every scenario, in every round, with all entrants in turn.

use std::fs;
use std::io::{Write, stderr, stdout};
use std::path::PathBuf;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Args, Scenario};
use crate::course::Course;
use crate::entrant::Entrant;
use crate::field::Field;
use crate::follow::Follower;
use crate::tally::Tally;
use crate::{machine, make, peers, table};

/// The scenarios of a group share a process.
const GROUPS: &[&[Scenario]] = &[
    &[Scenario::Start],
    &[Scenario::Drain],
    &[Scenario::Backlog],
    &[Scenario::DrainLarge],
    &[Scenario::Restart, Scenario::Hold, Scenario::Relist],
    &[Scenario::Updates],
    &[Scenario::Of10k],
    &[Scenario::Of100k],
];

/// Prints progress to stderr; only the table goes to stdout.
fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// Runs the race and prints the table.
pub async fn race(args: &Args) -> Result<()> {
    let entrants = make::all(args, say)?;
    say("starting the kube-apiserver");
    let field = Field::open().await?;
    let logs = peers::cache()?.join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("making {}", logs.display()))?;
    say(&format!("their output is in {}", logs.display()));
    let mut race = Race {
        args,
        field,
        entrants,
        logs,
        tally: Tally::default(),
    };
    race.warm_up().await?;
    tokio::select! {
        done = race.groups() => done?,
        told = interrupted() => {
            told?;
            say("interrupted; these are the results so far");
        }
    }
    race.finish().await
}

/// Waits for Ctrl-C or SIGTERM.
async fn interrupted() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("waiting for SIGTERM")?;
    tokio::select! {
        told = tokio::signal::ctrl_c() => told.context("waiting for SIGINT"),
        _ = terminate.recv() => Ok(()),
    }
}

struct Race<'a> {
    args: &'a Args,
    field: Field,
    entrants: Vec<Entrant>,
    logs: PathBuf,
    tally: Tally,
}

impl Race<'_> {
    /// Runs every entrant once without measuring: an entrant that cannot run must not spoil a
    /// round, and the cache contains the compiled component, as at every start but the first.
    async fn warm_up(&mut self) -> Result<()> {
        let entrants = std::mem::take(&mut self.entrants);
        for entrant in entrants {
            say(&format!("warming up {}", entrant.name.title()));
            match self.course(&entrant).warm_up().await {
                Ok(()) => self.entrants.push(entrant),
                Err(error) => say(&format!("skipped {}: {error:#}", entrant.name.title())),
            }
        }
        Ok(())
    }

    async fn groups(&self) -> Result<()> {
        for group in GROUPS {
            let mut wanted = group.to_vec();
            wanted.retain(|scenario| self.args.has(*scenario));
            if !wanted.is_empty() {
                self.group(&wanted).await?;
            }
        }
        Ok(())
    }

    async fn group(&self, scenarios: &[Scenario]) -> Result<()> {
        self.populate(scenarios[0]).await?;
        for round in 1..=self.args.rounds {
            for entrant in &self.entrants {
                let title = scenarios[0].title(self.args.quick);
                let name = entrant.name.title();
                say(&format!("round {round}, {title}: {name}"));
                let tally = &self.tally;
                let sheet = &mut tally.sheet(scenarios[0], self.args.quick, entrant.name, round);
                let done = self.course(entrant).go(scenarios, sheet).await;
                if let Err(error) = done {
                    say(&format!("{name} did not finish: {error:#}"));
                }
            }
        }
        Ok(())
    }

    /// Creates the objects that all entrants find, and leave unchanged.
    async fn populate(&self, scenario: Scenario) -> Result<()> {
        self.field.empty().await?;
        if matches!(
            scenario,
            Scenario::Restart | Scenario::Hold | Scenario::Relist | Scenario::Updates
        ) {
            let (count, bytes) = scenario.size(self.args.quick);
            say(&format!("creating {count} objects"));
            let follower = Follower::start(self.field.client());
            self.field.create(0..count, bytes, "complete").await?;
            follower.there(count).await?;
        }
        Ok(())
    }

    fn course<'a>(&'a self, entrant: &'a Entrant) -> Course<'a> {
        Course {
            args: self.args,
            field: &self.field,
            entrant,
            logs: &self.logs,
        }
    }

    async fn finish(&self) -> Result<()> {
        let facts = machine::facts(&self.field.version().await?, self.args.rounds);
        let text = table::print(&self.tally, &self.entrants, &facts);
        stdout().write_all(text.as_bytes()).context("printing")?;
        if let Some(path) = &self.args.json {
            let raw = serde_json::json!({ "facts": facts, "race": self.tally });
            fs::write(path, raw.to_string())
                .with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}
