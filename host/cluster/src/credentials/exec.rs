//! Exec plugins: programs that print an `ExecCredential` (`client.authentication.k8s.io`).
//!
//! This module owns how a plugin runs and what its output means, both as in client-go's
//! `plugin/pkg/client/auth/exec`. It must not know when a plugin has to run.

use std::io::IsTerminal;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::config::{Cluster, ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::identity::Identity;
use crate::error::BoxError;

/// Timeout of a plugin that cannot prompt a person. A login over a slow network takes seconds.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a plugin that can prompt a person at the terminal.
const INTERACTIVE_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum output size in bytes. A certificate chain with its key has some 10 KiB.
const OUTPUT_MAX: u64 = 1 << 20;
/// Maximum number of characters of a plugin's standard error in a message.
const STDERR_SHOWN: usize = 400;
/// Maximum time before expiry at which a credential is renewed. kube uses the same time.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_secs(60);

/// An exec plugin.
pub(super) struct Plugin {
    config: ExecConfig,
    command: String,
    version: String,
    /// Set if the plugin receives information about the cluster (`provideClusterInfo`).
    cluster: Option<Cluster>,
}

/// A plugin's output.
pub(super) struct Issued {
    pub token: Option<String>,
    pub identity: Option<Identity>,
    /// When to run the plugin again; `None` if only after the server rejects the credentials.
    due: Option<Timestamp>,
}

/// Why a plugin returned no credentials. Each text names the plugin's program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PluginError {
    #[error("the user's exec plugin has no command")]
    NoCommand,
    #[error(
        "exec plugin {command}: apiVersion {version:?} is not client.authentication.k8s.io/v1 or v1beta1"
    )]
    Version { command: String, version: String },
    #[error(
        "exec plugin {command} needs a terminal (interactiveMode: Always), but standard input is not a terminal"
    )]
    NoTerminal { command: String },
    #[error("exec plugin {command} cannot be run; {hint}")]
    Start {
        command: String,
        hint: String,
        source: std::io::Error,
    },
    #[error("exec plugin {command} did not exit within {after:?}")]
    Timeout { command: String, after: Duration },
    #[error("exec plugin {command} failed ({status}): {stderr}")]
    Failed {
        command: String,
        status: ExitStatus,
        stderr: String,
    },
    #[error("exec plugin {command}: {detail}")]
    Answer { command: String, detail: String },
    #[error("exec plugin {command}: cannot encode the cluster information")]
    Cluster { command: String, source: BoxError },
}

/// The plugin's input, in `KUBERNETES_EXEC_INFO`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Input<'a> {
    kind: &'a str,
    api_version: &'a str,
    spec: Spec,
}

#[derive(Serialize)]
struct Spec {
    interactive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ExecAuthCluster>,
}

