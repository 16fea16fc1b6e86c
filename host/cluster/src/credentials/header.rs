//! The value of `Authorization` for a kubeconfig's user.
//!
//! kube's `AuthLayer` turns a password, a token and a legacy provider (`oidc`, `gcp`) into a
//! header. Here it wraps a service that sends nothing and answers with the headers of its request.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Empty;
use kube::client::ConfigExt;
use kube::config::AuthInfo;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use crate::error::BoxError;

/// kube's `AuthLayer` of one user. A legacy provider renews its token inside the layer.
pub(super) struct KubeAuth(BoxCloneSyncService<Request<Empty<Bytes>>, Response<()>, BoxError>);

impl KubeAuth {
    /// Returns `None` if the user has no password, token or provider. kube does not handle token
    /// files and exec plugins here: [`super::Reader`] reads them.
    pub(super) fn new(user: &AuthInfo) -> Result<Option<Self>, BoxError> {
        let mut config = kube::Config::new(http::Uri::default());
        config.auth_info = AuthInfo {
            token_file: None,
            exec: None,
            ..user.clone()
        };
        let layer = config.auth_layer()?.map(|layer| {
            let echo = service_fn(|request: Request<Empty<Bytes>>| async move {
                let mut answer = Response::new(());
                *answer.headers_mut() = request.into_parts().0.headers;
                Ok::<_, BoxError>(answer)
            });
            Self(BoxCloneSyncService::new(layer.layer(echo)))
        });
        Ok(layer)
    }

    pub(super) async fn header(&self) -> Result<Option<HeaderValue>, BoxError> {
        let answer = self.0.clone().oneshot(Request::default()).await?;
        Ok(answer.headers().get(header::AUTHORIZATION).cloned())
    }
}

/// Returns `Bearer TOKEN`.
pub(super) fn bearer(token: &str) -> Result<HeaderValue, BoxError> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
    value.set_sensitive(true);
    Ok(value)
}
