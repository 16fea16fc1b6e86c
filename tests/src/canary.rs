//! Canaries of a running host: the commands, and the host's reports.

use anyhow::{Context, Result, bail, ensure};
use vmhost_runtime::canary::told::{CanaryReport, CanaryState};
use vmhost_runtime::observe::admin::paths;

use crate::guests::PolicyFile;
use crate::host::{Exit, Host};
use crate::wait::eventually;

impl Host {
    /// Runs `vmhost canary start` with this component and these flags.
    pub async fn try_canary(&self, plugin: &str, component: &[u8], flags: &[&str]) -> Result<Exit> {
        let file = PolicyFile::new("candidate", component)?;
        let path = file.path().to_str().context("the path is no text")?;
        let command = [&["canary", "start", plugin, path][..], flags].concat();
        self.ordered(&command).await
    }

    /// Starts a canary, and waits until its keys have had their turns.
    pub async fn start_canary(
        &self,
        plugin: &str,
        component: &[u8],
        flags: &[&str],
    ) -> Result<CanaryState> {
        let exit = self.try_canary(plugin, component, flags).await?;
        ensure!(exit.status.success(), "{:?}", exit.output);
        self.until_idle().await?;
        Ok(self.canary(plugin).await?.canary)
    }

    /// Runs `vmhost canary promote` or `abort`.
    pub async fn end_canary(&self, plugin: &str, how: &str) -> Result<()> {
        // Each order has a short form, too.
        let command = match how {
            "abort" => vec![how, plugin],
            _ => vec!["canary", how, plugin],
        };
        let exit = self.ordered(&command).await?;
        ensure!(exit.status.success(), "{:?}", exit.output);
        Ok(())
    }

    /// Returns the report about the canary that runs, or the last one.
    pub async fn canary(&self, plugin: &str) -> Result<CanaryReport> {
        let path = paths::canary(plugin);
        let text = self.told(&path).await?;
        serde_json::from_str(&text).with_context(|| format!("{path} answers {text}"))
    }

    /// Waits until the canary has ended in this way and its keys are put back. Returns the report.
    pub async fn until_canary_ended(&self, plugin: &str, end: &str) -> Result<CanaryReport> {
        eventually(&format!("the canary ended by {end}"), async || {
            let report = self.canary(plugin).await?;
            match report.canary.over && report.canary.end.as_deref() == Some(end) {
                true => Ok(Some(report)),
                false => bail!("it is {:?}", report.canary),
            }
        })
        .await
    }

    /// Waits until no key is waiting for a worker or being processed.
    pub async fn until_idle(&self) -> Result<()> {
        let idle = self.until_state("no key waits", |state| {
            let controllers = state.plugins.iter().flat_map(|plugin| &plugin.controllers);
            controllers
                .map(|controller| controller.queue)
                .all(|queue| queue.high + queue.low + queue.processing == 0)
        });
        idle.await.map(drop)
    }
}
