//! A host with the guest `obey`, which follows an annotation of its object and logs every turn.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::guests::{self, PolicyFile};
use crate::host::{Host, HostCommand};
use crate::server::TestServer;
use crate::vm::Vms;
use crate::wait::eventually;

/// The annotation with the orders, in the form that the guest's source describes.
const ORDERS: &str = "vmhost.test/turn";
/// The annotation of objects whose whole text is to be logged.
pub const ECHO: &str = "vmhost.test/echo";

/// The guest that this module is about, for [`Obey::start_guest`].
pub const OBEY: (&str, &str) = ("obey", guests::OBEY);
/// The guest that follows orders, too, and has a controller for each way to be woken.
pub const WATCHER: (&str, &str) = ("watcher", guests::WATCHER);

/// The host, its VMs, and the guest's file.
pub struct Obey {
    /// The VMs of its namespace.
    pub vms: Vms,
    /// The host.
    pub host: Host,
    /// The guest's file.
    pub policy: PolicyFile,
}

impl Obey {
    /// Installs the CRD and starts a host, on this kubeconfig, for a new namespace.
    pub async fn start(server: &TestServer, kubeconfig: &Path) -> Result<Obey> {
        Obey::start_for(Vms::install(server).await?, kubeconfig).await
    }

    /// Starts a host for VMs that may already exist.
    pub async fn start_for(vms: Vms, kubeconfig: &Path) -> Result<Obey> {
        Obey::start_guest(vms, kubeconfig, OBEY, |host| host).await
    }

    /// Like [`Obey::start`], with the guest `watcher`, which has a controller for each way to be
    /// woken.
    pub async fn watching(server: &TestServer, kubeconfig: &Path) -> Result<Obey> {
        let vms = Vms::install(server).await?;
        Obey::start_guest(vms, kubeconfig, WATCHER, |host| host).await
    }

    /// Starts a host with this guest, a plugin's name and its component. `set` changes the command.
    pub async fn start_guest(
        vms: Vms,
        kubeconfig: &Path,
        (name, guest): (&str, &str),
        set: impl FnOnce(HostCommand) -> HostCommand,
    ) -> Result<Obey> {
        let policy = PolicyFile::new(name, &guests::read(guest)?)?;
        let host = vms.host(kubeconfig, &policy)?;
        let host = set(host.args(["--log-format", "json"])).ready().await?;
        Ok(Obey { vms, host, policy })
    }

    /// Creates a VM for one controller of the guest `watcher`, with these orders (without, if
    /// null).
    pub async fn case(&self, case: &str, name: &str, orders: Value) -> Result<()> {
        let annotations = match orders {
            Value::Null => json!({}),
            orders => json!({ ORDERS: orders.to_string() }),
        };
        self.vms
            .create_labelled(name, json!({ "case": case }), annotations, name)
            .await
    }

    /// Waits for at least this many turns of a VM, and returns all turns.
    pub async fn until_turns(&self, name: &str, least: usize) -> Result<Vec<Value>> {
        eventually(&format!("{least} turns of {name}"), async || {
            let turns = self.turns(name);
            Ok((turns.len() >= least).then_some(turns))
        })
        .await
    }

    /// Creates a VM in status `creating`, with these orders.
    pub async fn order(&self, name: &str, orders: Value) -> Result<()> {
        self.vms
            .create_with(name, json!({ ORDERS: orders.to_string() }), "creating")
            .await
    }

    /// Replaces the orders of a VM.
    pub async fn reorder(&self, name: &str, orders: Value) -> Result<()> {
        let patch = json!({ "metadata": { "annotations": { ORDERS: orders.to_string() } } });
        self.vms.merge(name, patch).await.map(drop)
    }

    /// Returns the turns of an object so far.
    pub fn turns(&self, name: &str) -> Vec<Value> {
        let turns = self.host.output();
        turns
            .iter()
            .filter_map(|line| turn(line))
            .filter(|turn| turn["name"] == name)
            .collect()
    }

    /// Returns the turns on this generation so far, of all objects.
    pub fn turns_of(&self, generation: u64) -> Vec<Value> {
        let lines = self.host.output();
        let of_it = lines.iter().filter(|line| {
            let line = serde_json::from_str::<Value>(line).unwrap_or_default();
            line["generation"] == generation
        });
        of_it.filter_map(|line| turn(line)).collect()
    }

    /// Waits for a turn of an object, also an earlier one, and returns the first match.
    pub async fn until_turn(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let of = |line: &str| turn(line).filter(|turn| turn["name"] == name && wanted(turn));
        let lines = self
            .host
            .wait_for_lines(1, |line| of(line).is_some())
            .await
            .with_context(|| {
                format!(
                    "waiting for a turn of {name}: {what}; it had {:?}",
                    self.turns(name)
                )
            })?;
        lines
            .first()
            .and_then(|line| of(line))
            .context("there is one")
    }

    /// Waits until a new VM with its own orders is complete: the host has then seen all earlier
    /// changes.
    pub async fn settle(&self) -> Result<()> {
        let name = format!("marker-{:08x}", fastrand::u32(..));
        self.order(&name, json!({ "effects": [complete()] }))
            .await?;
        self.vms
            .until_one(&name, "a VM made later is complete", |vm| vm.complete())
            .await?;
        Ok(())
    }
}

/// Returns the order that completes the VM.
pub fn complete() -> Value {
    json!({ "merge": { "spec": { "status": "complete" } } })
}

/// Returns the JSON behind `TURN` in a line of the host's log, text or JSON.
fn turn(line: &str) -> Option<Value> {
    said(line, "TURN")
}

/// Returns the JSON behind a word in a line of the host's log, text or JSON.
pub fn said(line: &str, word: &str) -> Option<Value> {
    let unpacked = serde_json::from_str::<Value>(line).ok().and_then(|line| {
        // Under `message`, or under `fields` as tracing-subscriber nests them.
        let message = line
            .pointer("/message")
            .or_else(|| line.pointer("/fields/message"))?;
        Some(message.as_str()?.to_owned())
    });
    let message = unpacked.as_deref().unwrap_or(line);
    let start = message.find(&format!("{word} {{"))? + word.len() + 1;
    serde_json::Deserializer::from_str(&message[start..])
        .into_iter()
        .next()?
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_found_in_both_log_formats() {
        let text = r#"2026-01-01T00:00:00Z INFO plugin: TURN {"name":"x"} controller="vms""#;
        let json =
            json!({ "level": "INFO", "fields": { "message": r#"TURN {"name":"x"}"# } }).to_string();
        for line in [text, json.as_str()] {
            assert_eq!(turn(line).unwrap()["name"], "x", "{line}");
        }
        assert!(turn("nothing").is_none());
    }
}
