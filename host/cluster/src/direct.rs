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
//! It owns connections and who pays for them. It must not send anything twice that the server may have seen: a request goes to a second link only if the first was
//! found closed before a byte of it was written.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use hyper_util::client::legacy::connect::HttpConnector;
use tower::Service;

use crate::api::{BoxError, CallError};

mod body;
mod credentials;
mod link;

pub(crate) use body::Body;
pub(crate) use credentials::Credentials;
use link::{Link, Opener};

/// How long an idle link is kept. Less than API servers and what stands in front of them do, so that it is seldom found closed.
const IDLE: Duration = Duration::from_secs(45);

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Direct(Arc<Inner>);

struct Inner {
    /// The server's name, as requests carry it.
    host: HeaderValue,
    /// What stands before each path, without its last slash; mostly nothing.
    base: String,
    credentials: Credentials,
    opener: Opener,
    idle: Arc<Pool>,
}

/// Links that wait for a request, the one that was used last at the end.
#[derive(Default)]
struct Pool(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    links: Vec<(Instant, Link)>,
    /// Does a task look after them?
    tended: bool,
}

impl Direct {
    /// `secure` lays TLS over the connector, as the configuration asks.
    pub(crate) fn new<C, E>(
        server: &Uri,
        credentials: Credentials,
        secure: impl FnOnce(HttpConnector) -> Result<C, E>,
        patience: Option<Duration>,
    ) -> Result<Self, BoxError>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
        C::Error: Into<BoxError> + 'static,
        C::Future: Send + 'static,
        E: Into<BoxError>,
    {
        let authority = server.authority().ok_or("the server's URL has no host")?;
        let host = authority
            .as_str()
            .rsplit_once('@')
            .map_or(authority.as_str(), |(_, host)| host);
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        // A request is one piece: to wait for more would only delay it.
        http.set_nodelay(true);
        let connector = secure(http).map_err(Into::<BoxError>::into)?;
        Ok(Self(Arc::new(Inner {
            host: HeaderValue::from_str(host)?,
            base: server.path().trim_end_matches('/').to_owned(),
            credentials,
            opener: link::opener(connector, server.clone(), patience),
            idle: Arc::default(),
        })))
    }

    /// Sends a request once.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, CallError> {
        let mut request = self.dress(request).await.map_err(CallError::NotSent)?;
        loop {
            let (mut link, fresh) = match self.0.idle.take() {
                Some(link) => (link, false),
                None => ((self.0.opener)().await.map_err(CallError::NotSent)?, true),
            };
            match link.exchange(request).await {
                Ok(answer) => {
                    let idle = self.0.idle.clone();
                    return Ok(answer.map(|incoming| Body::new(incoming, link, idle)));
                }
                Err(mut failed) => match failed.take_message() {
                    // The server had closed it: nothing of the request was written.
                    Some(unsent) if !fresh => request = unsent,
                    Some(_) => return Err(CallError::NotSent(failed.into_error().into())),
                    None => return Err(CallError::Network(failed.into_error().into())),
                },
            }
        }
    }

    /// Adds what every request to this server carries.
    async fn dress(&self, request: Request<Bytes>) -> Result<Request<Full<Bytes>>, BoxError> {
        let (mut head, body) = request.into_parts();
        head.headers.insert(header::HOST, self.0.host.clone());
        self.0.credentials.add_to(&mut head.headers).await?;
        if !self.0.base.is_empty() {
            let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
            head.uri = Uri::try_from([self.0.base.as_str(), path].concat())?;
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
        idle.links.push((Instant::now(), link));
        if !idle.tended {
            idle.tended = true;
            tokio::spawn(tend(self.clone()));
        }
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
