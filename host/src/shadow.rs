//! `vmhost shadow` starts, shows and ends the shadow of a plugin on a running host; the flag
//! `--shadow` starts one together with a host. This module must not know how versions are compared.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use vmhost_runtime::manager::Manager;
use vmhost_runtime::observe::admin::paths;
use vmhost_runtime::shadow::report::ShadowReport;

use crate::ask::{Host, find};
use crate::cli::common::OutputFormat;
use crate::cli::shadow::{ShadowCommand, ShownArgs, StartArgs, StopArgs};
use crate::flags;
use crate::output::{json, print};
use crate::workshop::source::{SourceArgs, component_of};

pub(crate) mod text;

/// The pause between two looks at a candidate that is loading.
const LOOK: Duration = Duration::from_millis(200);

/// Carries out a command about shadows.
pub(crate) async fn command(what: &ShadowCommand) -> Result<()> {
    match what {
        ShadowCommand::Start(args) => start(args).await,
        ShadowCommand::Status(args) => status(args).await,
        ShadowCommand::Stop(args) => stop(args).await,
    }
}

/// Sends the candidate, and waits until its shadow runs.
async fn start(args: &StartArgs) -> Result<()> {
    let plugin = &args.plugin;
    let lasts = args.lasts.as_deref();
    let lasts = lasts
        .map(|text| flags::duration("--for", text))
        .transpose()?;
    let component = read(&args.candidate, args.source).await?;
    let (host, _) = find(&args.host).await?;
    let path = paths::shadow_start(plugin, lasts.map(|lasts| lasts.as_millis() as u64));
    let mut report: ShadowReport = host.post(&path, component).await?.found()?;
    while report.state == "loading" {
        tokio::time::sleep(LOOK).await;
        report = of(&host, plugin).await?;
    }
    if let Some(why) = &report.ended {
        bail!("the shadow of {plugin} has ended: {why}");
    }
    print(&text::title(&report));
    Ok(())
}

async fn status(args: &ShownArgs) -> Result<()> {
    let (host, _) = find(&args.host).await?;
    let report = of(&host, &args.plugin).await?;
    match args.output {
        OutputFormat::Text => print(&text::report(&report)),
        OutputFormat::Json => print(&json(&report)?),
    }
    Ok(())
}

/// Ends the shadow, and shows its results.
async fn stop(args: &StopArgs) -> Result<()> {
    let (host, _) = find(&args.host).await?;
    let path = paths::shadow_stop(&args.plugin);
    let report: ShadowReport = host.post(&path, Vec::new()).await?.found()?;
    print(&text::report(&report));
    Ok(())
}

async fn of(host: &Host, plugin: &str) -> Result<ShadowReport> {
    let report: Option<ShadowReport> = host.get(&paths::shadow(plugin)).await?.found()?;
    report.with_context(|| {
        format!("the plugin {plugin} had no shadow since vmhost started: start one with `vmhost shadow start`")
    })
}

async fn read(candidate: &Path, source: SourceArgs) -> Result<Vec<u8>> {
    let file = component_of(candidate, source).await?;
    let read = tokio::fs::read(&file).await;
    read.with_context(|| format!("cannot read {}", file.display()))
}

/// One value of `--shadow PLUGIN=NEW`: a plugin, and the candidate that follows it from the start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FromStart {
    plugin: String,
    candidate: PathBuf,
}

/// Parses the values of `--shadow`.
pub(crate) fn from_start(given: &[String]) -> Result<Vec<FromStart>> {
    let parse = |text: &String| {
        let parts = text.split_once('=');
        let parts = parts.filter(|(plugin, file)| !plugin.is_empty() && !file.is_empty());
        let (plugin, file) = parts.with_context(|| {
            format!("--shadow {text:?} is not of the form PLUGIN=NEW, as in vm=new.wasm")
        })?;
        anyhow::Ok(FromStart {
            plugin: plugin.to_owned(),
            candidate: file.into(),
        })
    };
    given.iter().map(parse).collect()
}

/// Reads the files of `--shadow`, before any plugin runs.
pub(crate) async fn read_all(
    shadows: Vec<FromStart>,
    source: SourceArgs,
) -> Result<Vec<(FromStart, Vec<u8>)>> {
    let mut all = Vec::new();
    for shadow in shadows {
        let component = read(&shadow.candidate, source).await;
        let component = component.with_context(|| shadow.flag())?;
        all.push((shadow, component));
    }
    Ok(all)
}

/// Starts the candidates of `--shadow` on a host whose plugins run.
pub(crate) fn start_with_host(shadows: Vec<(FromStart, Vec<u8>)>, manager: &Manager) -> Result<()> {
    for (shadow, component) in shadows {
        let started = manager.shadows.start_with_host(&shadow.plugin, component);
        started.with_context(|| shadow.flag())?;
    }
    Ok(())
}

impl FromStart {
    /// Formats the flag as the user may have typed it.
    fn flag(&self) -> String {
        format!("--shadow {}={}", self.plugin, self.candidate.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadow_from_the_start_names_its_plugin() {
        let given = ["vm=new/vm.wasm".to_owned(), "a=b=c".to_owned()];
        let parsed = from_start(&given).unwrap();
        let expected = [("vm", "new/vm.wasm"), ("a", "b=c")];
        let expected = expected.map(|(plugin, candidate)| FromStart {
            plugin: plugin.into(),
            candidate: candidate.into(),
        });
        assert_eq!(parsed, expected);
        for bad in ["", "vm", "vm=", "=new.wasm"] {
            let error = from_start(&[bad.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("--shadow"), "{bad}: {error}");
        }
    }
}
