//! A TCP balancer in front of several hosts, as a Service is: each new connection goes to the next
//! host that is ready.
//!
//! Owns connections and which hosts are ready. Must not know what is sent. Unlike a Service, it
//! tries the next host where a connection is refused: what a benchmark counts is what a host loses
//! when it is killed, and not how fast a cluster notices.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::net;
use crate::wait::eventually;

/// Pause between two looks at `/readyz` of all hosts, and how long one may take. A kubelet looks
/// less often, but takes a Pod that is being deleted for not ready at once.
const PERIOD: Duration = Duration::from_millis(250);

/// A running balancer. Dropping the value stops it; connections stay as they are.
pub struct Balancer {
    addr: SocketAddr,
    hosts: Hosts,
    tasks: [JoinHandle<()>; 2],
}

/// The hosts, by the addresses that they serve.
#[derive(Clone, Default)]
struct Hosts(Arc<Mutex<BTreeMap<SocketAddr, Probed>>>);

#[derive(Clone, Copy)]
struct Probed {
    probes: SocketAddr,
    ready: bool,
}

impl Balancer {
    /// Listens on a free loopback port.
    pub async fn start() -> Result<Balancer> {
        let listener = TcpListener::bind(net::loopback(0)).await;
        let listener = listener.context("binding the balancer")?;
        let addr = listener.local_addr().context("reading its address")?;
        let hosts = Hosts::default();
        let tasks = [
            tokio::spawn(accept(listener, hosts.clone())),
            tokio::spawn(probe(hosts.clone())),
        ];
        Ok(Balancer { addr, hosts, tasks })
    }

    /// Returns the address of the socket.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Adds a host that serves at `serves`, or replaces the one that served there. It gets
    /// connections once `/readyz` at `probes` has answered 200.
    pub fn put(&self, serves: SocketAddr, probes: SocketAddr) {
        let ready = false;
        self.hosts.all().insert(serves, Probed { probes, ready });
    }

    /// Waits until this host gets connections, or no longer does.
    pub async fn until(&self, serves: SocketAddr, ready: bool) -> Result<()> {
        eventually(&format!("{serves} is ready: {ready}"), async || {
            let host = self.hosts.all().get(&serves).copied();
            Ok(host.is_some_and(|host| host.ready == ready).then_some(()))
        })
        .await
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Hosts {
    fn all(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Probed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the hosts that are ready, in another order each turn.
    fn in_turn(&self, turn: usize) -> Vec<SocketAddr> {
        let all = self.all();
        let ready = all.iter().filter(|(_, host)| host.ready);
        let mut ready: Vec<SocketAddr> = ready.map(|(serves, _)| *serves).collect();
        if !ready.is_empty() {
            let first = turn % ready.len();
            ready.rotate_left(first);
        }
        ready
    }

    fn note(&self, serves: SocketAddr, probes: SocketAddr, ready: bool) {
        let mut all = self.all();
        // Another host may serve there by now.
        let host = all.get_mut(&serves).filter(|host| host.probes == probes);
        if let Some(host) = host {
            host.ready = ready;
        }
    }
}

async fn accept(listener: TcpListener, hosts: Hosts) {
    let mut turn = 0;
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(pass(stream, hosts.in_turn(turn)));
        turn += 1;
    }
}

/// Connects to the first host that accepts, and forwards all bytes in both directions.
async fn pass(mut client: TcpStream, hosts: Vec<SocketAddr>) -> std::io::Result<()> {
    let _ = client.set_nodelay(true);
    for host in hosts {
        let Ok(mut server) = TcpStream::connect(host).await else {
            continue;
        };
        let _ = server.set_nodelay(true);
        let passed = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        return passed.map(drop);
    }
    Ok(())
}

async fn probe(hosts: Hosts) {
    loop {
        let all: Vec<(SocketAddr, Probed)> = {
            let all = hosts.all();
            all.iter().map(|(serves, host)| (*serves, *host)).collect()
        };
        for (serves, Probed { probes, .. }) in all {
            let answer = tokio::time::timeout(PERIOD, net::get(probes, "/readyz")).await;
            hosts.note(serves, probes, matches!(answer, Ok(Ok((200, _)))));
        }
        tokio::time::sleep(PERIOD).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Accepts connections, and greets each with this text. Returns the address.
    async fn greeting(text: &'static str) -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind(net::loopback(0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(text.as_bytes()).await.unwrap();
                // The request is read, else its end would be a reset.
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
            }
        });
        (addr, task)
    }

    /// Returns the text with which a new connection is greeted.
    async fn greeted(balancer: &Balancer) -> String {
        let mut stream = TcpStream::connect(balancer.addr()).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn a_host_that_is_not_ready_gets_no_connection() {
        let (ready, _ready) = greeting("HTTP/1.0 200 OK\r\n\r\n").await;
        let (unready, _unready) = greeting("HTTP/1.0 500 Internal\r\n\r\n").await;
        let (one, _one) = greeting("one").await;
        let (two, two_runs) = greeting("two").await;
        let balancer = Balancer::start().await.unwrap();
        balancer.put(one, ready);
        balancer.put(two, ready);
        for host in [one, two] {
            balancer.until(host, true).await.unwrap();
        }
        let mut both = [greeted(&balancer).await, greeted(&balancer).await];
        both.sort();
        assert_eq!(both, ["one", "two"]);
        balancer.put(one, unready);
        for _ in 0..3 {
            assert_eq!(greeted(&balancer).await, "two");
        }
        balancer.put(one, ready);
        balancer.until(one, true).await.unwrap();
        // Refused connections: the next host gets them.
        two_runs.abort();
        let _ = two_runs.await;
        for _ in 0..3 {
            assert_eq!(greeted(&balancer).await, "one");
        }
    }
}
