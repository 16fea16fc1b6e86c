//! `vmhost test`: runs a plugin's test cases without a cluster, and compares the results with the
//! expected ones. The cases are files.
//!
//! ```text
//!  files --read--> case --prepare--> request and cluster --run--> outcome
//!        --compare--> difference --report--> text, JSON, JUnit
//! ```
//! A case is a folder: `object.json` (absent if the object is deleted), `cache/*.json` (other
//! objects in the cluster), `request.json` (values that differ from the defaults), `http.json` (the
//! answers to its HTTP requests) and `expect.json`. Time stands still, random numbers are fixed,
//! and each case has its own instance, so that its result is always the same.
//!
//! A case may also be a recorded turn: with its clock readings and random numbers (in
//! `request.json`), with the answers to its reads (in `reads.json`, if the other files do not give
//! the same answers), and with the turn's origin (in `recorded.json`). [`again`] replays recorded
//! cases.
//!
//! In the place of `object.json`, `admission.json` asks one of the plugin's webhooks, and
//! `conversion.json` one of its conversions: see [`review`].
//!
//! This module opens no connection, writes nothing except requested expectations, and reimplements
//! none of the host's rules.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tracing::instrument::WithSubscriber as _;
use tracing_subscriber::layer::SubscriberExt as _;
use vmhost_core::{Grants, Limits};
use vmhost_engine::Plugin;

use super::args::TestArgs;
use super::folder;
use super::source::component_of;
use crate::cli::common::OutputFormat;
use crate::flags::{call_limit, size};
use crate::output::print;
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::loader::Loader;

pub(super) mod again;
mod cluster;
mod compare;
mod controller;
mod form;
pub(super) mod http;
mod json;
pub(super) mod junit;
mod lines;
mod prepare;
pub(super) mod read;
mod reads;
pub(super) mod recorded;
pub(super) mod report;
mod request;
mod review;
mod run;
mod told;

use lines::Lines;
use read::{Case, EXPECT, name_of};
use report::{Report, Tested};
use run::Ran;

/// `vmhost test`.
pub(crate) async fn command(loader: &Loader, args: &TestArgs) -> Result<()> {
    let folder = args.cases.clone();
    let folder = folder.unwrap_or_else(|| cases_of(&args.plugin));
    let folders = chosen(read::folders(&folder)?, &args.case)?;
    let component = component_of(&args.plugin, args.source).await?;
    let plugin = loader.load_file(&component).await?.plugin;
    let in_dev = folder::in_dev(&args.plugin, loader, args.source).await?;
    let name = plugin.description().name.clone();
    let suite = Suite {
        grants: Grants::of(plugin.description()),
        plugin,
        in_dev,
        lines: Lines::default(),
        update: args.update,
    };
    let log = tracing_subscriber::registry().with(suite.lines.clone());
    let tests = async move { suite.run(&folders).await }.with_subscriber(log);
    let report = Report::new(&name, loader.guests.spawn(tests).await?);
    if let Some(file) = &args.junit {
        std::fs::write(file, report.junit())
            .with_context(|| format!("--junit {}", file.display()))?;
    }
    match args.output {
        OutputFormat::Json => print(&serde_json::to_string_pretty(&report)?),
        OutputFormat::Text => print(&report.text()),
    }
    match report.failed {
        0 => Ok(()),
        failed => bail!("{failed} of {} cases failed", report.cases.len()),
    }
}

/// The settings for running cases: calls have limits, and there is no cluster.
pub(crate) fn config(call_timeout: &str, memory_limit: &str) -> Result<Config> {
    Ok(Config {
        limits: Limits {
            call_timeout: call_limit(call_timeout)?,
            memory: size("--memory-limit", memory_limit)?,
            ..Limits::default()
        },
        ..Config::inspecting()
    })
}

/// Returns the folder of a plugin's cases: `plugins/vm/cases` for `plugins/vm` and for
/// `plugins/vm.wasm`.
fn cases_of(plugin: &Path) -> PathBuf {
    match plugin.is_dir() {
        true => plugin.join("cases"),
        false => plugin.with_extension("").join("cases"),
    }
}

