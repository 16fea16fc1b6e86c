//! How a request gets to the API server: over this crate's own connections ([`crate::direct`]), or through kube's client where that one cannot do what the
//! kubeconfig asks for (a proxy, an exec plugin), or where a test has put its server behind it.
//!
//! It owns the choice, and what an answer's body is. It must not know what a request is about.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use kube::client::ConfigExt;

use crate::api::{BoxError, CallError};
use crate::direct::{self, Direct};

/// Cheap to clone.
#[derive(Clone)]
pub(crate) enum Transport {
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
    /// The quickest way that this configuration allows. What cannot be used at all is found out here, before anything is sent.
    pub(crate) async fn new(config: kube::Config) -> Result<Self, BoxError> {
        let plain = config.proxy_url.is_none()
            && config.auth_info.exec.is_none()
            && config.auth_info.auth_provider.is_none();
        if !plain {
            return Ok(Self::Kube(kube::Client::try_from(config)?));
        }
        let headers = config.extra_headers_layer()?;
        let direct = Direct::new(
            &config.cluster_url,
            direct::Credentials::new(config.auth_layer()?, headers).await?,
            |connector| config.rustls_https_connector_with_connector(connector),
            config.connect_timeout,
        )?;
        Ok(Self::Direct(direct))
    }

    /// Sends a request once. The answer's head is here, whatever it says; its body has still to come.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, CallError> {
        match self {
            Self::Direct(direct) => {
                let answer = direct.send(request).await?;
                Ok(answer.map(|body| Body(Inner::Direct(body))))
            }
            Self::Kube(client) => {
                let request = request.map(kube::client::Body::from);
                let answer = client.send(request).await.map_err(classify)?;
                Ok(answer.map(|body| Body(Inner::Kube(body))))
            }
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
