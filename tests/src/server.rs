//! An API server for a test, embedded or real, behind one type.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use crate::embedded::EmbeddedServer;
use crate::proxy::Proxy;
use crate::real::{self, RealServer};
use crate::wait::eventually;
use crate::{assets, kubeconfig};

/// The server that a test runs against. Every promise is tested on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `vmhost-apiserver`, in this process.
    Embedded,
    /// kube-apiserver and etcd, as children.
    Real,
}

/// Whether a test has a server of its own, which it may kill or reconfigure, or shares one with all
/// tests of the program, because a real one takes 8 s to start. Each test on a shared server uses
/// its own namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One server for all tests of the program.
    Shared,
    /// A server of the test's own.
    Own,
}

enum Backend {
    Embedded(Box<EmbeddedServer>),
    Real(Box<RealServer>),
}

/// A running API server.
pub struct TestServer {
    backend: Backend,
    sharing: Sharing,
}

/// Why there is no server, and the test is skipped.
#[derive(Debug)]
pub struct Unavailable(pub String);

impl TestServer {
    /// Returns the server that all tests of the program share, started on first use.
    pub fn shared(target: Target) -> Result<Result<&'static TestServer, Unavailable>> {
        type Slot = OnceLock<Result<Result<TestServer, Unavailable>, String>>;
        static EMBEDDED: Slot = Slot::new();
        static REAL: Slot = Slot::new();
        let slot = match target {
            Target::Embedded => &EMBEDDED,
            Target::Real => &REAL,
        };
        // No test's runtime may own the server, because it must live until the last test ends.
        let started = slot.get_or_init(|| {
            crate::run::runtime()
                .and_then(|runtime| {
                    runtime.block_on(TestServer::start(
                        target,
                        Sharing::Shared,
                        real::Options::default(),
                    ))
                })
                .map_err(|error| format!("{error:#}"))
        });
        match started {
            Ok(Ok(server)) => Ok(Ok(server)),
            Ok(Err(Unavailable(reason))) => Ok(Err(Unavailable(reason.clone()))),
            Err(reason) => bail!("the shared {target:?} server did not start: {reason}"),
        }
    }

    /// Starts a server of the test's own.
    pub async fn own(
        target: Target,
        options: real::Options,
    ) -> Result<Result<TestServer, Unavailable>> {
        TestServer::start(target, Sharing::Own, options).await
    }

    async fn start(
        target: Target,
        sharing: Sharing,
        options: real::Options,
    ) -> Result<Result<TestServer, Unavailable>> {
        let backend = match target {
            Target::Embedded => Backend::Embedded(Box::new(EmbeddedServer::start().await?)),
            Target::Real => match assets::find() {
                Ok(assets) => Backend::Real(Box::new(RealServer::start(assets, options).await?)),
                Err(error) if assets::required() => {
                    return Err(error.context(
                        "VMHOST_REQUIRE_KUBE_APISERVER is set and there is no kube-apiserver",
                    ));
                }
                Err(error) => return Ok(Err(Unavailable(format!("no kube-apiserver: {error:#}")))),
            },
        };
        Ok(Ok(TestServer { backend, sharing }))
    }

    /// Returns which kind of server this is.
    pub fn target(&self) -> Target {
        match self.backend {
            Backend::Embedded(_) => Target::Embedded,
            Backend::Real(_) => Target::Real,
        }
    }

    /// Returns a kubeconfig with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        match &self.backend {
            Backend::Embedded(server) => server.kubeconfig(),
            Backend::Real(server) => server.kubeconfig(real::ADMIN),
        }
    }

    /// Returns a kubeconfig of a user without rights; `None` on the embedded server, whose users
    /// have client certificates instead of the real one's tokens.
    pub fn kubeconfig_of(&self, user: &str) -> Option<PathBuf> {
        match &self.backend {
            Backend::Embedded(_) => None,
            Backend::Real(server) => Some(server.kubeconfig(user)),
        }
    }

    /// Returns a folder for small files, which lives as long as the server.
    pub fn dir(&self) -> &Path {
        match &self.backend {
            Backend::Embedded(server) => server.dir(),
            Backend::Real(server) => server.dir(),
        }
    }

    /// Returns an administrator's client on the running test's runtime.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig()).await
    }

    /// Starts a fault proxy in front of this server.
    pub async fn proxy(&self) -> Result<Proxy> {
        Proxy::start(&self.kubeconfig()).await
    }

    /// Stops the server like SIGKILL: connections break without notice, written data remains.
    pub async fn kill9(&self) -> Result<()> {
        self.only_own("kill9")?;
        match &self.backend {
            Backend::Embedded(server) => server.kill9().await,
            Backend::Real(server) => {
                server.kill9();
                Ok(())
            }
        }
    }

    /// Starts the server again, with the same data at the same address, and waits until it is
    /// ready.
    pub async fn restart(&self) -> Result<()> {
        self.only_own("restart")?;
        match &self.backend {
            Backend::Embedded(server) => server.restart().await,
            Backend::Real(server) => server.restart().await,
        }
    }

    /// Drops the history: after a [`TestServer::restart`], a watch from an older version is
    /// answered with 410.
    pub async fn compact(&self) -> Result<()> {
        match &self.backend {
            Backend::Embedded(server) => {
                server.compact();
                Ok(())
            }
            Backend::Real(server) => server.compact().await,
        }
    }

    /// Backs up all data, as an administrator does with etcd's. A real server is stopped during the
    /// backup.
    pub async fn back_up(&self) -> Result<()> {
        self.only_own("back_up")?;
        match &self.backend {
            Backend::Embedded(server) => {
                server.back_up();
                Ok(())
            }
            Backend::Real(server) => server.back_up().await,
        }
    }

    /// Stops the server, restores the last backup, and starts it again: later writes are lost, and
    /// the resource version is the backup's.
    pub async fn restore(&self) -> Result<()> {
        self.only_own("restore")?;
        match &self.backend {
            Backend::Embedded(server) => server.restore().await,
            Backend::Real(server) => server.restore().await,
        }
    }

    fn only_own(&self, what: &str) -> Result<()> {
        if self.sharing == Sharing::Shared {
            bail!("{what} on a server that other tests share: use both_servers!(name, own)");
        }
        Ok(())
    }

    /// Creates a namespace with a unique name and waits until it can be used.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let client = self.client().await?;
        let namespaces: Api<Namespace> = Api::all(client);
        let name = format!("{prefix}-{:08x}", fastrand::u32(..));
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .with_context(|| format!("creating namespace {name}"))?;
        eventually("the namespace is active", async || {
            let phase = namespaces
                .get(&name)
                .await?
                .status
                .and_then(|status| status.phase);
            Ok(phase.filter(|phase| phase == "Active"))
        })
        .await?;
        Ok(name)
    }

    /// Attaches the server's log to the running test's report.
    pub(crate) fn attach_logs(&self) {
        if let Backend::Real(server) = &self.backend {
            server.attach_logs();
        }
    }
}
