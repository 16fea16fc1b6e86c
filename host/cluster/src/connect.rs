//! The connection: the server, the credentials, and whether the server answers.
//!
//! This module owns the settings of the transport. It must not retry: kube's own retry is off (it
//! would block a worker for minutes and send a write twice), there is no client-side rate limit
//! (the server's priority and fairness decides), and no read timeout that would cut watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use serde::Deserialize;

use crate::error::{BoxError, Error};
use crate::kubeconfig::{self, Configuration, Places};
use crate::proxy::{Environment, Proxy};
use crate::status::Status;
use crate::transport::Transport;
use vmhost_core::{TraceHeaders, chain_line};

pub(crate) mod error;

/// Timeout of a write. Shorter than the time between the renew deadline (10 s) and the end of a
/// lease (15 s), so that no write of a leader that lost its lease arrives after the next leader's
/// first write.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(4);

pub use error::{CONFIGURATION_ORDER, ConnectError, ConnectOptions};

/// Timeout of `/version`, including the connection.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

/// Counts requests (`rest_client_requests_total`). Implementations must be quick.
pub trait RequestObserver: Send + Sync {
    /// A request has received the head of its answer; code 0 if there is no answer.
    fn request(&self, code: u16, method: &str, host: &str);
}

/// Tells which trace a request belongs to. Implementations must be quick.
pub trait TraceSource: Send + Sync {
    /// The headers for the request that is sent now. `None` if it belongs to no trace.
    fn headers(&self) -> Option<TraceHeaders>;
}

/// The answer to `/version`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerVersion {
    /// `1`.
    #[serde(default)]
    pub major: String,
    /// `36`; some vendors add a plus sign.
    #[serde(default)]
    pub minor: String,
    /// `v1.36.3`.
    pub git_version: String,
}

/// A connection to one cluster, for the wiring code, which hands out its parts for reading and
/// writing. Cheap to clone; must be created and used on a tokio runtime.
#[derive(Clone)]
pub struct Connection {
    transport: Transport,
    about: Arc<About>,
    observer: Option<Arc<dyn RequestObserver>>,
    traces: Option<Arc<dyn TraceSource>>,
    write_timeout: Duration,
    streaming_lists: bool,
    /// The namespace of the Pod that the process runs in, if the server is that of its cluster.
    pod_namespace: Option<Arc<str>>,
}

struct About {
    description: String,
    route: String,
    host: String,
    namespace: String,
    /// Whether the server refused to answer a write with metadata only.
    whole_answers: AtomicBool,
}

impl About {
    /// What is known of a connection that leads to no address.
    fn of(description: String, namespace: String) -> Self {
        Self {
            route: description.clone(),
            host: description.clone(),
            description,
            namespace,
            whole_answers: AtomicBool::new(false),
        }
    }
}

/// Loads the configuration and the credentials. Does not contact the server; [`Connection::check`]
/// does.
///
/// The connection reloads its credentials: files (certificates, authorities, tokens) every 30 s and
/// after failures; an exec plugin runs again before its credentials expire and after a 401.
pub async fn connect(options: &ConnectOptions) -> Result<Connection, ConnectError> {
    let places = Places::of_process();
    let connection = connect_to(kubeconfig::load(options, &places)?, false).await?;
    Ok(Connection {
        pod_namespace: kubeconfig::pod_namespace(options, &places).map(Arc::from),
        ..connection
    })
}

/// As [`connect`], with this configuration. `changes` says whether [`Connection::replace`] may be
/// called later.
pub(crate) async fn connect_to(
    configuration: Configuration,
    changes: bool,
) -> Result<Connection, ConnectError> {
    let (server, place) = (address(&configuration), configuration.place.clone());
    let proxy = proxy(&configuration)?;
    let route = route(&server, &configuration, proxy.as_deref());
    let transport = Transport::new(&configuration, proxy, changes);
    let transport = transport.await.map_err(|error| unusable(&place, &*error))?;
    let host = configuration.server.authority();
    let host = host.map(ToString::to_string).unwrap_or_default();
    let description = format!("{server} ({place})");
    let about = About {
        route,
        host,
        ..About::of(description, configuration.namespace)
    };
    Ok(Connection::new(transport, about))
}

/// The server's URL, the name that it is asked for in TLS if that is another one, and the proxy.
fn route(server: &str, configuration: &Configuration, proxy: Option<&Proxy>) -> String {
    let mut route = server.to_owned();
    if let Some(name) = &configuration.cluster.tls_server_name {
        route.push_str(&format!(" as {name}"));
    }
    if let Some(proxy) = proxy {
        route.push_str(&format!(" through {proxy}"));
    }
    route
}

