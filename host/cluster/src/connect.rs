//! The connection: which server, with whose credentials, and whether it answers.
//!
//! It owns the settings of what carries requests. It must not try anything twice: kube's own retry is off (it would hold a worker for minutes and send a write
//! twice), there is no client-side rate limit (the server's priority and fairness decides), and no read time-out that would cut watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;

use crate::api::{BoxError, CallError, chain};
use crate::kubeconfig::{self, Places};
use crate::proxy::Environment;
use crate::transport::Transport;
use crate::write::WRITE_TIMEOUT;

pub(crate) mod error;

pub use error::{CONFIGURATION_ORDER, ConnectError, ConnectOptions};

/// How long `/version` may take, the connection included.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

/// Counts requests: `rest_client_requests_total`. Must be quick.
pub trait RequestObserver: Send + Sync {
    /// One request has its answer's head; code 0: it has none.
    fn request(&self, code: u16, method: &str, host: &str);
}

/// What `/version` says.
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

/// A connection to one cluster. Cheap to clone; must be made and used on a tokio runtime.
#[derive(Clone)]
pub struct Connection {
    transport: Transport,
    about: Arc<About>,
    observer: Option<Arc<dyn RequestObserver>>,
    write_timeout: Duration,
    streaming_lists: bool,
    whole_answers: bool,
}

struct About {
    description: String,
    host: String,
    namespace: String,
    /// The server has refused to answer a write with metadata alone.
    whole_answers: AtomicBool,
}

/// Reads the configuration and the credentials. Does not talk to the server: [`Connection::check`]
/// does.
///
/// The credentials are read again while the connection lives: files (certificates, authorities,
/// tokens) each 30 s and after failures; an exec plugin runs again before its answer expires and
/// after a 401.
pub async fn connect(options: &ConnectOptions) -> Result<Connection, ConnectError> {
    let configuration = kubeconfig::load(options, &Places::of_process())?;
    let place = configuration.place.clone();
    let proxy_url = configuration.cluster.proxy_url.as_deref();
    let proxy = Environment::of_process()
        .proxy_for(&configuration.server, proxy_url)
        .map_err(|error| ConnectError::Configure {
            place: place.clone(),
            detail: error.to_string(),
        })?;
    let server = configuration.server.to_string();
    let server = server.trim_end_matches('/');
    if let Some(proxy) = &proxy {
        tracing::info!("{server} is reached through the proxy {proxy}");
    }
    let transport = Transport::new(&configuration, proxy.map(Arc::new));
    let transport = transport.await.map_err(|error| ConnectError::Configure {
        place: place.clone(),
        detail: chain(error.as_ref()),
    })?;
    let host = configuration.server.authority();
    let host = host.map(ToString::to_string).unwrap_or_default();
    let description = format!("{server} ({place})");
    Ok(Connection::new(
        transport,
        description,
        host,
        configuration.namespace,
    ))
}

impl Connection {
    fn new(transport: Transport, description: String, host: String, namespace: String) -> Self {
        let about = Arc::new(About {
            description,
            host,
            namespace,
            whole_answers: AtomicBool::new(false),
        });
        Self {
            transport,
            about,
            observer: None,
            write_timeout: WRITE_TIMEOUT,
            streaming_lists: false,
            whole_answers: false,
        }
    }

    /// A connection through a client that the caller has made: an in-process server, a test. Its retry policy is the caller's affair; it should have none.
    pub fn from_client(client: kube::Client, description: &str) -> Self {
        let namespace = client.default_namespace().to_owned();
        Self::new(
            Transport::through(client),
            description.to_owned(),
            description.to_owned(),
            namespace,
        )
    }

    /// The same connection, with its requests counted.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn RequestObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The same connection, with another time-out of writes than [`WRITE_TIMEOUT`].
    #[must_use]
    pub fn with_write_timeout(mut self, limit: Duration) -> Self {
        self.write_timeout = limit;
        self
    }

    /// The same connection, whose informers fill their stores from a watch, where the server can do that (client-go's `WatchListClient`), and not from lists in
    /// pages. Pages cost a server less that has them in its cache: 1.4 s of CPU for 20,000 objects against 2.1 (1.36). One before 1.34 reads them from etcd.
    #[must_use]
    pub fn with_streaming_lists(mut self, wanted: bool) -> Self {
        self.streaming_lists = wanted;
        self
    }

    /// The same connection, whose writes are answered with the whole object, not with its metadata
    /// alone.
    #[must_use]
    pub fn with_whole_answers(mut self) -> Self {
        self.whole_answers = true;
        self
    }

    /// `https://... (context x of file y)`.
    pub fn describe(&self) -> &str {
        &self.about.description
    }

    /// The namespace that the context or the service account names, else `default`.
    pub fn default_namespace(&self) -> &str {
        &self.about.namespace
    }

    /// Asks for the server's version: says whether it can be reached and accepts the credentials.
    pub async fn check(&self) -> Result<ServerVersion, ConnectError> {
        let server = self.describe().to_owned();
        match self.fetch("/version", CHECK_TIMEOUT).await {
            Ok(body) => serde_json::from_slice(&body).map_err(|error| ConnectError::Answer {
                server,
                detail: format!("/version is not valid: {error}"),
            }),
            Err(CallError::NotSent(source) | CallError::Network(source)) => {
                Err(ConnectError::Unreachable {
                    server,
                    source: readable(&source),
                })
            }
            Err(CallError::Timeout(after)) => Err(ConnectError::Timeout { server, after }),
            Err(CallError::Refused(refused)) if refused.code == 401 => {
                Err(ConnectError::Unauthorized {
                    server,
                    message: refused.message,
                })
            }
            Err(CallError::Refused(refused)) if refused.code == 403 => {
                Err(ConnectError::Forbidden {
                    server,
                    message: refused.message,
                })
            }
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

    /// May a write ask to be answered with metadata alone?
    pub(crate) fn answers_narrowly(&self) -> bool {
        !self.whole_answers && !self.about.whole_answers.load(Ordering::Relaxed)
    }

    /// The server does not: it is not asked again.
    pub(crate) fn answer_whole(&self) {
        self.about.whole_answers.store(true, Ordering::Relaxed);
    }

    pub(crate) fn observe(&self, code: u16, method: &str) {
        if let Some(observer) = &self.observer {
            observer.request(code, method, &self.about.host);
        }
    }
}

/// One line instead of a chain whose links repeat each other.
fn readable(source: &BoxError) -> BoxError {
    chain(source.as_ref()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, json, plain, status};
    use std::sync::Mutex;

    #[derive(Default)]
    struct Seen(Mutex<Vec<(u16, String)>>);
    impl RequestObserver for Seen {
        fn request(&self, code: u16, method: &str, _host: &str) {
            self.0.lock().unwrap().push((code, method.to_owned()));
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
        assert_eq!(*seen.0.lock().unwrap(), [(200, "GET".to_owned())]);

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