/// The plugin's output.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl Plugin {
    pub(super) fn new(config: &ExecConfig, cluster: &Cluster) -> Result<Self, PluginError> {
        let command = config.command.clone().filter(|command| !command.is_empty());
        let command = command.ok_or(PluginError::NoCommand)?;
        let version = config.api_version.clone().unwrap_or_default();
        let name = version.strip_prefix("client.authentication.k8s.io/");
        if !matches!(name, Some("v1" | "v1beta1")) {
            return Err(PluginError::Version { command, version });
        }
        Ok(Self {
            config: config.clone(),
            command,
            version,
            cluster: config.provide_cluster_info.then(|| cluster.clone()),
        })
    }

    /// Runs the plugin and parses its output. A plugin that can prompt a person shares the
    /// terminal; otherwise its standard error goes into the error.
    pub(super) async fn run(&self) -> Result<Issued, PluginError> {
        let command = || self.command.clone();
        let interactive = self.is_interactive(std::io::stdin().is_terminal())?;
        let mut program = Command::new(&self.command);
        program
            .args(self.config.args.iter().flatten())
            .env("KUBERNETES_EXEC_INFO", self.input(interactive)?)
            .stdin(if interactive {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .stderr(if interactive {
                Stdio::inherit()
            } else {
                Stdio::piped()
            })
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        for variable in self.config.env.iter().flatten() {
            if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
                program.env(name, value);
            }
        }
        let mut child = program.spawn().map_err(|source| PluginError::Start {
            command: command(),
            hint: self.hint(),
            source,
        })?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let after = if interactive {
            INTERACTIVE_TIMEOUT
        } else {
            TIMEOUT
        };
        let ended = tokio::time::timeout(after, async {
            let (out, err, status) = tokio::join!(read_pipe(out), read_pipe(err), child.wait());
            status.map(|status| (out, err, status))
        });
        let (out, err, status) = match ended.await {
            Ok(ended) => ended.map_err(|error| self.wrong(error.to_string()))?,
            Err(_) => {
                return Err(PluginError::Timeout {
                    command: command(),
                    after,
                });
            }
        };
        if !status.success() {
            return Err(PluginError::Failed {
                command: command(),
                status,
                stderr: shown(&err),
            });
        }
        self.parse(&out, Timestamp::now())
    }

    fn is_interactive(&self, terminal: bool) -> Result<bool, PluginError> {
        match self.config.interactive_mode {
            Some(ExecInteractiveMode::Never) => Ok(false),
            Some(ExecInteractiveMode::Always) if !terminal => Err(PluginError::NoTerminal {
                command: self.command.clone(),
            }),
            _ => Ok(terminal),
        }
    }

    fn input(&self, interactive: bool) -> Result<String, PluginError> {
        let failed = |source: BoxError| PluginError::Cluster {
            command: self.command.clone(),
            source,
        };
        let cluster = self.cluster.as_ref().map(ExecAuthCluster::try_from);
        let input = Input {
            kind: "ExecCredential",
            api_version: &self.version,
            spec: Spec {
                interactive,
                cluster: cluster.transpose().map_err(|error| failed(error.into()))?,
            },
        };
        serde_json::to_string(&input).map_err(|error| failed(error.into()))
    }

    /// Parses an output that arrived at `now`.
    fn parse(&self, text: &str, now: Timestamp) -> Result<Issued, PluginError> {
        // client-go accepts YAML too, and some plugins print YAML. The parser's message is omitted
        // because it may quote a secret.
        let answer: Output = serde_yaml_ng::from_str(text)
            .map_err(|_| self.wrong("its output is not an ExecCredential".to_owned()))?;
        if answer.kind != "ExecCredential" || answer.api_version != self.version {
            let (kind, version) = (shown(&answer.kind), shown(&answer.api_version));
            let wanted = &self.version;
            return Err(self.wrong(format!(
                "it printed {kind} {version:?}; expected ExecCredential {wanted:?}"
            )));
        }
        let status = answer
            .status
            .ok_or_else(|| self.wrong("its answer has no status".to_owned()))?;
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let token = filled(status.token);
        let certificate = filled(status.client_certificate_data);
        let identity = match (certificate, filled(status.client_key_data)) {
            (Some(certificate), Some(key)) => Some(Identity {
                certificate: certificate.into_bytes(),
                key: key.into_bytes(),
            }),
            (None, None) if token.is_some() => None,
            (None, None) => {
                return Err(self.wrong(
                    "its answer has neither a token nor a certificate with a key".to_owned(),
                ));
            }
            _ => {
                return Err(self.wrong("its answer has only one of certificate and key".to_owned()));
            }
        };
        let end = filled(status.expiration_timestamp).map(|text| text.parse::<Timestamp>());
        let end = end
            .transpose()
            .map_err(|error| self.wrong(format!("invalid expirationTimestamp: {error}")))?;
        Ok(Issued {
            token,
            identity,
            due: end.map(|end| end - renew_before(end.duration_since(now))),
        })
    }

    fn wrong(&self, detail: String) -> PluginError {
        PluginError::Answer {
            command: self.command.clone(),
            detail,
        }
    }

    fn hint(&self) -> String {
        let hint = self.config.install_hint.as_deref().map(shown);
        hint.unwrap_or_else(|| "check that it is installed and on PATH".to_owned())
    }
}

/// Returns how long before expiry to renew a credential with this much time left: at most a
/// quarter, because a plugin may return the same credential until it expires.
fn renew_before(left: SignedDuration) -> SignedDuration {
    (left / 4).clamp(SignedDuration::ZERO, RENEW_BEFORE)
}

impl Issued {
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|due| now >= due)
    }

    /// Returns how long until the plugin must run again; zero if that time has passed.
    pub(super) fn due_in(&self, now: Timestamp) -> Option<Duration> {
        let left = self.due?.duration_since(now);
        Some(Duration::try_from(left).unwrap_or_default())
    }
}

/// Reads a pipe up to [`OUTPUT_MAX`] and closes it.
async fn read_pipe(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // Truncated output does not parse.
        let _ = pipe.take(OUTPUT_MAX).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the end of a text, on one line.
fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let skip = line.chars().count().saturating_sub(STDERR_SHOWN);
    line.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests;
