//! The vmhost binary as a child process, observed only from outside: flags, output, exit code,
//! ports, signals.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::sync::watch;
use vmhost_runtime::observe::admin::STATE_PATH;
use vmhost_runtime::observe::admin::state::HostState;

use crate::expect::GENERATION;
use crate::guard::Guard;
use crate::metrics::Metrics;
use crate::wait::{DEADLINE, eventually, eventually_within};
use crate::{guests, net, report};

const BINARY: &str = "vmhost-under-test";

/// The flags and the environment of a host.
pub struct HostCommand {
    command: Command,
    metrics: SocketAddr,
    probes: SocketAddr,
    admin: SocketAddr,
    dir: TempDir,
    /// Whether the program is started by others of its process group, which end with it.
    in_group: bool,
}

/// A running host, killed on drop.
pub struct Host {
    guard: Mutex<Guard>,
    output: Arc<watch::Sender<Vec<String>>>,
    stdout: Arc<Mutex<Vec<String>>>,
    metrics: SocketAddr,
    probes: SocketAddr,
    admin: SocketAddr,
    // Dropped after the process, which may still write there.
    dir: TempDir,
}

/// The result of a host.
#[derive(Clone, Debug)]
pub struct Exit {
    /// The exit status.
    pub status: ExitStatus,
    /// All lines of stdout and stderr.
    pub output: Vec<String>,
    /// The lines of stdout only, a command's result.
    pub stdout: Vec<String>,
}

impl Exit {
    /// Checks that the exit code is not 0, and that a single line reports the bad input: it
    /// contains all of `words`.
    pub fn expect_error(&self, words: &[&str]) -> Result<()> {
        let all = self.output.join("\n");
        if self.status.success() {
            bail!("the host ended with success: {all}");
        }
        // A panic of the host; a guest's panic is quoted within a line.
        let panicked = self
            .output
            .iter()
            .any(|line| line.trim_start().starts_with("thread '"));
        if self.status.code().is_none() || panicked {
            bail!("the host crashed ({}): {all}", self.status);
        }
        if !self
            .output
            .iter()
            .any(|line| words.iter().all(|word| line.contains(word)))
        {
            bail!("no line of the output holds {words:?}: {all}");
        }
        Ok(())
    }
}

/// Returns the command without flags, for commands that run no controller: `build`, `inspect`.
pub fn bare() -> Result<HostCommand> {
    of(&binary()?)
}

/// A program that is another build of the host, without any flag.
pub fn of(program: &Path) -> Result<HostCommand> {
    let [metrics, probes, admin] = net::free_ports()?;
    let mut command = Command::new(program);
    without_settings(&mut command);
    // Folders of its own, so that earlier tests do not influence this one.
    let dir = tempfile::tempdir().context("making a folder")?;
    command
        .env("NO_COLOR", "1")
        .env("RUST_BACKTRACE", "1")
        .env("VMHOST_CACHE", compiled())
        .env("VMHOST_HISTORY", dir.path().join("history"))
        .env("XDG_RUNTIME_DIR", dir.path());
    Ok(HostCommand {
        command,
        metrics: net::loopback(metrics),
        probes: net::loopback(probes),
        admin: net::loopback(admin),
        dir,
        in_group: false,
    })
}

/// The cache folder of all hosts. Most of them run the same few components, and compiling these
/// took a third of the processor time of all tests. An image is found by its component's bytes.
fn compiled() -> PathBuf {
    let guests = Path::new(guests::VM_STAMP).ancestors().nth(3);
    guests.unwrap_or(Path::new("")).join("compiled")
}

