//! A real OCI registry on loopback: github.com/distribution's, which `registry.sh` builds from its
//! Go module into a cache folder. Without Go, the caller gets the reason, and skips visibly or,
//! with `VMHOST_REQUIRE_REGISTRY=1`, as in CI, fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::assets::is_set;
use crate::guard::Guard;
use crate::net::{self, free_ports, loopback};
use crate::wait::eventually;

/// The exit code of `registry.sh` when Go is not installed.
const NO_GO: i32 = 3;

/// The user of a registry with [`Registry::with_password`], and the password.
pub const USER: &str = "ann";
/// The password of [`USER`].
pub const PASSWORD: &str = "a-password";

/// The line of htpasswd with [`USER`] and the bcrypt hash of [`PASSWORD`].
const HTPASSWD: &str = "ann:$2y$05$abcdefghijklmnopqrstuubsRD.Ffj/ka0r3BpAjv57rF8oK.y5YW\n";

/// A running registry.
pub struct Registry {
    port: u16,
    folder: TempDir,
    guard: Option<Guard>,
}

impl Registry {
    /// Starts a registry for everybody. `Err` within: why there is none.
    pub async fn start() -> Result<Result<Registry, String>> {
        Self::with("").await
    }

    /// Starts a registry that wants [`USER`] and [`PASSWORD`].
    pub async fn with_password() -> Result<Result<Registry, String>> {
        Self::with("auth:\n  htpasswd:\n    realm: test\n    path: ./htpasswd\n").await
    }

    async fn with(auth: &str) -> Result<Result<Registry, String>> {
        let program = match program() {
            Ok(program) => program,
            Err(error) if is_set("VMHOST_REQUIRE_REGISTRY") => return Err(error),
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        let folder = tempfile::tempdir()?;
        let [port] = free_ports()?;
        let config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: ./storage\nhttp:\n  addr: 127.0.0.1:{port}\n{auth}"
        );
        fs::write(folder.path().join("config.yml"), config)?;
        fs::write(folder.path().join("htpasswd"), HTPASSWD)?;
        let mut command = Command::new(program);
        command
            .args(["serve", "config.yml"])
            .current_dir(folder.path())
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        let guard = Guard::spawn(&mut command, Some(folder.path()))?;
        let registry = Registry {
            port,
            folder,
            guard: Some(guard),
        };
        eventually("the registry answers", async || {
            let (code, _) = net::get(loopback(port), "/v2/").await?;
            match code {
                200 | 401 => Ok(Some(())),
                code => bail!("it answers {code}"),
            }
        })
        .await?;
        Ok(Ok(registry))
    }

    /// Returns the name of an artifact here: `oci://127.0.0.1:PORT/NAME`.
    pub fn reference(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.address())
    }

    /// The registry's address, as docker's config.json names it.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the file in which the registry keeps the bytes with this digest.
    pub fn blob(&self, digest: &str) -> Result<PathBuf> {
        let hex = digest.strip_prefix("sha256:").context(digest.to_owned())?;
        let start = hex.get(..2).context(digest.to_owned())?;
        let blobs = "storage/docker/registry/v2/blobs/sha256";
        let file = self.folder.path().join(blobs).join(start).join(hex);
        Ok(file.join("data"))
    }

    /// Ends the registry.
    pub fn stop(&mut self) {
        self.guard = None;
    }
}

fn program() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("registry.sh");
    let output = Command::new(&script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", script.display()))?;
    match output.status.code() {
        Some(0) => {}
        Some(NO_GO) => bail!("registry is not in the cache, and Go is not installed to build it"),
        _ => bail!("the build of registry failed; its messages are above"),
    }
    let path = String::from_utf8(output.stdout).context("reading the path of what was built")?;
    Ok(PathBuf::from(path.trim_end()))
}
