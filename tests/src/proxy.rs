//! A fault proxy: plain HTTP on loopback in front of a test server.
//!
//! It forwards everything as the kubeconfig's user, streams watches without buffering, and records
//! each request in order of arrival. On demand it refuses requests with a given Status, carries a
//! write out and drops its answer, holds requests until released, cuts watches, silences them, or
//! refuses connections.

mod body;
mod forward;
mod request;
mod rule;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use kube::Client;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::request::Request;
use self::rule::{Action, Rule};
pub use self::rule::{Hold, Refusal};
use crate::wait::DEADLINE;
use crate::{kubeconfig, net};

/// A running proxy. Dropping the value stops it.
pub struct Proxy {
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
    addr: SocketAddr,
    accepting: JoinHandle<()>,
    _dir: TempDir,
}

/// The state that the connections of one proxy share.
struct Shared {
    upstream: Client,
    rules: Mutex<Vec<Rule>>,
    /// Requests in order of arrival. A watch channel, so that tests wait for a request instead of
    /// polling for it.
    requests: watch::Sender<Recorded>,
    /// A counter of cuts: a watch that began before the newest cut ends.
    watch_cut: watch::Sender<u64>,
    /// The same for watches that are silenced.
    watch_swallowed: watch::Sender<u64>,
    /// The same for whole connections.
    connection_cut: watch::Sender<u64>,
    refusing: watch::Sender<bool>,
}

/// Requests in order of arrival. Each is identified by its `began`, so that dropping some does not
/// mix up the answers of others.
#[derive(Default)]
struct Recorded {
    /// Counts starts and ends.
    next: usize,
    all: Vec<Request>,
}

impl Recorded {
    fn tick(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn matching(&self, matching: impl Fn(&Request) -> bool) -> impl Iterator<Item = &Request> {
        self.all.iter().filter(move |request| matching(request))
    }
}

impl Shared {
    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Listens on a free port and forwards to the server of `upstream`, with that file's
    /// credentials.
    pub async fn start(upstream: &Path) -> Result<Proxy> {
        // Not one that the kernel may give to another socket while the proxy refuses connections.
        let listener = net::listener()?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener).context("binding the proxy")?;
        let addr = listener
            .local_addr()
            .context("reading the proxy's address")?;
        let dir = tempfile::tempdir().context("making a folder")?;
        let kubeconfig = dir.path().join("proxy.kubeconfig");
        std::fs::write(
            &kubeconfig,
            kubeconfig::text(&format!("http://{addr}"), None, "through-proxy", None),
        )
        .context("writing the proxy's kubeconfig")?;
        let shared = Arc::new(Shared {
            upstream: kubeconfig::client(upstream).await?,
            rules: Mutex::default(),
            requests: watch::Sender::default(),
            watch_cut: watch::Sender::default(),
            watch_swallowed: watch::Sender::default(),
            connection_cut: watch::Sender::default(),
            refusing: watch::Sender::new(false),
        });
        let accepting = tokio::spawn(forward::accept(listener, addr, shared.clone()));
        Ok(Proxy {
            shared,
            kubeconfig,
            addr,
            accepting,
            _dir: dir,
        })
    }

