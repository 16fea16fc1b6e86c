//! Sends requests to the API server: over this crate's own connections ([`crate::direct`]), or, in
//! tests, through a client of kube's with a server of the test behind it.
//!
//! It owns which [`Backend`] sends the next request. The backend is replaced as a whole when
//! credentials have changed ([`renew`]), and can be replaced so when the whole configuration has;
//! requests that run end on the old one. It must not know what a request is about.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;

use crate::api::{BoxError, CallError};
use crate::direct::{self, Direct, Peer};
use crate::kubeconfig::Configuration;
use crate::proxy::Proxy;

mod headers;
mod renew;

use renew::{Renewal, Source};

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Transport {
    backend: Arc<ArcSwap<Backend>>,
    /// `None` if the credentials cannot change.
    renewal: Option<Arc<Renewal>>,
}

enum Backend {
    Direct(Direct),
    Kube(kube::Client),
}

/// The body of an answer. To drop it before its end breaks its connection.
pub(crate) struct Body(Inner);

enum Inner {
    Direct(direct::Body),
    Kube(kube::client::Body),
}

impl Transport {
    /// Reads the credentials and sends nothing. The error says what is wrong with them.
    pub(crate) async fn new(
        configuration: &Configuration,
        proxy: Option<Arc<Proxy>>,
    ) -> Result<Self, BoxError> {
        let cluster = &configuration.cluster;
        let peer = Peer {
            server: configuration.server.clone(),
            tls_name: cluster.tls_server_name.clone(),
            insecure: cluster.insecure_skip_tls_verify == Some(true),
            proxy,
        };
        let source = Source::new(configuration, peer).await?;
        let backend = Arc::new(ArcSwap::from_pointee(source.backend()?));
        let renewal = Renewal::start(source, backend.clone()).map(Arc::new);
        Ok(Self { backend, renewal })
    }

    /// Sends through a client that the caller has made.
    pub(crate) fn through(client: kube::Client) -> Self {
        Self {
            backend: Arc::new(ArcSwap::from_pointee(Backend::Kube(client))),
            renewal: None,
        }
    }

    /// Sends a request once. The answer's head is here, whatever it says; its body has still to
    /// come.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, CallError> {
        let backend = self.backend.load_full();
        match &*backend {
            Backend::Direct(direct) => {
                let answer = direct.send(request).await;
                self.report(&backend, &answer);
                Ok(answer?.map(|body| Body(Inner::Direct(body))))
            }
            Backend::Kube(client) => {
                let request = request.map(kube::client::Body::from);
                let answer = client.send(request).await.map_err(classify)?;
                Ok(answer.map(|body| Body(Inner::Kube(body))))
            }
        }
    }

    /// Reports what new credentials may mend: a 401, and a connection that cannot be opened or
    /// breaks, since certificates may have been replaced.
    fn report(&self, backend: &Arc<Backend>, answer: &Result<Response<direct::Body>, CallError>) {
        let refused = match answer {
            Ok(answer) if answer.status() != StatusCode::UNAUTHORIZED => return,
            Ok(_) => true,
            Err(_) => false,
        };
        // What happens to the old credentials says nothing about the new ones.
        if let Some(renewal) = &self.renewal
            && Arc::ptr_eq(backend, &self.backend.load())
        {
            renewal.report(refused);
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Inner::Direct(body) => Pin::new(body).poll_frame(cx),
            Inner::Kube(body) => Pin::new(body).poll_frame(cx).map_err(BoxError::from),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Direct(body) => body.is_end_stream(),
            Inner::Kube(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Inner::Direct(body) => body.size_hint(),
            Inner::Kube(body) => body.size_hint(),
        }
    }
}

/// Could the server have seen the request?
fn classify(error: kube::Error) -> CallError {
    let unsent = match &error {
        kube::Error::Auth(_) | kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => true,
        kube::Error::Service(inner) => {
            inner
                .downcast_ref::<hyper_util::client::legacy::Error>()
                .is_some_and(hyper_util::client::legacy::Error::is_connect)
                || inner.is::<kube::client::AuthError>()
        }
        _ => false,
    };
    let source: BoxError = match error {
        kube::Error::Service(inner) => inner,
        other => other.into(),
    };
    if unsent {
        CallError::NotSent(source)
    } else {
        CallError::Network(source)
    }
}
