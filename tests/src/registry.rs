//! A real OCI registry on loopback: github.com/distribution's, which `registry.sh` builds from its
//! Go module into a cache folder. Without Go, the caller gets the reason, and skips visibly or,
//! with `VMHOST_REQUIRE_REGISTRY=1`, as in CI, fails.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::assets::{is_set, run_script};
use crate::guard::Guard;
use crate::net::{self, free_ports, loopback};
use crate::wait::eventually;

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
        Self::with("auth: { htpasswd: { realm: test, path: ./htpasswd } }").await
    }

    async fn with(auth: &str) -> Result<Result<Registry, String>> {
        let program = match find()? {
            Ok(program) => program,
            Err(reason) => return Ok(Err(reason)),
        };
        let folder = tempfile::tempdir()?;
        let [port] = free_ports()?;
        let http = format!("http: {{ addr: \"127.0.0.1:{port}\" }}");
        let config = [
            "version: 0.1",
            "log: { level: error }",
            "storage: { filesystem: { rootdirectory: ./storage } }",
            http.as_str(),
            auth,
        ];
        let config = config.join("\n");
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

    /// Returns the registry's address, as docker's config.json names it.
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

/// Returns the program, which is built if it is not in the cache. `Err` within: why there is none.
pub fn find() -> Result<Result<PathBuf, String>> {
    match run_script("tests/registry.sh", &[], "registry") {
        Ok(program) => Ok(Ok(program)),
        Err(error) if is_set("VMHOST_REQUIRE_REGISTRY") => Err(error),
        Err(error) => Ok(Err(format!("{error:#}"))),
    }
}
