//! HTTP/1.1 connections of this crate's own: for every request in flight one, kept for the next when its answer has been read.
//!
//! ```text
//! send --> dress (host, credentials) --> an idle link, else a new one --> exchange --> Body --its end--> idle
//! ```
//! What makes it cheap is what is not there: no layers, no queue in front, and **no task of a connection's own**. Whoever waits for an answer drives the
//! connection that it comes on ([`link`]): the request leaves in the first poll, on the thread that asks, and the answer wakes that task and no other.
//! Not HTTP/2: one connection for all needs a task between every request and the wire, its loss costs every write in flight, and a watch that is read slowly
//! fills the window of all. What it would save in system calls was not measured.
//!
//! [`Links`] are the connections that were opened with one set of certificates; [`Direct`] adds one
//! set of headers. So a new token does not close connections.
//!
//! It owns connections and who pays for them. It must not send anything twice that the server may have seen: a request goes to a second link only if the first was
//! found closed before a byte of it was written.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;

use crate::api::{BoxError, CallError};
use crate::credentials::Credentials;
use crate::proxy::Protocol;

mod body;
mod dial;
mod link;

pub(crate) use body::Body;
pub(crate) use dial::Peer;
use link::{Link, Opener};

/// How long an idle link is kept. Less than API servers and what stands in front of them do, so that it is seldom found closed.
const IDLE: Duration = Duration::from_secs(45);

/// The headers that are added to each request; a name may occur more than once.
pub(crate) type Headers = Vec<(HeaderName, HeaderValue)>;

/// Sends requests to one server as one user.
pub(crate) struct Direct {
    /// The value of `Host`.
    host: HeaderValue,
    /// What stands before each request's path: the path of the server's URL, without its last
    /// slash, and before that, if a proxy forwards requests, scheme and host of the server.
    base: String,
    headers: Headers,
    links: Arc<Links>,
}

/// Connections to one server that were opened with the same certificates.
pub(crate) struct Links {
    opener: Opener,
    idle: Arc<Pool>,
}

/// Links that wait for a request, the one that was used last at the end.
#[derive(Default)]
struct Pool(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    links: Vec<(Instant, Link)>,
    /// No more links are kept.
    closed: bool,
    /// Does a task look after them?
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
    /// Closes the idle links. Those in use close when their answers have been read.
    fn drop(&mut self) {
        let mut idle = self.idle.lock();
        idle.closed = true;
        idle.links.clear();
    }
}

impl Direct {
    /// Sends requests over `links`, which were made for the same peer.
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
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, CallError> {
        let mut request = self.dress(request).map_err(CallError::NotSent)?;
        loop {
            let (mut link, fresh) = match self.links.idle.take() {
                Some(link) => (link, false),
                None => (
                    (self.links.opener)().await.map_err(CallError::NotSent)?,
                    true,
                ),
            };
            match link.exchange(request).await {
                Ok(answer) => {
                    let idle = self.links.idle.clone();
                    return Ok(answer.map(|incoming| Body::new(incoming, link, idle)));
                }
                Err(mut failed) => match failed.take_message() {
                    // The server had closed it: nothing of the request was written.
                    Some(unsent) if !fresh => request = unsent,
                    Some(_) => return Err(CallError::NotSent(failed.into_error().into())),
                    None => {
                        self.links.idle.clear();
                        return Err(CallError::Network(failed.into_error().into()));
                    }
                },
            }
        }
    }

    /// Adds what every request to this server carries.
    fn dress(&self, request: Request<Bytes>) -> Result<Request<Full<Bytes>>, BoxError> {
        let (mut head, body) = request.into_parts();
        head.headers.insert(header::HOST, self.host.clone());
        head.headers.extend(self.headers.iter().cloned());
        if !self.base.is_empty() {
            let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
            head.uri = Uri::try_from([self.base.as_str(), path].concat())?;
        }
        Ok(Request::from_parts(head, Full::new(body)))
    }
}

impl Pool {
    /// The link that was used last: the others grow old and go.
    fn take(&self) -> Option<Link> {
        let mut idle = self.lock();
        let (since, link) = idle.links.pop()?;
        if since.elapsed() < IDLE {
            return Some(link);
        }
        // The others are older still.
        idle.links.clear();
        None
    }

    /// Keeps a link for the next request.
    fn keep(self: &Arc<Self>, link: Link) {
        let mut idle = self.lock();
        if idle.closed {
            return;
        }
        idle.links.push((Instant::now(), link));
        if !idle.tended {
            idle.tended = true;
            tokio::spawn(tend(self.clone()));
        }
    }

    /// Closes the idle links. One in use broke, so that these may lead nowhere too: each would hold
    /// up a request until the kernel gives it up.
    fn clear(&self) {
        self.lock().links.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idle {
    /// Closes links that nobody used for a while. Says whether there are others to look after.
    fn close_old(&mut self) -> bool {
        self.links.retain(|(since, _)| since.elapsed() < IDLE);
        self.tended = !self.links.is_empty();
        if !self.tended {
            self.links = Vec::new();
        }
        self.tended
    }
}

/// Looks after a pool until it is empty.
async fn tend(pool: Arc<Pool>) {
    loop {
        tokio::time::sleep(IDLE).await;
        if !pool.lock().close_old() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
