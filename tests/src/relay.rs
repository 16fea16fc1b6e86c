//! A relay of bytes between hosts and a server. It can go down, and its connections can vanish as
//! if a machine or a firewall in between died: it no longer acknowledges what is sent.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use socket2::{SockFilter, SockRef};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::{kubeconfig, net};

/// A kernel packet filter with one instruction: keep 0 bytes of each packet (`BPF_RET`).
const DROP_ALL: [SockFilter; 1] = [SockFilter::new(6, 0, 0, 0)];

/// A running relay. Dropping the value stops it.
pub struct Relay {
    kubeconfig: PathBuf,
    /// A counter: connections that began before its newest change have vanished.
    swallowed: watch::Sender<u64>,
    /// Whether all connections are broken, and new ones are closed at once.
    down: watch::Sender<bool>,
    listener: Arc<TcpListener>,
    accepting: JoinHandle<()>,
    _dir: TempDir,
}

impl Relay {
    /// Listens on a free loopback port, in front of the server of a kubeconfig on loopback.
    pub async fn start(server: &Path) -> Result<Relay> {
        let listener = TcpListener::bind(net::loopback(0))
            .await
            .context("binding the relay")?;
        let addr = listener.local_addr().context("reading its address")?;
        let dir = tempfile::tempdir().context("making a folder")?;
        let file = dir.path().join("relay.kubeconfig");
        let mut upstream = None;
        kubeconfig::changed(server, &file, |cluster, _| {
            let url = cluster["server"].as_str().unwrap_or_default();
            upstream = url.strip_prefix("https://").and_then(|at| at.parse().ok());
            cluster["server"] = format!("https://{addr}").into();
        })?;
        let upstream: SocketAddr = upstream.context("the server has no address")?;
        let (swallowed, down) = (watch::Sender::new(0), watch::Sender::new(false));
        let (vanishing, breaking) = (swallowed.subscribe(), down.subscribe());
        let listener = Arc::new(listener);
        let accepted = listener.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = accepted.accept().await {
                let mut swallowed = vanishing.clone();
                swallowed.mark_unchanged();
                let mut down = breaking.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        Ok(_) = down.wait_for(|down| *down) => {}
                        _ = pass(stream, upstream, swallowed) => {}
                    }
                });
            }
        });
        Ok(Relay {
            kubeconfig: file,
            swallowed,
            down,
            listener,
            accepting,
            _dir: dir,
        })
    }

    /// Returns a kubeconfig that points at the relay.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Makes all current connections vanish. New ones work.
    pub fn swallow(&self) {
        self.swallowed.send_modify(|count| *count += 1);
    }

    /// Breaks all connections and closes new ones, or lets them pass again.
    pub fn take_down(&self, down: bool) {
        self.down.send_replace(down);
    }

    /// Makes all current connections vanish, and leaves requests for new ones without an answer
    /// from now on.
    pub fn swallow_all(&self) -> Result<()> {
        // The filter of a listener drops the packets that ask for a connection.
        SockRef::from(&*self.listener)
            .attach_filter(&DROP_ALL)
            .context("filtering the relay's listener")?;
        self.swallow();
        Ok(())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(
    mut client: TcpStream,
    upstream: SocketAddr,
    mut swallowed: watch::Receiver<u64>,
) -> std::io::Result<()> {
    let mut server = TcpStream::connect(upstream).await?;
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    tokio::select! {
        passed = tokio::io::copy_bidirectional(&mut client, &mut server) => {
            return passed.map(drop);
        }
        // An error means that the relay has ended.
        Ok(()) = swallowed.changed() => {}
    }
    // A peer that has vanished sends nothing, and this one would send again what is not
    // acknowledged.
    while has_unacknowledged(&client)? {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    SockRef::from(&client).attach_filter(&DROP_ALL)?;
    std::future::pending().await
}

/// Returns whether the kernel still waits for acknowledgements of what was sent on this connection.
fn has_unacknowledged(stream: &TcpStream) -> std::io::Result<bool> {
    let ends =
        [stream.local_addr()?, stream.peer_addr()?].map(|end| format!(":{:04X}", end.port()));
    let connections = std::fs::read_to_string("/proc/net/tcp")?;
    let unacknowledged = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, _, queues, ..] = fields.as_slice() else {
            return false;
        };
        local.ends_with(&ends[0]) && remote.ends_with(&ends[1]) && !queues.starts_with("00000000:")
    };
    Ok(connections.lines().any(unacknowledged))
}
