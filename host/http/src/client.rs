//! Sends prepared requests over connections that are kept open. Each plugin has its own, so that
//! no plugin uses a connection that another one was granted.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::sync::OnceCell;
use vmhost_core::{
    HttpCall, HttpError, HttpGrant, HttpResponse, TRACEPARENT, TraceHeaders, chain_line,
};

use crate::allow::Allow;
use crate::prepare::{Prepared, RESPONSE_MAX};
use crate::resolve::{Checked, Few, Forbidden, Guard, System};
use crate::target::Target;
use crate::tls::{self, Authorities};

/// How long a connection is kept without a request: less than most servers and load balancers keep
/// it.
const IDLE: Duration = Duration::from_secs(50);

/// How many idle connections to one server are kept: as many as a plugin has requests in flight.
const IDLE_PER_SERVER: usize = 8;

/// TCP keepalive, so that a server that vanished is noticed.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// How long a request that changes something waits for its connection: less than the time between
/// the closing of the leader's fence, which is asked before, and the next leader's first turn.
const CONNECT: Duration = Duration::from_secs(4);

/// Why headers of a grant are not sent to a public address without TLS.
const EXPOSED: &str = "without TLS, anybody on the way would read the headers that the host adds; use https, or name this host with --allow-http";

type Pool = legacy::Client<HttpsConnector<HttpConnector<Checked>>, Full<Bytes>>;

/// What all plugins share: the operator's flags, the authorities, the API server's address.
pub struct Outside {
    flags: Vec<Allow>,
    authorities: Authorities,
    guard: Guard,
    tls: OnceCell<Arc<ClientConfig>>,
}

/// Sends the requests of one plugin.
pub struct Client {
    outside: Arc<Outside>,
    guard: Arc<Guard>,
    plugin: String,
    /// To public addresses only, and to all.
    pools: [OnceCell<Pool>; 2],
}

impl Outside {
    /// `api_server` is the API server's name or address, to which no plugin connects unless it is
    /// named.
    pub fn new(
        flags: Vec<Allow>,
        authorities: Authorities,
        api_server: Option<String>,
    ) -> Arc<Self> {
        let guard = Guard {
            resolver: Arc::new(System),
            api_server,
        };
        Self::guarded(flags, authorities, guard)
    }

    fn guarded(flags: Vec<Allow>, authorities: Authorities, guard: Guard) -> Arc<Self> {
        Arc::new(Self {
            flags,
            authorities,
            guard,
            tls: OnceCell::new(),
        })
    }

    /// The settings of TLS, read when the first plugin needs them.
    async fn tls(&self) -> Result<Arc<ClientConfig>, HttpError> {
        self.tls.get_or_try_init(|| self.read_tls()).await.cloned()
    }

    async fn read_tls(&self) -> Result<Arc<ClientConfig>, HttpError> {
        let failed = |text: String| HttpError::NotSent(format!("TLS cannot be set up: {text}"));
        let added = self.authorities.clone();
        match tokio::task::spawn_blocking(move || tls::config(&added)).await {
            Ok(Ok(config)) => Ok(Arc::new(config)),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl Client {
    /// The client of a plugin. Its connections live on the runtime that [`Client::send`] runs on.
    pub fn new(outside: Arc<Outside>, plugin: &str) -> Self {
        let guard = Guard {
            resolver: Arc::new(Few::new(outside.guard.resolver.clone())),
            api_server: outside.guard.api_server.clone(),
        };
        Self {
            outside,
            guard: Arc::new(guard),
            plugin: plugin.to_owned(),
            pools: [OnceCell::new(), OnceCell::new()],
        }
    }

    /// Checks a request against the grants and the operator's flags. Sends nothing.
    pub fn prepare(&self, grants: &[HttpGrant], call: &HttpCall) -> Result<Prepared, HttpError> {
        Prepared::new(&self.plugin, grants, &self.outside.flags, call)
    }

    /// Adds the headers that tell the server which trace the request belongs to, unless the server
    /// is the API server of the cluster, or the policy names a trace of its own.
    pub fn tell_trace(&self, prepared: &mut Prepared, trace: &TraceHeaders) {
        let Prepared {
            target, headers, ..
        } = prepared;
        if headers.contains_key(TRACEPARENT) || self.guard.is_api_server(&target.host) {
            return;
        }
        for (name, text) in trace.pairs() {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        }
    }

    /// Sends a request once, and waits as long as this for the whole response.
    pub async fn send(
        &self,
        prepared: Prepared,
        left: Duration,
    ) -> Result<HttpResponse, HttpError> {
        let Prepared {
            target,
            method,
            headers,
            body,
            private,
            exposed,
            added: _,
        } = prepared;
        let Target {
            uri, host, address, ..
        } = target;
        let early = match method {
            Method::GET | Method::HEAD => left,
            _ => left.min(CONNECT),
        };
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let connection = capture_connection(&mut request);
        let exchange = async {
            if address.is_some() || exposed {
                // Of an address, no name is resolved, so that the pool's resolver is not asked.
                let allowed = self.guard.addresses(&host, private).await;
                allowed.map_err(|error| unconnected(error.as_ref()))?;
            }
            if exposed {
                return Err(HttpError::Denied(format!("{host}: {EXPOSED}")));
            }
            let pool = self.pool(private).await?;
            match pool.request(request).await {
                Ok(response) => whole(response).await,
                Err(error) if error.is_connect() => Err(unconnected(&error)),
                Err(error) => Err(HttpError::NoAnswer(chain_line(&error))),
            }
        };
        let mut exchange = pin!(exchange);
        let mut answer = tokio::time::timeout(early, exchange.as_mut()).await;
        let is_connected = connection.connection_metadata().is_some();
        if answer.is_err() && is_connected && early < left {
            answer = tokio::time::timeout(left - early, exchange).await;
        }
        match answer {
            Ok(answer) => answer,
            Err(_) if !is_connected => Err(HttpError::NotSent(
                "no connection came about in time".to_owned(),
            )),
            Err(_) => Err(HttpError::NoAnswer(
                "the answer did not come in time".to_owned(),
            )),
        }
    }

    async fn pool(&self, private: bool) -> Result<&Pool, HttpError> {
        let [public, all] = &self.pools;
        let pool = if private { all } else { public };
        pool.get_or_try_init(|| self.new_pool(private)).await
    }

    async fn new_pool(&self, private: bool) -> Result<Pool, HttpError> {
        let mut tcp = HttpConnector::new_with_resolver(Checked {
            guard: self.guard.clone(),
            private,
        });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        let connector = HttpsConnector::from((tcp, self.outside.tls().await?));
        Ok(legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_SERVER)
            .pool_timer(TokioTimer::new())
            .build(connector))
    }
}

/// The error of a connection that did not come about: nothing was sent.
fn unconnected(error: &(dyn std::error::Error + 'static)) -> HttpError {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(forbidden) = error.downcast_ref::<Forbidden>() {
            return HttpError::Denied(forbidden.to_string());
        }
        next = error.source();
    }
    HttpError::NotSent(chain_line(error))
}

/// Reads the whole response, unless it is too large.
async fn whole(response: Response<Incoming>) -> Result<HttpResponse, HttpError> {
    let (head, body) = response.into_parts();
    let body = match Limited::new(body, RESPONSE_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Err(HttpError::TooLarge(RESPONSE_MAX as u32));
        }
        Err(error) => return Err(HttpError::NoAnswer(chain_line(error.as_ref()))),
    };
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    Ok(HttpResponse {
        status: head.status.as_u16(),
        headers: headers.collect(),
        body: body.into(),
    })
}

#[cfg(test)]
mod tests;
