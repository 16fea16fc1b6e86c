//! The embedded API server of `vmhost dev`, as a test server. All that the harness knows of its crate is here.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use tempfile::TempDir;

/// The embedded server, in this process.
pub struct EmbeddedServer {
    dir: TempDir,
}

impl EmbeddedServer {
    /// Starts it on a free loopback port.
    pub async fn start() -> Result<EmbeddedServer> {
        bail!("vmhost-apiserver has no server yet")
    }

    /// Its kubeconfig file.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("admin.kubeconfig")
    }

    /// A folder that lives as long as the server.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Breaks all connections and stops to listen; the state stays.
    pub async fn kill9(&self) -> Result<()> {
        bail!("vmhost-apiserver has no server yet")
    }

    /// Serves the same state at the same address again.
    pub async fn restart(&self) -> Result<()> {
        bail!("vmhost-apiserver has no server yet")
    }
}
