//! The way to a host in a cluster: `kubectl port-forward` as a child process. The admin address of
//! such a host listens on its pod's loopback only. This module must not know what is asked.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The port of the admin address in the chart.
const PORT: u16 = 8082;
/// How long kubectl may take to open the way, and the API server to answer it before.
const PATIENCE: Duration = Duration::from_secs(20);

/// The Deployment whose leader is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    namespace: Option<String>,
    name: String,
    context: Option<String>,
}

/// An open way, closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Forward {
    address: String,
    /// Killed on drop.
    _child: Child,
}

impl Target {
    /// Reads `[NAMESPACE/]NAME`.
    pub(super) fn parse(text: &str, context: Option<&str>) -> Result<Self> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        // A name that begins with a dash would be a flag of kubectl.
        let is_odd = |c: char| c == '/' || c.is_whitespace();
        let sound =
            |part: &str| !part.is_empty() && !part.starts_with('-') && !part.contains(is_odd);
        if !sound(name) || !namespace.is_none_or(sound) {
            bail!("--deployment {text:?} is not of the form [NAMESPACE/]NAME");
        }
        Ok(Self {
            namespace: namespace.map(ToOwned::to_owned),
            name: name.to_owned(),
            context: context.map(ToOwned::to_owned),
        })
    }

    /// Returns kubectl, with the flags that name the cluster and the namespace. It is found on the
    /// PATH, unless `$VMHOST_KUBECTL` names it.
    fn kubectl(&self) -> Command {
        let program = std::env::var_os("VMHOST_KUBECTL").filter(|name| !name.is_empty());
        let mut command = Command::new(program.unwrap_or_else(|| OsString::from("kubectl")));
        if let Some(context) = &self.context {
            command.arg(format!("--context={context}"));
        }
        if let Some(namespace) = &self.namespace {
            command.arg(format!("--namespace={namespace}"));
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Returns the pod of the leader, or the Deployment if no host holds its Lease: then kubectl
    /// takes any pod.
    async fn pod(&self) -> Result<String> {
        let mut kubectl = self.kubectl();
        kubectl.args(["get", "lease", &self.name, "--ignore-not-found"]);
        kubectl.args(["--output", "jsonpath={.spec.holderIdentity}"]);
        kubectl.arg(format!("--request-timeout={}s", PATIENCE.as_secs()));
        let output = kubectl.output().await.context("cannot start kubectl")?;
        if !output.status.success() {
            bail!(
                "kubectl cannot read the Lease of {}: {}",
                self.name,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let holder = String::from_utf8_lossy(&output.stdout);
        Ok(match pod_of(holder.trim()) {
            Some(pod) => format!("pod/{pod}"),
            None => format!("deployment/{}", self.name),
        })
    }
}

impl Forward {
    /// Opens a way to the leader of the Deployment.
    pub(super) async fn open(target: &Target) -> Result<Self> {
        let pod = target.pod().await?;
        let mut kubectl = target.kubectl();
        kubectl.args(["port-forward", &pod, &format!(":{PORT}")]);
        kubectl.args(["--address", "127.0.0.1"]);
        // kubectl itself tells what goes wrong.
        kubectl.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = kubectl.spawn().context("cannot start kubectl")?;
        let stdout = child.stdout.take().context("kubectl has no stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        let opened = tokio::time::timeout(PATIENCE, address_of(&mut lines, &pod)).await;
        let address = opened
            .with_context(|| format!("kubectl opened no port to {pod} within {PATIENCE:?}"))??;
        // kubectl writes a line for each connection, and would wait for a reader.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self {
            address,
            _child: child,
        })
    }

    /// The address on this machine.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

/// Reads what kubectl prints until it names the address.
async fn address_of(lines: &mut Lines<BufReader<ChildStdout>>, pod: &str) -> Result<String> {
    while let Some(line) = lines.next_line().await? {
        if let Some(address) = address_in(&line) {
            return Ok(address.to_owned());
        }
    }
    bail!("kubectl port-forward to {pod} ended; its message is above")
}

/// Returns the pod of a Lease's holder, whose identity is `POD_UUID`.
fn pod_of(holder: &str) -> Option<&str> {
    let (pod, _) = holder.rsplit_once('_')?;
    (!pod.is_empty()).then_some(pod)
}

/// Returns the address in `Forwarding from 127.0.0.1:40519 -> 8082`.
fn address_in(line: &str) -> Option<&str> {
    line.strip_prefix("Forwarding from ")?
        .split_whitespace()
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_name_and_maybe_a_namespace() {
        let parsed = Target::parse("vms/vmhost", Some("east")).unwrap();
        assert_eq!(parsed.namespace.as_deref(), Some("vms"));
        assert_eq!(
            (parsed.name.as_str(), parsed.context.as_deref()),
            ("vmhost", Some("east"))
        );
        assert_eq!(Target::parse("vmhost", None).unwrap().namespace, None);
        for bad in ["", "a/", "/a", "a/b/c", "-o", "a/--x", "a b"] {
            assert!(Target::parse(bad, None).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_kubectl_and_the_lease_say_is_understood() {
        let line = "Forwarding from 127.0.0.1:40519 -> 8082";
        assert_eq!(address_in(line), Some("127.0.0.1:40519"));
        assert_eq!(address_in("Handling connection for 1"), None);
        assert_eq!(pod_of("vmhost-7d_x-4f_0b1c"), Some("vmhost-7d_x-4f"));
        assert_eq!(pod_of(""), None);
        assert_eq!(pod_of("no-uuid"), None);
    }
}
