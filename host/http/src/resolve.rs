//! From a host's name to the addresses that may be connected to. A name is resolved once for a
//! connection, and only addresses that pass go on: an answer that changes afterwards changes
//! nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::Semaphore;
use tower::Service;

use crate::address::{Reach, is_same, reach};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Finds the addresses of a name.
pub(crate) trait Resolve: Send + Sync {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the machine.
pub(crate) struct System;

impl Resolve for System {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// How many names of a plugin are looked up at once.
const LOOKUPS: usize = 4;

/// The resolver of one plugin. The machine's takes a thread for each name until there is an answer,
/// even if nobody waits for it any more; these threads are shared with everything else.
pub(crate) struct Few {
    inner: Arc<dyn Resolve>,
    places: Arc<Semaphore>,
}

impl Few {
    pub(crate) fn new(inner: Arc<dyn Resolve>) -> Self {
        let places = Arc::new(Semaphore::new(LOOKUPS));
        Self { inner, places }
    }
}

impl Resolve for Few {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let (inner, places) = (self.inner.clone(), self.places.clone());
        Box::pin(async move {
            let place = places.acquire_owned().await.map_err(io::Error::other)?;
            // A task of its own, which keeps the place when nobody waits any more.
            let looking = tokio::spawn(async move {
                let _place = place;
                inner.resolve(name).await
            });
            looking.await.map_err(io::Error::other)?
        })
    }
}

/// Why no address of a host may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{host} is {address}, {what}: {advice}")]
pub(crate) struct Forbidden {
    host: String,
    address: IpAddr,
    what: &'static str,
    advice: &'static str,
}

/// What a plugin needs to reach a private address.
const BY_NAME: &str = "a grant with allowPrivate and --allow-http must both name this host";

/// What is never reached.
const NEVER: &str = "no service has such an address";

/// The names of the API server within a cluster, and how longer ones begin: they end with the
/// domain of the cluster.
const API_SERVER: [&str; 3] = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
const API_SERVER_IN: &str = "kubernetes.default.svc.";

/// The resolver, and what it must not lead to.
pub(crate) struct Guard {
    pub(crate) resolver: Arc<dyn Resolve>,
    /// The API server's name or address, without its port.
    pub(crate) api_server: Option<String>,
}

impl Guard {
    /// Returns whether a host is the API server by its name or address. No name is resolved.
    pub(crate) fn is_api_server(&self, host: &str) -> bool {
        let is_own = self.api_server.as_deref().is_some_and(|own| {
            match (own.parse::<IpAddr>(), host.parse::<IpAddr>()) {
                (Ok(own), Ok(address)) => is_same(own, address),
                _ => own.eq_ignore_ascii_case(host),
            }
        });
        is_own || API_SERVER.contains(&host) || host.starts_with(API_SERVER_IN)
    }

    /// Returns those addresses of a host that may be connected to. With `private`, also those of
    /// this machine, of this network and of the cluster.
    pub(crate) async fn addresses(
        &self,
        host: &str,
        private: bool,
    ) -> Result<Vec<IpAddr>, BoxError> {
        let found = match host.parse() {
            Ok(address) => vec![address],
            Err(_) => self.resolver.resolve(host.to_owned()).await?,
        };
        let api_server = match private {
            true => Vec::new(),
            false => self.api_server().await,
        };
        let mut passed = Vec::new();
        let mut forbidden = None;
        for address in found {
            match judge(address, private, &api_server) {
                None => passed.push(address),
                Some((what, advice)) => {
                    forbidden = Some(Forbidden {
                        host: host.to_owned(),
                        address,
                        what,
                        advice,
                    });
                }
            }
        }
        match forbidden {
            Some(forbidden) if passed.is_empty() => Err(forbidden.into()),
            _ if passed.is_empty() => Err(format!("{host} has no address").into()),
            _ => Ok(passed),
        }
    }

