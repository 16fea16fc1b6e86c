//! A real kube-apiserver on a real etcd, as children of the test process.
//!
//! There is no controller manager: nothing creates Pods for a Deployment and nothing collects
//! garbage. Role-based access control is on; `admin` has all rights, [`PLAIN_USER`] none until a
//! test grants some.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::assets::Assets;
use crate::guard::Guard;
use crate::wait::eventually_within;
use crate::{kubeconfig, net, report};

/// A member of `system:masters`.
pub const ADMIN: &str = "admin";
/// A user that is authenticated by its token, without any rights.
pub const PLAIN_USER: &str = "vmhost";

/// The start takes about 8 s on two idle cores; the rest is for busy ones.
const READY: Duration = Duration::from_secs(120);
/// Another process may take a free port before the server binds it.
const ATTEMPTS: usize = 3;

/// How a test's own server differs from the shared one.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Additional flags for the kube-apiserver, such as `--watch-cache=false`.
    pub flags: Vec<String>,
    /// Additional users with tokens, without rights.
    pub users: Vec<String>,
}

/// etcd and kube-apiserver, both killed on drop.
pub struct RealServer {
    assets: Assets,
    options: Options,
    etcd_port: u16,
    peer_port: u16,
    port: u16,
    apiserver: Mutex<Option<Guard>>,
    etcd: Mutex<Guard>,
    // Last, so that the folder is removed after both processes have ended.
    dir: TempDir,
}

