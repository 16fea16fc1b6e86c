//! Calls to webhooks: one POST over HTTPS with an answer in memory.
//!
//! Owns the connections, which are kept and used again, and what a certificate is checked by. Must
//! not know what is asked, or what an answer means. Its errors have the words of Go's client, as
//! kube-apiserver shows them.

mod verifier;
mod wording;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Request};
use hyper_rustls::{
    ConfigBuilderExt, FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder,
};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::reach::Address;
use verifier::Verifier;
use wording::Failed;

/// The number of different trusts whose connections are kept. Tests make a new authority each.
const MAX_CLIENTS: usize = 64;
/// How long an unused connection is kept, as by Go's client.
const IDLE: Duration = Duration::from_secs(90);

type Requests = Client<HttpsConnector<HttpConnector>, Body>;

/// What a certificate is checked by: authorities in PEM, and a name if it is not that of the URL.
type Trust = (Vec<u8>, Option<String>);

/// The connections to webhooks.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    clients: Mutex<HashMap<Trust, Requests>>,
}

impl Outside {
    /// Sends JSON and returns the body of the answer, which has at most so many bytes and comes in
    /// time; an error says why there is none.
    pub async fn post(
        &self,
        address: &Address,
        body: Vec<u8>,
        (most, limit): (usize, Duration),
    ) -> Result<Vec<u8>, Failed> {
        let body = Bytes::from(body);
        let exchange = async {
            match self.exchange(address, body.clone(), most).await {
                // The webhook closed a connection that was about to be used again.
                Err(Failed::Closed) => self.exchange(address, body, most).await,
                other => other,
            }
        };
        let exchanged = tokio::time::timeout(limit, exchange).await;
        exchanged.unwrap_or(Err(Failed::Sending("context deadline exceeded".to_owned())))
    }

    async fn exchange(
        &self,
        address: &Address,
        body: Bytes,
        most: usize,
    ) -> Result<Vec<u8>, Failed> {
        let client = self.client(address).map_err(Failed::Sending)?;
        let bad = |error: &dyn std::error::Error| Failed::Sending(error.to_string());
        let mut request = Request::post(&address.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver-admission")
            .body(Body::from(body))
            .map_err(|error| bad(&error))?;
        let host = HeaderValue::from_str(&address.host).map_err(|error| bad(&error))?;
        request.headers_mut().insert(HOST, host);
        let answer = client.request(request).await;
        let answer = answer.map_err(|error| wording::failure(&error, &address.host))?;
        let status = answer.status();
        let read = axum::body::to_bytes(Body::new(answer.into_body()), most).await;
        let text = read.map_err(|_| Failed::Sending("unexpected EOF".to_owned()))?;
        match status.is_success() {
            true => Ok(text.into()),
            false => Err(Failed::Refused(wording::refusal(status, &text))),
        }
    }

    fn client(&self, address: &Address) -> Result<Requests, String> {
        let trust = (address.authorities.clone(), address.name.clone());
        if let Some(known) = self.clients.lock().get(&trust) {
            return Ok(known.clone());
        }
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trusted(&address.authorities)?)
            .https_only();
        let connector = match &address.name {
            Some(name) => {
                let name = ServerName::try_from(name.clone()).map_err(|e| e.to_string())?;
                connector.with_server_name_resolver(FixedServerNameResolver::new(name))
            }
            None => connector,
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector.enable_http1().build());
        let mut clients = self.clients.lock();
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        Ok(clients.entry(trust).or_insert(client).clone())
    }
}

/// Returns TLS settings that trust these authorities.
fn trusted(authorities: &[u8]) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if authorities.is_empty() {
        let builder = builder.with_native_roots().map_err(|e| e.to_string())?;
        return Ok(builder.with_no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    let mut bundle = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let why = |error: &dyn std::error::Error| {
            format!("unable to load root certificates: unable to parse bytes as PEM block: {error}")
        };
        let certificate = certificate.map_err(|error| why(&error))?;
        roots
            .add(certificate.clone())
            .map_err(|error| why(&error))?;
        bundle.push(certificate);
    }
    let by_chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let by_chain = by_chain.build().map_err(|error| error.to_string())?;
    let verifier = Arc::new(Verifier { by_chain, bundle });
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}
