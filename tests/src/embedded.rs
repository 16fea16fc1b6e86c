//! The embedded API server of `vmhost dev`, as a test server: with role-based access control, like
//! the real one, and a kubeconfig of an administrator. Only this file of the harness knows its
//! crate.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use vmhost_apiserver::{Backup, Error, Options, Server, State};

use crate::net;
use crate::wait::eventually;

/// The embedded server, in this process.
pub struct EmbeddedServer {
    state: Arc<State>,
    addr: SocketAddr,
    /// `None` while it is killed.
    server: Mutex<Option<Server>>,
    backup: Mutex<Option<Backup>>,
    dir: TempDir,
}

/// The servers' own runtime, because they outlive the runtime of the test that starts them.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<Result<Runtime, std::io::Error>> = OnceLock::new();
    let started = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("embedded-apiserver")
            .enable_all()
            .build()
    });
    started
        .as_ref()
        .context("making the embedded server's runtime")
}

async fn serve(state: Arc<State>, options: Options) -> Result<Server> {
    // A child that another thread has just started holds the former listener until it runs its
    // program.
    eventually("the embedded server's port is free", async || {
        let starting = runtime()?.spawn(Server::start(state.clone(), options.clone()));
        match starting.await {
            Ok(Err(Error::Bind { source, .. })) if source.kind() == ErrorKind::AddrInUse => {
                Err(source.into())
            }
            ended => Ok(Some(ended)),
        }
    })
    .await?
    .context("the embedded server panicked")?
    .context("starting the embedded server")
}

impl EmbeddedServer {
    /// Starts an empty server on a free loopback port.
    pub async fn start() -> Result<EmbeddedServer> {
        let dir = tempfile::tempdir().context("making a folder")?;
        let state = State::new();
        // Not one that the kernel may give to another socket during a restart.
        let [port] = net::free_ports()?;
        let options = Options::at(net::loopback(port)).with_rbac();
        let server = serve(state.clone(), options).await?;
        let path = dir.path().join("admin.kubeconfig");
        fs::write(&path, server.kubeconfig())
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(EmbeddedServer {
            state,
            addr: server.addr(),
            server: Mutex::new(Some(server)),
            backup: Mutex::new(None),
            dir,
        })
    }

    /// Returns the kubeconfig file.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("admin.kubeconfig")
    }

    /// Returns a folder that lives as long as the server.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Breaks all connections and stops listening; the state remains, like that of etcd.
    pub async fn kill9(&self) -> Result<()> {
        let server = self
            .server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(server) = server {
            runtime()?
                .spawn(server.kill())
                .await
                .context("killing the embedded server")?;
        }
        Ok(())
    }

    /// Serves the same state at the same address again; the token and the certificate belong to the
    /// state.
    pub async fn restart(&self) -> Result<()> {
        self.kill9().await?;
        let options = Options::at(self.addr).with_rbac();
        let server = serve(self.state.clone(), options).await?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(())
    }

    /// Drops the history: a watch from an older version is answered with 410.
    pub fn compact(&self) {
        self.state.compact();
    }

    /// Copies all data.
    pub fn back_up(&self) {
        let backup = Some(self.state.back_up());
        *self.backup.lock().unwrap_or_else(PoisonError::into_inner) = backup;
    }

    /// Stops, restores the data of the last [`EmbeddedServer::back_up`], and starts again.
    pub async fn restore(&self) -> Result<()> {
        self.kill9().await?;
        self.state.restore(
            self.backup
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .as_ref()
                .context("there is no backup")?,
        );
        self.restart().await
    }
}