/// Keeps the machine's settings, which must not influence a test, from a program.
pub(crate) fn without_settings(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ["VMHOST_", "KUBE", "OTEL_", "RUST_LOG"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
}

/// Returns a host on the kubeconfig's cluster, with free ports for what it serves.
pub fn on(kubeconfig: &Path) -> Result<HostCommand> {
    Ok(bare()?.on(kubeconfig))
}

impl HostCommand {
    /// Runs on the cluster of that kubeconfig, with free ports for what it serves.
    pub fn on(self, kubeconfig: &Path) -> HostCommand {
        self.arg("--kubeconfig").arg(kubeconfig).serving()
    }

    /// Serves on free ports of loopback.
    pub fn serving(self) -> HostCommand {
        let served = [self.metrics, self.probes, self.admin];
        let [metrics, probes, admin] = served.map(|address| address.to_string());
        self.args([
            "--metrics-bind-address",
            &metrics,
            "--health-probe-bind-address",
            &probes,
            "--admin-bind-address",
            &admin,
        ])
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> HostCommand {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> HostCommand {
        self.command.args(args);
        self
    }

    /// Adds `--plugin`.
    pub fn plugin(self, path: impl AsRef<Path>) -> HostCommand {
        self.arg("--plugin").arg(path.as_ref())
    }

    /// Adds `--namespace`.
    pub fn namespace(self, namespace: &str) -> HostCommand {
        self.args(["--namespace", namespace])
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> HostCommand {
        self.command.env(name, value);
        self
    }

    /// Removes an environment variable.
    pub fn without(mut self, name: &str) -> HostCommand {
        self.command.env_remove(name);
        self
    }

    /// Sets the working folder.
    pub fn current_dir(mut self, dir: &Path) -> HostCommand {
        self.command.current_dir(dir);
        self
    }

    /// The command starts the host by way of other programs: all of its process group is killed.
    pub fn in_group(mut self) -> HostCommand {
        self.in_group = true;
        self
    }

    /// Starts the host.
    pub fn spawn(mut self) -> Result<Host> {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut guard = match self.in_group {
            true => Guard::spawn_group(&mut self.command)?,
            false => Guard::spawn(&mut self.command, None)?,
        };
        let output = Arc::new(watch::Sender::new(Vec::new()));
        let child = guard.child();
        let stdout = child.stdout.take().context("the host's stdout")?;
        let stderr = child.stderr.take().context("the host's stderr")?;
        let result = Arc::<Mutex<Vec<String>>>::default();
        capture(stdout, output.clone(), Some(result.clone()));
        capture(stderr, output.clone(), None);
        Ok(Host {
            guard: Mutex::new(guard),
            output,
            stdout: result,
            metrics: self.metrics,
            probes: self.probes,
            admin: self.admin,
            dir: self.dir,
        })
    }

    /// Starts the host and waits until `/readyz` answers 200.
    pub async fn ready(self) -> Result<Host> {
        let host = self.spawn()?;
        host.until_ready().await?;
        Ok(host)
    }

    /// Runs the host until it exits.
    pub async fn run(self) -> Result<Exit> {
        self.spawn()?.wait_exit().await
    }
}

fn capture(
    stream: impl Read + Send + 'static,
    output: Arc<watch::Sender<Vec<String>>>,
    alone: Option<Arc<Mutex<Vec<String>>>>,
) {
    thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if let Some(alone) = &alone {
                alone
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(line.clone());
            }
            output.send_modify(|lines| lines.push(line));
        }
    });
}

impl Host {
    /// Returns the answer of `/debug/state`.
    pub async fn state(&self) -> Result<HostState> {
        let (code, text) = net::get(self.admin, STATE_PATH).await?;
        if code != 200 {
            bail!("{STATE_PATH} answers {code}: {text}");
        }
        serde_json::from_str(&text).with_context(|| format!("reading {text}"))
    }

    /// Waits until the state satisfies the condition, and returns the state.
    pub async fn until_state(
        &self,
        what: &str,
        wanted: impl Fn(&HostState) -> bool,
    ) -> Result<HostState> {
        eventually(what, async || {
            let state = self.state().await?;
            match wanted(&state) {
                true => Ok(Some(state)),
                false => bail!("it is {state:?}"),
            }
        })
        .await
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.guard().id()
    }

    /// Returns all lines so far, of stdout and stderr.
    pub fn output(&self) -> Vec<String> {
        self.output.borrow().clone()
    }

    /// Waits for a line with this text, also an earlier one, and returns it.
    pub async fn wait_for_line(&self, text: &str) -> Result<String> {
        self.wait_for_lines(1, |line| line.contains(text))
            .await
            .with_context(|| format!("waiting for a line with {text:?}"))?
            .pop()
            .context("there is one")
    }

    /// Waits until `n` lines match, and returns all matches.
    pub async fn wait_for_lines(
        &self,
        n: usize,
        matching: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let mut output = self.output.subscribe();
        let pick = |lines: &[String]| -> Vec<String> {
            lines
                .iter()
                .filter(|line| matching(line))
                .cloned()
                .collect()
        };
        let enough = output.wait_for(|lines| pick(lines).len() >= n);
        match tokio::time::timeout(DEADLINE, enough).await {
            Ok(Ok(lines)) => Ok(pick(&lines)),
            Ok(Err(_)) => bail!("the output ended"),
            Err(_) => bail!(
                "{} such lines and not {n} within {DEADLINE:?}",
                pick(&self.output.borrow()).len()
            ),
        }
    }

    /// Waits until `/readyz` answers 200. Returns an error immediately if the host exits instead.
    pub async fn until_ready(&self) -> Result<()> {
        let ready = eventually("the host is ready", async || {
            if let Some(status) = self.guard().try_wait()? {
                return Ok(Some(Err(status)));
            }
            let (code, body) = net::get(self.probes, "/readyz").await?;
            match code {
                200 => Ok(Some(Ok(()))),
                _ => bail!("/readyz answers {code}: {body}"),
            }
        });
        match ready.await? {
            Ok(()) => Ok(()),
            Err(status) => bail!("the host ended before it was ready: {status}"),
        }
    }

    /// Returns the status code and the body of a probe such as `/healthz`.
    pub async fn probe(&self, path: &str) -> Result<(u16, String)> {
        net::get(self.probes, path).await
    }

    /// Returns the address of the probes.
    pub fn probes_addr(&self) -> SocketAddr {
        self.probes
    }

    /// Returns the address of the metrics.
    pub fn metrics_addr(&self) -> SocketAddr {
        self.metrics
    }

    /// Returns the address that serves the state and the turns.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin
    }

    /// Returns the folder with the host's own files.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Scrapes the metrics once.
    pub async fn metrics(&self) -> Result<Metrics> {
        let (code, text) = net::get(self.metrics, "/metrics").await?;
        if code != 200 {
            bail!("/metrics answers {code}");
        }
        Ok(Metrics::parse(&text))
    }

    /// Returns the number of a plugin's generation, once there is one.
    pub async fn generation(&self, plugin: &str) -> Result<f64> {
        let labels = [("plugin", plugin)];
        Ok(self
            .until_metric(GENERATION, &labels, 1.0)
            .await?
            .sum(GENERATION, &labels))
    }

    /// Scrapes until the sum of a metric is at least `least`.
    pub async fn until_metric(
        &self,
        name: &str,
        labels: &[(&str, &str)],
        least: f64,
    ) -> Result<Metrics> {
        eventually(&format!("{name}{labels:?} >= {least}"), async || {
            let metrics = self.metrics().await?;
            Ok((metrics.sum(name, labels) >= least).then_some(metrics))
        })
        .await
    }

    /// Sends SIGTERM.
    pub fn sigterm(&self) -> Result<()> {
        self.guard().signal("TERM")
    }

    /// Sends SIGKILL, and waits until the process has ended.
    pub fn kill9(&self) {
        self.guard().kill9();
    }

    /// Returns the exit status, if the process has ended.
    pub fn exited(&self) -> Result<Option<ExitStatus>> {
        self.guard().try_wait()
    }

    /// Waits until the process exits, and for the end of its output.
    pub async fn wait_exit(&self) -> Result<Exit> {
        self.wait_exit_within(DEADLINE).await
    }

    /// Like [`Host::wait_exit`], with another deadline, for commands that compile.
    pub async fn wait_exit_within(&self, deadline: Duration) -> Result<Exit> {
        let status =
            eventually_within(deadline, "the host ends", async || self.guard().try_wait()).await?;
        // The reader threads drop their senders at the end of the streams.
        eventually("the host's output ends", async || {
            Ok((Arc::strong_count(&self.output) == 1).then_some(()))
        })
        .await?;
        let stdout = self
            .stdout
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Ok(Exit {
            status,
            output: self.output(),
            stdout,
        })
    }

    fn guard(&self) -> MutexGuard<'_, Guard> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill9();
        report::attach(
            format!("output of host {}", self.id()),
            report::tail(&self.output().join("\n"), 200),
        );
    }
}

/// Returns the path of the binary. Cargo sets the variable for integration tests; a test binary
/// started by hand finds it two folders up.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = env::var_os(OsString::from(format!("CARGO_BIN_EXE_{BINARY}"))) {
        return Ok(path.into());
    }
    let own = env::current_exe().context("finding the test binary")?;
    let path = own
        .ancestors()
        .nth(2)
        .map(|dir| dir.join(BINARY))
        .filter(|path| path.is_file());
    path.with_context(|| format!("no {BINARY} beside {}", own.display()))
}