    /// The API server's addresses. It may be on the internet, where only its address tells it from
    /// others.
    async fn api_server(&self) -> Vec<IpAddr> {
        let Some(host) = &self.api_server else {
            return Vec::new();
        };
        match host.parse() {
            Ok(address) => vec![address],
            Err(_) => self
                .resolver
                .resolve(host.clone())
                .await
                .unwrap_or_default(),
        }
    }
}

/// Returns why an address may not be connected to, and what to do about it.
fn judge(
    address: IpAddr,
    private: bool,
    api_server: &[IpAddr],
) -> Option<(&'static str, &'static str)> {
    match reach(address) {
        Reach::Never(what) => Some((what, NEVER)),
        Reach::Private(what) if !private => Some((what, BY_NAME)),
        _ if api_server.iter().any(|of| is_same(*of, address)) => Some(("the API server", BY_NAME)),
        Reach::Private(_) | Reach::Public => None,
    }
}

/// The resolver of a pool of connections.
#[derive(Clone)]
pub(crate) struct Checked {
    pub(crate) guard: Arc<Guard>,
    pub(crate) private: bool,
}

impl Service<Name> for Checked {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (guard, private) = (self.guard.clone(), self.private);
        Box::pin(async move {
            let found = guard.addresses(name.as_str(), private).await?;
            // The connector sets the port of the URL.
            let found: Vec<SocketAddr> = found.into_iter().map(|ip| (ip, 0).into()).collect();
            Ok(found.into_iter())
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::VecDeque;

    use parking_lot::Mutex;

    use super::*;

    /// A resolver with answers to give one after the other; the last one stays.
    pub(crate) struct Scripted(Mutex<VecDeque<Vec<IpAddr>>>, Mutex<u32>);

    impl Scripted {
        pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
            let parse = |answer: &&[&str]| -> Vec<IpAddr> {
                answer.iter().map(|ip| ip.parse().unwrap()).collect()
            };
            Arc::new(Self(
                Mutex::new(answers.iter().map(parse).collect()),
                Mutex::default(),
            ))
        }

        /// Number of questions so far.
        pub(crate) fn asked(&self) -> u32 {
            *self.1.lock()
        }
    }

    impl Resolve for Scripted {
        fn resolve(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            *self.1.lock() += 1;
            let mut answers = self.0.lock();
            let answer = match answers.len() {
                0 | 1 => answers.front().cloned().unwrap_or_default(),
                _ => answers.pop_front().unwrap_or_default(),
            };
            Box::pin(async move { Ok(answer) })
        }
    }

    /// A resolver that never answers, and counts the questions.
    #[derive(Default)]
    pub(crate) struct Mute(Mutex<usize>);

    impl Resolve for Mute {
        fn resolve(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            *self.0.lock() += 1;
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lookups_that_are_given_up_do_not_pile_up() {
        let mute = Arc::new(Mute::default());
        let few = Few::new(mute.clone());
        for _ in 0..2 * LOOKUPS {
            let looking = few.resolve("a.com".to_owned());
            let soon = std::time::Duration::from_millis(1);
            assert!(tokio::time::timeout(soon, looking).await.is_err());
        }
        assert_eq!(*mute.0.lock(), LOOKUPS);
    }

    #[test]
    fn the_api_server_is_known_by_its_names() {
        let guard = |own: &str| Guard {
            resolver: Scripted::new(&[]),
            api_server: Some(own.to_owned()),
        };
        for (own, host, expected) in [
            ("1.2.3.4", "1.2.3.4", true),
            ("1.2.3.4", "::ffff:1.2.3.4", true),
            ("1.2.3.4", "1.2.3.5", false),
            ("api.Example.com", "api.example.com", true),
            ("1.2.3.4", "kubernetes.default", true),
            ("1.2.3.4", "kubernetes.default.svc.cluster.local", true),
            ("1.2.3.4", "kubernetes.default.svc", true),
            ("1.2.3.4", "kubernetes.example.com", false),
            ("1.2.3.4", "shop.default.svc", false),
        ] {
            assert_eq!(guard(own).is_api_server(host), expected, "{own} {host}");
        }
    }

    async fn passed(answer: &[&str], api: Option<&str>, private: bool) -> Result<usize, String> {
        let guard = Guard {
            resolver: Scripted::new(&[answer]),
            api_server: api.map(str::to_owned),
        };
        let found = guard.addresses("a.com", private).await;
        found
            .map(|found| found.len())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn only_what_passes_is_connected_to() {
        assert_eq!(passed(&["1.1.1.1", "10.0.0.1"], None, false).await, Ok(1));
        assert_eq!(passed(&["1.1.1.1", "10.0.0.1"], None, true).await, Ok(2));
        let error = passed(&["169.254.169.254"], None, false).await.unwrap_err();
        assert_eq!(
            error,
            "a.com is 169.254.169.254, a link-local address: a grant with allowPrivate and --allow-http must both name this host"
        );
        let never = passed(&["0.0.0.0"], None, true).await.unwrap_err();
        assert!(never.contains("no service has such an address"), "{never}");
        let none = passed(&[], None, false).await.unwrap_err();
        assert_eq!(none, "a.com has no address");
    }

    #[tokio::test]
    async fn an_answer_that_changes_is_checked_again_before_it_counts() {
        let guard = Guard {
            resolver: Scripted::new(&[&["1.1.1.1"], &["127.0.0.1"]]),
            api_server: None,
        };
        let first = guard.addresses("a.com", false).await.unwrap();
        assert_eq!(first, ["1.1.1.1".parse::<IpAddr>().unwrap()]);
        let second = guard.addresses("a.com", false).await.unwrap_err();
        assert!(second.is::<Forbidden>(), "{second}");
    }

    #[tokio::test]
    async fn the_api_server_is_no_service() {
        let error = passed(&["1.2.3.4"], Some("1.2.3.4"), false).await;
        assert!(error.unwrap_err().contains("the API server"));
        assert_eq!(passed(&["1.2.3.4"], Some("1.2.3.4"), true).await, Ok(1));
        // Another form of the address leads there too.
        for form in ["::ffff:1.2.3.4", "64:ff9b::102:304"] {
            let error = passed(&[form], Some("1.2.3.4"), false).await;
            assert!(error.unwrap_err().contains("the API server"), "{form}");
        }
        // Its name leads to the same address.
        let error = passed(&["1.2.3.4"], Some("api.example.com"), false).await;
        assert!(error.unwrap_err().contains("the API server"));
        assert_eq!(passed(&["1.2.3.5"], Some("1.2.3.4"), false).await, Ok(1));
    }
}
