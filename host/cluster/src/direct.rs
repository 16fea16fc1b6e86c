//! This crate's own HTTP/1.1 connections: one for each request in flight, reused for another
//! request once its answer has been read.
//!
//! ```text
//! send -> dress (host, credentials) -> idle link, else new one -> exchange -> Body --end--> idle
//! ```
//! The design is cheap because it has no layers, no queue in front, and **no task per connection**.
//! The task that waits for an answer drives the connection ([`link`]): the request leaves in the
//! first poll, on the caller's thread, and the answer wakes that task and no other. HTTP/2 is not
//! used: a single connection needs a task between every request and the wire, its loss costs every
//! write in flight, and a slowly read watch fills the shared window. Its savings in system calls
//! were not measured.
//!
//! [`Links`] are the connections that were opened with one set of certificates; [`Direct`] adds one
//! set of headers. So a new token closes no connections.
//!
//! This module owns the connections and what drives them. It must not send anything twice that the
//! server may have seen: a request moves to a second link only if the first was found closed before
//! any byte was written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use parking_lot::Mutex;

use crate::credentials::Credentials;
use crate::error::{BoxError, Error};
use crate::proxy::Protocol;

mod body;
mod dial;
mod link;

pub(crate) use body::Body;
pub(crate) use dial::Peer;
use link::{Link, Opener};

/// How long an idle link is kept. Shorter than the idle timeout of API servers and their load
/// balancers, so that a link is seldom found closed.
const IDLE: Duration = Duration::from_secs(45);

/// The header that names the user that a request is sent as.
pub(crate) const IMPERSONATE_USER: &str = "impersonate-user";

/// How that header begins, and those with the user's groups, uid and the rest.
const IMPERSONATE: &str = "impersonate-";

/// The headers that are added to each request; a name may occur more than once.
pub(crate) type Headers = Vec<(HeaderName, HeaderValue)>;

/// Sends requests to one server as one user.
pub(crate) struct Direct {
    /// The value of `Host`.
    host: HeaderValue,
    /// The prefix of each request's path: the path of the server's URL without its last slash,
    /// preceded by scheme and host of the server if a proxy forwards requests.
    base: String,
    headers: Headers,
    links: Arc<Links>,
}

/// Connections to one server that were opened with the same certificates.
pub(crate) struct Links {
    opener: Opener,
    idle: Arc<Pool>,
}

/// Idle links; the most recently used one is last.
#[derive(Default)]
struct Pool(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    links: Vec<(Instant, Link)>,
    /// Whether returned links are closed instead of kept.
    closed: bool,
    /// Whether a task closes old links.
    tended: bool,
}

impl Links {
    /// Opens no connection yet. The error says what is wrong with the certificates.
    pub(crate) fn new(peer: &Peer, credentials: &Credentials) -> Result<Self, BoxError> {
        Ok(Self {
            opener: dial::opener(peer, credentials)?,
            idle: Arc::default(),
        })
    }
}

impl Drop for Links {
    /// Closes the idle links. Links in use close when their answers have been read.
    fn drop(&mut self) {
        let mut idle = self.idle.0.lock();
        idle.closed = true;
        idle.links.clear();
    }
}

impl Direct {
    /// Sends requests over `links`, which were built for the same peer.
    pub(crate) fn new(
        peer: &Peer,
        mut headers: Headers,
        links: Arc<Links>,
    ) -> Result<Self, BoxError> {
        let server = &peer.server;
        let authority = server.authority().ok_or("the server's URL has no host")?;
        let host = authority.as_str();
        let mut base = server.path().trim_end_matches('/').to_owned();
        if let Some(proxy) = peer.proxy.as_ref().filter(|proxy| proxy.forwards(server)) {
            base = format!("http://{host}{base}");
            if let Protocol::Http(Some(value)) = &proxy.protocol {
                headers.push((header::PROXY_AUTHORIZATION, value.clone()));
            }
        }
        Ok(Self {
            host: HeaderValue::from_str(host)?,
            base,
            headers,
            links,
        })
    }

    /// Sends a request once.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let mut request = self.dress(request).map_err(Error::NotSent)?;
        loop {
            let (mut link, fresh) = match self.links.idle.take() {
                Some(link) => (link, false),
                None => ((self.links.opener)().await.map_err(Error::NotSent)?, true),
            };
            match link.exchange(request).await {
                Ok(answer) => {
                    let idle = self.links.idle.clone();
                    return Ok(answer.map(|incoming| Body::new(incoming, link, idle)));
                }
                Err(mut failed) => match failed.take_message() {
                    // The server had closed the link: nothing of the request was written.
                    Some(unsent) if !fresh => request = unsent,
                    Some(_) => return Err(Error::NotSent(failed.into_error().into())),
                    None => {
                        self.links.idle.clear();
                        return Err(Error::Network(failed.into_error().into()));
                    }
                },
            }
        }
    }

    /// Adds the headers and the path prefix of every request to this server.
    fn dress(&self, request: Request<Bytes>) -> Result<Request<Full<Bytes>>, BoxError> {
        let (mut head, body) = request.into_parts();
        head.headers.insert(header::HOST, self.host.clone());
        // A write that is sent as another user must not get the groups of the user that the
        // kubeconfig impersonates.
        let has_user = head.headers.contains_key(IMPERSONATE_USER);
        let is_user = |name: &HeaderName| name.as_str().starts_with(IMPERSONATE);
        let own = self
            .headers
            .iter()
            .filter(|(name, _)| !(has_user && is_user(name)));
        head.headers.extend(own.cloned());
        if !self.base.is_empty() {
            let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
            head.uri = Uri::try_from([self.base.as_str(), path].concat())?;
        }
        Ok(Request::from_parts(head, Full::new(body)))
    }
}

impl Pool {
    /// Takes the most recently used link, so that the others age and close.
    fn take(&self) -> Option<Link> {
        let mut idle = self.0.lock();
        let (since, link) = idle.links.pop()?;
        if since.elapsed() < IDLE {
            return Some(link);
        }
        // The other links are even older.
        idle.links.clear();
        None
    }

    /// Keeps a link for the next request.
    fn keep(self: &Arc<Self>, link: Link) {
        let mut idle = self.0.lock();
        if idle.closed {
            return;
        }
        idle.links.push((Instant::now(), link));
        if !idle.tended {
            idle.tended = true;
            tokio::spawn(tend(self.clone()));
        }
    }

    /// Closes the idle links. A link in use broke, so the idle ones may be dead too: each would
    /// delay a request until the kernel gives up.
    fn clear(&self) {
        self.0.lock().links.clear();
    }
}

impl Idle {
    /// Closes links that were idle too long. Returns whether links are left.
    fn close_old(&mut self) -> bool {
        self.links.retain(|(since, _)| since.elapsed() < IDLE);
        self.tended = !self.links.is_empty();
        if !self.tended {
            self.links = Vec::new();
        }
        self.tended
    }
}

/// Closes old links of a pool until the pool is empty.
async fn tend(pool: Arc<Pool>) {
    loop {
        tokio::time::sleep(IDLE).await;
        if !pool.0.lock().close_old() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
