//! Sends the body of an export to the collector, over one connection that is kept open. This module
//! must not know what the body says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use vmhost_core::{chain_line, cut, one_line};

use crate::gzip;
use crate::settings::{PemFile, Settings};

/// How long a connection is kept without a request.
const IDLE: Duration = Duration::from_secs(30);

/// The most bytes of an answer that are read.
const ANSWER_MAX: usize = 64 << 10;

/// The most bytes of a collector's text that the log shows.
const SHOWN: usize = 200;

/// The longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why the export cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file with certificates or a key cannot be read.
    #[error("{variable} {path} cannot be read: {problem}")]
    File {
        /// The variable that names it.
        variable: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// TLS cannot be set up.
    #[error("TLS to the collector cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// Why spans did not arrive.
#[derive(Debug)]
pub(crate) struct Unsent {
    /// A text for the log.
    pub(crate) why: String,
    /// How long to wait before the next try. `None` if none makes sense.
    pub(crate) wait: Option<Duration>,
}

/// Sends bodies.
pub(crate) struct Sender {
    client: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    endpoint: Uri,
    headers: HeaderMap,
    compresses: bool,
    timeout: Duration,
}

impl Sender {
    /// Opens no connection yet.
    pub(crate) fn new(settings: &Settings) -> Result<Self, StartError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = HttpsConnector::from((tcp, Arc::new(tls(settings)?)));
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(1)
            .pool_timer(TokioTimer::new())
            .build(connector);
        let mut headers = settings.headers.clone();
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        headers.insert(CONTENT_TYPE, protobuf);
        if settings.compresses {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let agent = concat!("vmhost/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        Ok(Self {
            client,
            endpoint: settings.endpoint.clone(),
            headers,
            compresses: settings.compresses,
            timeout: settings.timeout,
        })
    }

    /// Returns a body as it is sent.
    pub(crate) fn pack(&self, body: Vec<u8>) -> Bytes {
        match self.compresses {
            true => gzip::compressed(&body).into(),
            false => body.into(),
        }
    }

    /// Sends a packed body once, in this time and in that of one request. Returns the body of the
    /// answer.
    pub(crate) async fn send(&self, body: Bytes, left: Duration) -> Result<Bytes, Unsent> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.endpoint.clone();
        *request.headers_mut() = self.headers.clone();
        let exchange = async {
            match self.client.request(request).await {
                Ok(response) => judge(response).await,
                Err(error) => Err(Unsent::later(chain_line(&error))),
            }
        };
        let most = self.timeout.min(left);
        let late = |_| Err(Unsent::later(format!("no answer within {most:?}")));
        let timed = tokio::time::timeout(most, exchange).await;
        timed.unwrap_or_else(late)
    }
}

impl Unsent {
    fn later(why: String) -> Self {
        Self {
            why,
            wait: Some(Duration::ZERO),
        }
    }
}

/// Reads what the collector answers. As OTLP says, these four codes mean that it may take the spans
/// later, and all others that it never will.
async fn judge<B>(response: Response<B>) -> Result<Bytes, Unsent>
where
    B: http_body_util::BodyExt<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = response.into_parts();
    // Read to its end, so that the connection can be used again.
    let body = Limited::new(body, ANSWER_MAX).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let status = head.status;
    if status.is_success() {
        return Ok(body);
    }
    let why = format!("{status}: {}", shown(&String::from_utf8_lossy(&body)));
    let passes = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    let seconds = head.headers.get(RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
    let asked = Duration::from_secs(seconds.unwrap_or(0));
    Err(Unsent {
        why,
        wait: passes.then_some(asked.min(LONGEST_PAUSE)),
    })
}

/// Returns a collector's text as the log shows it: the beginning, as one line.
pub(crate) fn shown(text: &str) -> String {
    one_line(cut(text.trim(), SHOWN)).into_owned()
}

/// The settings of TLS. Without `https` no certificate is read.
fn tls(settings: &Settings) -> Result<ClientConfig, StartError> {
    let is_plain = settings.endpoint.scheme_str() != Some("https");
    let mut roots = RootCertStore::empty();
    match &settings.certificate {
        _ if is_plain => {}
        Some(file) => {
            let (added, _) = roots.add_parsable_certificates(certificates(file)?);
            if added == 0 {
                return Err(unread(file, "it has no certificate of an authority"));
            }
        }
        None => {
            let native = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(native.certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(StartError::Tls)?
        .with_root_certificates(roots);
    match &settings.identity {
        Some((chain, file)) if !is_plain => {
            let (chain, pem) = (certificates(chain)?, content(file)?);
            let key = PrivateKeyDer::from_pem_slice(&pem);
            let key = key.map_err(|_| unread(file, "it has no private key"))?;
            let config = config.with_client_auth_cert(chain, key);
            config.map_err(StartError::Tls)
        }
        _ => Ok(config.with_no_client_auth()),
    }
}

fn certificates(file: &PemFile) -> Result<Vec<CertificateDer<'static>>, StartError> {
    let pem = content(file)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    read.map_err(|error| unread(file, &error.to_string()))
}

fn content(file: &PemFile) -> Result<Vec<u8>, StartError> {
    std::fs::read(&file.path).map_err(|error| unread(file, &error.to_string()))
}

fn unread(file: &PemFile, problem: &str) -> StartError {
    StartError::File {
        variable: file.variable,
        path: file.path.clone(),
        problem: problem.to_owned(),
    }
}
