//! Shadows on a running host: the orders, the report, and the output of the commands.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use vmhost_runtime::observe::admin::paths;
use vmhost_runtime::shadow::report::{Group, ShadowReport};

use crate::guests::PolicyFile;
use crate::host::{Exit, Host};
use crate::wait::eventually_within;

/// The longest wait for a shadow's turns: its thread has the lowest priority, and on a busy machine
/// it gets a small part of a processor.
const PATIENCE: Duration = Duration::from_secs(300);

impl Host {
    /// Orders a shadow of a plugin with this component and these flags, as the user of the host
    /// does.
    pub async fn order_shadow(
        &self,
        plugin: &str,
        component: &[u8],
        flags: &[&str],
    ) -> Result<Exit> {
        let file = PolicyFile::new("candidate", component)?;
        let path = file.path().to_str().context("the path is no UTF-8")?;
        let command = ["shadow", "start", plugin, path];
        self.ordered(&[&command[..], flags].concat()).await
    }

    /// Starts a shadow of a plugin with this component, and waits until it runs.
    pub async fn start_shadow(&self, plugin: &str, component: &[u8]) -> Result<()> {
        let started = self.order_shadow(plugin, component, &[]).await?;
        ensure!(started.status.success(), "{:?}", started.output);
        Ok(())
    }

    /// Returns the report on the shadow of a plugin.
    pub async fn shadow(&self, plugin: &str) -> Result<ShadowReport> {
        let path = paths::shadow(plugin);
        let text = self.told(&path).await?;
        serde_json::from_str(&text).with_context(|| format!("{path} answers {text}"))
    }

    /// Waits until the report satisfies the condition, and returns it.
    pub async fn until_shadow(
        &self,
        plugin: &str,
        what: &str,
        wanted: impl Fn(&ShadowReport) -> bool,
    ) -> Result<ShadowReport> {
        eventually_within(PATIENCE, what, async || {
            let report = self.shadow(plugin).await?;
            match wanted(&report) {
                true => Ok(Some(report)),
                false => bail!("it is {report:#?}"),
            }
        })
        .await
    }

    /// Waits until the shadow has looked at every call that the controller of this label made, and
    /// at `least` calls or more. Returns the report. The shadow must have been running since before
    /// the first call.
    pub async fn until_shadowed(
        &self,
        plugin: &str,
        label: &str,
        least: u64,
    ) -> Result<ShadowReport> {
        let labels = [("controller", label)];
        eventually_within(PATIENCE, "the shadow has seen every call", async || {
            let metrics = self.metrics().await?;
            let calls = metrics.sum("vmhost_call_duration_seconds_count", &labels) as u64;
            let report = self.shadow(plugin).await?;
            let counts = report.counts;
            let seen = counts.same + counts.differs + counts.failed + counts.incomparable;
            match counts.waiting == 0 && seen >= least && seen + counts.dropped == calls {
                true => Ok(Some(report)),
                false => bail!("{calls} calls, and it is {report:#?}"),
            }
        })
        .await
    }
}

/// Returns the kind of difference at this path.
pub fn group<'r>(report: &'r ShadowReport, path: &str) -> Result<&'r Group> {
    let mut groups = report.differences.iter();
    let found = groups.find(|group| group.path == path);
    found.with_context(|| format!("no difference at {path}: {report:#?}"))
}