    /// Returns a kubeconfig that points at the proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the address of the socket.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns all requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.requests_where(|_| true)
    }

    /// Returns the requests so far that match.
    pub fn requests_where(&self, matching: impl Fn(&Request) -> bool) -> Vec<Request> {
        self.shared
            .requests
            .borrow()
            .matching(matching)
            .cloned()
            .collect()
    }

    /// Returns the pairs of matching requests on one path that were in progress at the same time.
    pub fn overlaps(&self, matching: impl Fn(&Request) -> bool) -> Vec<(Request, Request)> {
        let requests = self.requests_where(matching);
        let mut pairs = Vec::new();
        for (at, first) in requests.iter().enumerate() {
            for second in &requests[at + 1..] {
                if first.path == second.path && first.ended > second.began {
                    pairs.push((first.clone(), second.clone()));
                }
            }
        }
        pairs
    }

    /// Returns whether the client gave the first matching request up before it had an answer. The
    /// host does that with a write after 4 s, which other work on the machine may use up.
    pub fn was_given_up(&self, matching: impl Fn(&Request) -> bool) -> bool {
        let requests = self.shared.requests.borrow();
        let first = requests.matching(matching).next();
        first.is_some_and(|request| request.answered.is_none())
    }

    /// Drops the recorded requests.
    pub fn forget_requests(&self) {
        self.shared
            .requests
            .send_modify(|requests| requests.all.clear());
    }

    /// Waits until `n` recorded requests match.
    pub async fn wait_for(&self, n: usize, matching: impl Fn(&Request) -> bool) -> Result<()> {
        let mut requests = self.shared.requests.subscribe();
        let enough = requests.wait_for(|recorded| recorded.matching(&matching).count() >= n);
        match tokio::time::timeout(DEADLINE, enough).await {
            Ok(seen) => seen.map(drop).context("the proxy ended"),
            Err(_) => {
                let seen = self.requests_where(matching).len();
                anyhow::bail!(
                    "the proxy saw {seen} matching requests and not {n} within {DEADLINE:?}"
                )
            }
        }
    }

    /// Answers the next `times` matching requests itself, without the server.
    pub fn refuse(
        &self,
        times: usize,
        refusal: Refusal,
        matching: impl Fn(&Request) -> bool + Send + 'static,
    ) {
        self.add(times, Action::Refuse(refusal), matching);
    }

    /// Forwards the next `times` matching requests, and breaks the connection instead of answering.
    pub fn lose_answers(&self, times: usize, matching: impl Fn(&Request) -> bool + Send + 'static) {
        self.add(times, Action::LoseAnswer, matching);
    }

    /// Holds every matching request, before the server gets it, until the [`Hold`] is released or
    /// dropped.
    pub fn hold(&self, matching: impl Fn(&Request) -> bool + Send + 'static) -> Hold {
        let (hold, gate) = rule::gate();
        self.add(usize::MAX, Action::Hold(gate), matching);
        hold
    }

    /// Passes the bodies of matching answers through `change`. Not for watches, because it reads
    /// the whole body first.
    pub fn rewrite(
        &self,
        change: impl Fn(&str) -> String + Send + Sync + 'static,
        matching: impl Fn(&Request) -> bool + Send + 'static,
    ) {
        self.add(usize::MAX, Action::Rewrite(Arc::new(change)), matching);
    }

    /// Refuses streaming lists (`sendInitialEvents`) like an API server that does not support them:
    /// with 400, or with 422 like newer ones.
    pub fn deny_streaming_lists(&self, code: u16) {
        let refusal = Refusal::new(
            code,
            if code == 422 { "Invalid" } else { "BadRequest" },
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
        );
        self.refuse(usize::MAX, refusal, |request| {
            request.param("sendInitialEvents") == Some("true")
        });
    }

    /// Drops all rules; held requests continue.
    pub fn clear(&self) {
        self.shared.rules().clear();
    }

    /// Breaks all current watches in the middle of their streams.
    pub fn cut_watches(&self) {
        self.shared.watch_cut.send_modify(|count| *count += 1);
    }

    /// Silences the current watches: they stay open, but deliver nothing more, like a connection
    /// that vanished without notice. New watches work.
    pub fn swallow_watches(&self) {
        self.shared.watch_swallowed.send_modify(|count| *count += 1);
    }

    /// Breaks all connections, and refuses new ones until called with `false`.
    pub fn refuse_connections(&self, refuse: bool) {
        self.shared.refusing.send_replace(refuse);
        if refuse {
            self.shared.connection_cut.send_modify(|count| *count += 1);
        }
    }

    fn add(
        &self,
        times: usize,
        action: Action,
        matching: impl Fn(&Request) -> bool + Send + 'static,
    ) {
        self.shared.rules().push(Rule {
            left: times,
            action,
            matching: Box::new(matching),
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.connection_cut.send_modify(|count| *count += 1);
        let lines: Vec<String> = self.requests().iter().map(ToString::to_string).collect();
        crate::report::attach(
            "last requests through the proxy",
            crate::report::tail(&lines.join("\n"), 40),
        );
    }
}