/// The server's URL without a slash at its end.
fn address(configuration: &Configuration) -> String {
    let server = configuration.server.to_string();
    server.trim_end_matches('/').to_owned()
}

/// Returns the proxy that the server is reached through, if any.
fn proxy(configuration: &Configuration) -> Result<Option<Arc<Proxy>>, ConnectError> {
    let url = configuration.cluster.proxy_url.as_deref();
    let proxy = Environment::of_process()
        .proxy_for(&configuration.server, url)
        .map_err(|error| unusable(&configuration.place, &error))?;
    if let Some(proxy) = &proxy {
        let server = address(configuration);
        tracing::info!("{server}: connecting through proxy {proxy}");
    }
    Ok(proxy.map(Arc::new))
}

fn unusable(place: &str, error: &(dyn std::error::Error + 'static)) -> ConnectError {
    ConnectError::Configure {
        place: place.to_owned(),
        detail: chain_line(error),
    }
}

impl Connection {
    /// Sends requests with this configuration from now on. Requests in flight go on.
    pub(crate) async fn replace(&self, configuration: Configuration) -> Result<(), ConnectError> {
        let proxy = proxy(&configuration)?;
        let changed = self.transport.change(&configuration, proxy).await;
        changed.map_err(|error| unusable(&configuration.place, &*error))
    }

    fn new(transport: Transport, about: About) -> Self {
        Self {
            transport,
            about: Arc::new(about),
            observer: None,
            traces: None,
            write_timeout: WRITE_TIMEOUT,
            streaming_lists: false,
            pod_namespace: None,
        }
    }

    /// Builds a connection over the caller's client: an in-process server, a test. The client
    /// should not retry.
    pub fn from_client(client: kube::Client, description: &str) -> Self {
        let namespace = client.default_namespace().to_owned();
        let about = About::of(description.to_owned(), namespace);
        Self::new(Transport::through(client), about)
    }

    /// Builds a connection to a server in this process: a function from a request to its answer. No
    /// socket is opened, and no credentials are sent.
    pub fn local(
        serve: impl Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync + 'static,
        description: &str,
    ) -> Self {
        let about = About::of(description.to_owned(), "default".to_owned());
        Self::new(Transport::local(Arc::new(serve)), about)
    }

    /// Returns this connection with an observer that counts its requests.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn RequestObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Returns this connection, whose requests tell the server their trace.
    #[must_use]
    pub fn with_traces(mut self, source: Arc<dyn TraceSource>) -> Self {
        self.traces = Some(source);
        self
    }

    /// Returns this connection with another write timeout than [`WRITE_TIMEOUT`].
    #[must_use]
    pub fn with_write_timeout(mut self, limit: Duration) -> Self {
        self.write_timeout = limit;
        self
    }

    /// Returns this connection with streaming lists on or off. With them, informers fill their
    /// stores from a watch (client-go's `WatchListClient`) if the server supports that, instead of
    /// paged lists. Pages are cheaper for a server that has them in its cache: 1.4 s of CPU for
    /// 20,000 objects against 2.1 s (1.36). A server before 1.34 reads pages from etcd.
    #[must_use]
    pub fn with_streaming_lists(mut self, wanted: bool) -> Self {
        self.streaming_lists = wanted;
        self
    }

    /// The server and the source of its address: `https://... (context x of file y)`.
    pub fn describe(&self) -> &str {
        &self.about.description
    }

    /// The way to the server, without credentials: its URL, the name in TLS, the proxy. Connections
    /// that differ in it may lead to different clusters.
    pub fn route(&self) -> &str {
        &self.about.route
    }

    /// The server's host and port; for a server in this process its description.
    pub fn host(&self) -> &str {
        &self.about.host
    }

    /// The namespace of the context or the service account, else `default`.
    pub fn default_namespace(&self) -> &str {
        &self.about.namespace
    }

    /// The namespace of the Pod that this process runs in; `None` if it is not known to run in one
    /// of this cluster.
    pub fn pod_namespace(&self) -> Option<&str> {
        self.pod_namespace.as_deref()
    }

    /// Requests the server's version, which shows that the server is reachable and accepts the
    /// credentials.
    pub async fn check(&self) -> Result<ServerVersion, ConnectError> {
        let server = self.describe().to_owned();
        match self.fetch_small("/version", CHECK_TIMEOUT).await {
            Ok(body) => serde_json::from_slice(&body).map_err(|error| ConnectError::Answer {
                server,
                detail: format!("invalid answer to GET /version: {error}"),
            }),
            Err(Error::NotSent(source) | Error::Network(source)) => {
                Err(ConnectError::Unreachable {
                    server,
                    source: readable(&source),
                })
            }
            Err(Error::Timeout(after)) => Err(ConnectError::Timeout { server, after }),
            Err(Error::Refused(Status {
                code: 401, message, ..
            })) => Err(ConnectError::Unauthorized { server, message }),
            Err(Error::Refused(Status {
                code: 403, message, ..
            })) => Err(ConnectError::Forbidden { server, message }),
            Err(error) => Err(ConnectError::Answer {
                server,
                detail: error.line(),
            }),
        }
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    pub(crate) fn streams_lists(&self) -> bool {
        self.streaming_lists
    }

    pub(crate) fn write_timeout(&self) -> Duration {
        self.write_timeout
    }

    /// Returns whether to ask the server to answer a write with metadata only.
    pub(crate) fn answers_narrowly(&self) -> bool {
        !self.about.whole_answers.load(Ordering::Relaxed)
    }

    /// Stops asking the server to answer writes with metadata only.
    pub(crate) fn answer_whole(&self) {
        self.about.whole_answers.store(true, Ordering::Relaxed);
    }

    /// The headers that name the trace of a request that is sent now.
    pub(crate) fn trace_headers(&self) -> Option<TraceHeaders> {
        self.traces.as_ref()?.headers()
    }

    pub(crate) fn observe(&self, code: u16, method: &str) {
        if let Some(observer) = &self.observer {
            observer.request(code, method, &self.about.host);
        }
    }
}

/// Formats an error chain as one line without repetitions.
fn readable(source: &BoxError) -> BoxError {
    chain_line(source.as_ref()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, json, plain, status};
    use parking_lot::Mutex;

    #[derive(Default)]
    struct Seen(Mutex<Vec<(u16, String)>>);
    impl RequestObserver for Seen {
        fn request(&self, code: u16, method: &str, _host: &str) {
            self.0.lock().push((code, method.to_owned()));
        }
    }

    #[tokio::test]
    async fn check_tells_the_failures_apart() {
        let ok = Fake::new(|_| {
            json(
                200,
                r#"{"major":"1","minor":"36","gitVersion":"v1.36.3","platform":"x"}"#,
            )
        });
        let seen = Arc::new(Seen::default());
        assert_eq!(
            ok.connection()
                .with_observer(seen.clone())
                .check()
                .await
                .unwrap()
                .git_version,
            "v1.36.3"
        );
        assert_eq!(*seen.0.lock(), [(200, "GET".to_owned())]);

        let error = Fake::new(|_| status(401, "Unauthorized", "Unauthorized"))
            .connection()
            .check()
            .await
            .unwrap_err();
        assert!(
            matches!(error, ConnectError::Unauthorized { .. }),
            "{error}"
        );
        let error = Fake::new(|_| status(403, "Forbidden", "no"))
            .connection()
            .check()
            .await
            .unwrap_err();
        assert!(matches!(error, ConnectError::Forbidden { .. }), "{error}");
        let error = Fake::new(|_| plain(502, "bad gateway"))
            .connection()
            .check()
            .await
            .unwrap_err();
        assert!(error.to_string().contains("bad gateway"), "{error}");
        let error = Fake::new(|_| plain(200, "<html>"))
            .connection()
            .check()
            .await
            .unwrap_err();
        assert!(matches!(error, ConnectError::Answer { .. }), "{error}");
        let error = Fake::broken().connection().check().await.unwrap_err();
        assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    }

    #[tokio::test]
    async fn a_closed_port_is_unreachable() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let text = format!(
            "clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\ncontexts: [{{name: x, context: {{cluster: c}}}}]\ncurrent-context: x\n"
        );
        std::fs::write(file.path(), text).unwrap();
        let options = ConnectOptions {
            kubeconfig: Some(file.path().to_owned()),
            context: None,
        };
        let connection = connect(&options).await.unwrap();
        assert!(
            connection.describe().contains("context x of"),
            "{}",
            connection.describe()
        );
        let error = connection.check().await.err().unwrap();
        assert!(
            matches!(&error, ConnectError::Unreachable { server, .. } if server.contains(&port.to_string())),
            "{error}"
        );
    }
}
