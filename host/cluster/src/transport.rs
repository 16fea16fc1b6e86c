//! Sends requests to the API server: over this crate's own connections ([`crate::direct`]), to a
//! function in this process, or, in tests, through a kube client with a test server behind it.
//!
//! This module owns which [`Backend`] sends the next request. The backend is replaced as a whole
//! when credentials change ([`renew`]), and when the configuration does; requests in flight finish
//! on the old one. It must not know what a request is for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body::Frame;
use http_body_util::Full;
use tokio::sync::watch;

use crate::direct::{self, Peer};
use crate::error::{BoxError, Error};
use crate::kubeconfig::Configuration;
use crate::proxy::Proxy;

mod backend;
mod headers;
mod renew;

use backend::Backend;
pub(crate) use backend::Local;
use renew::{Renewal, Source};

/// Sends requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Transport {
    backend: Arc<ArcSwap<Backend>>,
    /// `None` if the credentials cannot change by themselves.
    renewal: Arc<ArcSwapOption<Renewal>>,
    /// The server, if the configuration may change.
    server: Option<Arc<watch::Sender<Uri>>>,
}

/// The body of an answer. Dropping it before its end breaks its connection.
pub(crate) struct Body(Inner);

enum Inner {
    Direct(direct::Body),
    Kube(kube::client::Body),
    Whole(Full<Bytes>),
}

impl Transport {
    /// Reads the credentials, and sends nothing. The error says what is wrong with them. `changes`
    /// says whether the configuration may change later.
    pub(crate) async fn new(
        configuration: &Configuration,
        proxy: Option<Arc<Proxy>>,
        changes: bool,
    ) -> Result<Self, BoxError> {
        let source = source(configuration, proxy).await?;
        let backend = Arc::new(ArcSwap::from_pointee(source.backend()?));
        let renewal = Renewal::start(source, backend.clone()).map(Arc::new);
        let server = changes.then(|| Arc::new(watch::Sender::new(configuration.server.clone())));
        Ok(Self {
            backend,
            renewal: Arc::new(ArcSwapOption::new(renewal)),
            server,
        })
    }

    /// Uses another configuration for the requests that begin from now on. After an error nothing
    /// has changed.
    pub(crate) async fn change(
        &self,
        configuration: &Configuration,
        proxy: Option<Arc<Proxy>>,
    ) -> Result<(), BoxError> {
        let source = source(configuration, proxy).await?;
        let backend = source.backend()?;
        // Ends the task that keeps the old credentials up to date, so that it does not bring them
        // back.
        self.renewal.store(None);
        self.backend.store(Arc::new(backend));
        let renewal = Renewal::start(source, self.backend.clone());
        self.renewal.store(renewal.map(Arc::new));
        if let Some(server) = &self.server {
            server.send_if_modified(|server| {
                let moves = *server != configuration.server;
                server.clone_from(&configuration.server);
                moves
            });
        }
        Ok(())
    }

    /// Tells when the server has another address. `None` if it never has.
    pub(crate) fn moves(&self) -> Option<watch::Receiver<Uri>> {
        Some(self.server.as_ref()?.subscribe())
    }

    /// Sends through the caller's client.
    pub(crate) fn through(client: kube::Client) -> Self {
        Self {
            backend: Arc::new(ArcSwap::from_pointee(Backend::Kube(client))),
            renewal: Arc::default(),
            server: None,
        }
    }

    /// Sends to a server in this process.
    pub(crate) fn local(server: Local) -> Self {
        Self {
            backend: Arc::new(ArcSwap::from_pointee(Backend::Local(server))),
            renewal: Arc::default(),
            server: None,
        }
    }

    /// Sends a request once. Returns the head of the answer, whatever its status; the body is not
    /// read yet.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
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
            Backend::Local(server) => {
                let answer = server(request).await;
                Ok(answer.map(|body| Body(Inner::Whole(Full::new(body)))))
            }
        }
    }

    /// Reports failures that new credentials may fix: a 401, and a connection that cannot be opened
    /// or breaks, because certificates may have been replaced.
    fn report(&self, backend: &Arc<Backend>, answer: &Result<Response<direct::Body>, Error>) {
        let refused = match answer {
            Ok(answer) if answer.status() != StatusCode::UNAUTHORIZED => return,
            Ok(_) => true,
            Err(_) => false,
        };
        // A failure of the old credentials says nothing about the new ones.
        if let Some(renewal) = &*self.renewal.load()
            && Arc::ptr_eq(backend, &self.backend.load())
        {
            renewal.report(refused);
        }
    }
}

/// Reads the credentials of a configuration.
async fn source(
    configuration: &Configuration,
    proxy: Option<Arc<Proxy>>,
) -> Result<Source, BoxError> {
    let cluster = &configuration.cluster;
    let peer = Peer {
        server: configuration.server.clone(),
        tls_name: cluster.tls_server_name.clone(),
        insecure: cluster.insecure_skip_tls_verify == Some(true),
        guarded: configuration.foreign,
        proxy,
    };
    Source::new(configuration, peer).await
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
            Inner::Whole(body) => Pin::new(body)
                .poll_frame(cx)
                .map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Direct(body) => body.is_end_stream(),
            Inner::Kube(body) => body.is_end_stream(),
            Inner::Whole(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Inner::Direct(body) => body.size_hint(),
            Inner::Kube(body) => body.size_hint(),
            Inner::Whole(body) => body.size_hint(),
        }
    }
}

/// Classifies an error by whether the server may have seen the request.
fn classify(error: kube::Error) -> Error {
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
        Error::NotSent(source)
    } else {
        Error::Network(source)
    }
}