/// Returns the cases with these names, or all if there are no names.
pub(super) fn chosen(folders: Vec<PathBuf>, names: &[String]) -> Result<Vec<PathBuf>> {
    if names.is_empty() {
        return Ok(folders);
    }
    let known: Vec<String> = folders.iter().map(|folder| name_of(folder)).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        bail!("--case {unknown}: no case named {unknown}; available: {known}");
    }
    let is_chosen = |folder: &PathBuf| names.contains(&name_of(folder));
    Ok(folders.into_iter().filter(is_chosen).collect())
}

/// A plugin with the settings for running its cases.
struct Suite {
    plugin: Plugin,
    /// The same plugin as `vmhost dev` runs it, if that is not the component.
    in_dev: Option<Plugin>,
    grants: Grants,
    lines: Lines,
    /// Write actual results as expected ones.
    update: bool,
}

impl Suite {
    async fn run(&self, folders: &[PathBuf]) -> Vec<Tested> {
        let mut tested = Vec::new();
        for folder in folders {
            let started = Instant::now();
            let (problem, wrote) = match self.test(folder).await {
                Ok(tested) => tested,
                Err(error) => (Some(format!("{error:#}")), None),
            };
            tested.push(Tested {
                name: name_of(folder),
                took: started.elapsed(),
                problem,
                wrote,
            });
        }
        tested
    }

    async fn ran(&self, plugin: &Plugin, case: &Case) -> Result<Ran> {
        if let Some(asked) = &case.review {
            return review::run(plugin, case, asked, &self.lines).await;
        }
        let prepared = prepare::prepare(case, plugin.description())?;
        Ok(run::run(plugin, &self.grants, prepared, &self.lines).await)
    }

    /// Runs a case. Returns what is wrong with it, and the expectation that was written.
    async fn test(&self, folder: &Path) -> Result<(Option<String>, Option<PathBuf>)> {
        let case = Case::read(folder)?;
        let ran = self.ran(&self.plugin, &case).await?;
        let in_dev = match &self.in_dev {
            Some(plugin) => {
                compare::difference(&ran.actual, &self.ran(plugin, &case).await?.actual)
            }
            None => None,
        };
        let in_dev = in_dev.map(|difference| format!("{IN_DEV}\n{difference}"));
        let expected = case.expect.as_ref();
        let difference = match expected {
            Some(expected) => compare::difference(expected, &ran.actual),
            None => Some(missing(folder)),
        };
        let (difference, wrote) = match (difference, self.update) {
            (Some(_), true) => {
                let file = folder.join(EXPECT);
                let text = compare::text(&compare::updated(expected, &ran.actual));
                std::fs::write(&file, text).with_context(|| file.display().to_string())?;
                (None, Some(file))
            }
            (difference, _) => (difference, None),
        };
        let draws = ran.draws.filter(|_| difference.is_some());
        let draws = draws.map(str::to_owned);
        let problems = [
            ran.refused,
            ran.unread,
            ran.unsent,
            difference,
            draws,
            in_dev,
        ];
        let problems: Vec<String> = problems.into_iter().flatten().collect();
        let problem = (!problems.is_empty()).then(|| problems.join("\n"));
        Ok((problem, wrote))
    }
}

/// The header of the difference between the component and the plugin in `vmhost dev`.
const IN_DEV: &str = "the plugin behaves differently in vmhost dev (+) than as a component (-):";

fn missing(folder: &Path) -> String {
    let file = folder.join(EXPECT);
    format!(
        "{} does not exist; write it with vmhost test --update, and review it",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_lie_in_the_plugins_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vm");
        std::fs::create_dir(&path).unwrap();
        assert_eq!(cases_of(&path), path.join("cases"));
        assert_eq!(cases_of(&folder.path().join("vm.wasm")), path.join("cases"));
    }

    #[test]
    fn a_case_is_chosen_by_its_name() {
        let folders = || vec![PathBuf::from("c/a"), PathBuf::from("c/b")];
        assert_eq!(chosen(folders(), &[]).unwrap().len(), 2);
        assert_eq!(
            chosen(folders(), &["b".into()]).unwrap(),
            [PathBuf::from("c/b")]
        );
        let error = chosen(folders(), &["x".into()]).unwrap_err().to_string();
        assert_eq!(error, "--case x: no case named x; available: a, b");
    }
}
