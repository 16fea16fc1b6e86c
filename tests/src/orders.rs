//! Orders to a running host: its token, the commands, the requests that they send, and the history.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use vmhost_runtime::deploy::history::report::{HistoryReport, RolledBack};
use vmhost_runtime::observe::admin::paths;

use crate::host::{self, Exit, Host};
use crate::net;
use crate::wait::eventually;

impl Host {
    /// Returns the file with the token of this host.
    pub fn token_file(&self) -> PathBuf {
        let name = format!("{}.token", self.admin_addr());
        self.dir().join("vmhost").join(name)
    }

    /// Returns the header with the token of this host.
    pub fn bearer(&self) -> Result<String> {
        let path = self.token_file();
        let token = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(format!("Bearer {}", token.trim()))
    }

    /// Runs a command that gives this host an order, such as `rollback`, as the user of the host
    /// does.
    pub async fn ordered(&self, command: &[&str]) -> Result<Exit> {
        let address = self.admin_addr().to_string();
        host::bare()?
            .args(command)
            .args(["--address", &address])
            .env("XDG_RUNTIME_DIR", self.dir())
            .run()
            .await
    }

    /// Sends an order without a command and with these headers; returns the status code and the
    /// answer.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)]) -> Result<(u16, String)> {
        net::post_as(self.admin_addr(), path, headers).await
    }

    /// Rolls a plugin back to the version before, or to the version whose digest begins with `to`.
    pub async fn roll_back(&self, plugin: &str, to: Option<&str>) -> Result<RolledBack> {
        let bearer = self.bearer()?;
        let path = paths::rollback(plugin, to);
        let (code, text) = self.post(&path, &[("Authorization", &bearer)]).await?;
        ensure!(code == 200, "{path} answers {code}: {text}");
        serde_json::from_str(&text).with_context(|| format!("{path} answers {text}"))
    }

    /// Waits until the history of a plugin satisfies the condition, and returns it.
    pub async fn until_history(
        &self,
        plugin: &str,
        what: &str,
        wanted: impl Fn(&HistoryReport) -> bool,
    ) -> Result<HistoryReport> {
        eventually(what, async || {
            let report = self.history(plugin).await?;
            match wanted(&report) {
                true => Ok(Some(report)),
                false => bail!("it is {report:?}"),
            }
        })
        .await
    }

    /// Returns the history of a plugin.
    pub async fn history(&self, plugin: &str) -> Result<HistoryReport> {
        let path = paths::history(plugin);
        let text = self.told(&path).await?;
        serde_json::from_str(&text).with_context(|| format!("{path} answers {text}"))
    }
}