impl RealServer {
    /// Starts both and waits until `/readyz` answers 200.
    pub async fn start(assets: Assets, options: Options) -> Result<RealServer> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match RealServer::start_once(assets.clone(), options.clone()).await {
                Ok(server) => return Ok(server),
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("no attempt was made")?)
    }

    async fn start_once(assets: Assets, options: Options) -> Result<RealServer> {
        let dir = tempfile::Builder::new()
            .prefix("vmhost-tests-")
            .tempdir()
            .context("making a folder")?;
        let [etcd_port, peer_port, port] = net::free_ports()?;
        write_keys(dir.path())?;
        write_tokens(dir.path(), &options.users)?;
        let etcd = start_etcd(&assets, dir.path(), etcd_port, peer_port)?;
        let server = RealServer {
            assets,
            options,
            etcd_port,
            peer_port,
            port,
            apiserver: Mutex::new(None),
            etcd: Mutex::new(etcd),
            dir,
        };
        server.restart().await?;
        for user in [ADMIN, PLAIN_USER]
            .into_iter()
            .chain(server.options.users.iter().map(String::as_str))
        {
            server.write_kubeconfig(user)?;
        }
        Ok(server)
    }

    /// Returns the folder of kubeconfig files and logs.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the kubeconfig of a user: [`ADMIN`], [`PLAIN_USER`] or one of [`Options::users`].
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.dir.path().join(format!("{user}.kubeconfig"))
    }

    /// Sends SIGKILL to the kube-apiserver; etcd keeps everything that was written.
    pub fn kill9(&self) {
        if let Some(mut apiserver) = self.apiserver().take() {
            apiserver.kill9();
        }
    }

    /// Kills the kube-apiserver if it runs, then starts it on the same etcd, port and certificate,
    /// and waits until it is ready.
    pub async fn restart(&self) -> Result<()> {
        self.kill9();
        let guard = Guard::spawn(&mut self.apiserver_command()?, None)?;
        *self.apiserver() = Some(guard);
        eventually_within(READY, "kube-apiserver is ready", async || {
            self.ready().await
        })
        .await
        .map_err(|error| {
            self.attach_logs();
            error.context(report::tail(&self.log("kube-apiserver"), 15))
        })
    }

    /// Compacts etcd to its newest revision: a watch from an older one fails, unless the server's
    /// own cache has it. [`RealServer::restart`] drops that cache.
    pub async fn compact(&self) -> Result<()> {
        let etcd = net::loopback(self.etcd_port);
        // The gateway expects keys in base64; this is "a".
        let (_, answer) = net::post(etcd, "/v3/kv/range", r#"{"key":"YQ=="}"#).await?;
        let answer: serde_json::Value =
            serde_json::from_str(&answer).context("reading etcd's answer")?;
        let revision = answer
            .pointer("/header/revision")
            .context("etcd names no revision")?;
        let order = serde_json::json!({ "revision": revision, "physical": true }).to_string();
        match net::post(etcd, "/v3/kv/compaction", &order).await? {
            (200, _) => Ok(()),
            // Already compacted to the same revision.
            (_, text) if text.contains("has been compacted") => Ok(()),
            (code, text) => bail!("etcd answers a compaction with {code}: {text}"),
        }
    }

    /// Stops both, copies etcd's data, and starts both again.
    pub async fn back_up(&self) -> Result<()> {
        self.with_etcd_stopped(copy_folder).await
    }

    /// Stops both, replaces etcd's data with that of the last [`RealServer::back_up`], and starts
    /// both again.
    pub async fn restore(&self) -> Result<()> {
        self.with_etcd_stopped(|data, backup| {
            fs::remove_dir_all(data).context("removing etcd's data")?;
            copy_folder(backup, data)
        })
        .await
    }

    async fn with_etcd_stopped(
        &self,
        action: impl FnOnce(&Path, &Path) -> Result<()>,
    ) -> Result<()> {
        self.kill9();
        self.etcd().kill9();
        let dir = self.dir.path();
        action(&data_folder(dir), &dir.join("etcd.backup"))?;
        *self.etcd() = start_etcd(&self.assets, dir, self.etcd_port, self.peer_port)?;
        self.restart().await
    }

    async fn ready(&self) -> Result<Option<()>> {
        for (name, status) in [
            ("kube-apiserver", self.exited()?),
            ("etcd", self.etcd().try_wait()?),
        ] {
            if let Some(status) = status {
                bail!("{name} ended: {status}");
            }
        }
        let path = self.write_kubeconfig(ADMIN)?;
        let request = http::Request::get("/readyz").body(Vec::new())?;
        kubeconfig::client(&path)
            .await?
            .request_text(request)
            .await
            .context("GET /readyz")?;
        Ok(Some(()))
    }

    fn exited(&self) -> Result<Option<std::process::ExitStatus>> {
        self.apiserver().as_mut().map_or(Ok(None), Guard::try_wait)
    }

    /// The server creates its own certificate on its first start, so this cannot be written
    /// earlier.
    fn write_kubeconfig(&self, user: &str) -> Result<PathBuf> {
        let ca = fs::read(self.dir.path().join("apiserver.crt"))
            .context("reading the server's certificate")?;
        let server = format!("https://127.0.0.1:{}", self.port);
        let path = self.kubeconfig(user);
        fs::write(
            &path,
            kubeconfig::text(&server, Some(&ca), user, Some(&token(user))),
        )
        .with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    fn apiserver_command(&self) -> Result<Command> {
        let dir = self.dir.path();
        let file = |name: &str| dir.join(name).display().to_string();
        let mut command = Command::new(&self.assets.kube_apiserver);
        command
            // Collecting garbage would take a quarter of the processor time of a start.
            .env("GOGC", "off")
            .env("GOMEMLIMIT", "600MiB")
            .arg(format!(
                "--etcd-servers=http://127.0.0.1:{}",
                self.etcd_port
            ))
            .arg(format!("--secure-port={}", self.port))
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            // Endpoints of the service `kubernetes` must not be loopback addresses, and nothing
            // here reads them.
            .arg("--endpoint-reconciler-type=none")
            .arg(format!("--cert-dir={}", dir.display()))
            .arg(format!("--service-account-key-file={}", file("sa.pub")))
            .arg(format!(
                "--service-account-signing-key-file={}",
                file("sa.key")
            ))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg("--service-cluster-ip-range=10.0.0.0/24")
            .arg(format!("--token-auth-file={}", file("tokens.csv")))
            .args([
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",
            ])
            .args(&self.options.flags);
        log_to(&mut command, dir, "kube-apiserver")?;
        Ok(command)
    }

    fn apiserver(&self) -> MutexGuard<'_, Option<Guard>> {
        self.apiserver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn etcd(&self) -> MutexGuard<'_, Guard> {
        self.etcd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, name: &str) -> String {
        let bytes = fs::read(self.dir.path().join(format!("{name}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Shows the end of both logs if the running test fails.
    pub fn attach_logs(&self) {
        for name in ["etcd", "kube-apiserver"] {
            report::attach(
                format!("last lines of {name}"),
                report::tail(&self.log(name), 30),
            );
        }
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        self.attach_logs();
        self.kill9();
        self.etcd().kill9();
    }
}

fn data_folder(dir: &Path) -> PathBuf {
    dir.join("etcd")
}

/// Copies a folder to a path that does not exist.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).with_context(|| format!("making {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
        }
    }
    Ok(())
}

fn start_etcd(assets: &Assets, dir: &Path, client: u16, peer: u16) -> Result<Guard> {
    Guard::spawn(&mut etcd(assets, dir, client, peer)?, Some(dir))
}

fn etcd(assets: &Assets, dir: &Path, client: u16, peer: u16) -> Result<Command> {
    let client = format!("http://127.0.0.1:{client}");
    let peer = format!("http://127.0.0.1:{peer}");
    let mut command = Command::new(&assets.etcd);
    command
        .args(["--unsafe-no-fsync", "--log-level=warn"])
        .arg(format!("--data-dir={}", data_folder(dir).display()))
        .arg(format!("--listen-client-urls={client}"))
        .arg(format!("--advertise-client-urls={client}"))
        .arg(format!("--listen-peer-urls={peer}"))
        .arg(format!("--initial-advertise-peer-urls={peer}"))
        .arg(format!("--initial-cluster=default={peer}"));
    log_to(&mut command, dir, "etcd")?;
    Ok(command)
}

/// Appends, so that a restarted server's log follows the killed one's.
fn log_to(command: &mut Command, dir: &Path, name: &str) -> Result<()> {
    let path = dir.join(format!("{name}.log"));
    let open = || -> Result<File> {
        File::options()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))
    };
    command.stdin(Stdio::null()).stdout(open()?).stderr(open()?);
    Ok(())
}

/// Writes the key that signs service account tokens. The server requires one although no test uses
/// them.
fn write_keys(dir: &Path) -> Result<()> {
    let pair = rcgen::KeyPair::generate().context("making a key")?;
    fs::write(dir.join("sa.key"), pair.serialize_pem()).context("writing sa.key")?;
    fs::write(dir.join("sa.pub"), pair.public_key_pem()).context("writing sa.pub")
}

fn write_tokens(dir: &Path, more: &[String]) -> Result<()> {
    let mut lines = format!("{},{ADMIN},{ADMIN},system:masters\n", token(ADMIN));
    for user in [PLAIN_USER]
        .into_iter()
        .chain(more.iter().map(String::as_str))
    {
        lines += &format!("{},{user},{user}\n", token(user));
    }
    fs::write(dir.join("tokens.csv"), lines).context("writing tokens.csv")
}

/// Returns a user's token. It needs no secrecy: the server listens on loopback and lives as long as
/// a test.
fn token(user: &str) -> String {
    format!("token-of-{user}")
}
