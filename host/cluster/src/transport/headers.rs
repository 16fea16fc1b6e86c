//! The headers that all requests of one user carry, independent of its credentials.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::Empty;
use kube::client::ConfigExt;
use kube::config::AuthInfo;
use tower::{Layer, ServiceExt, service_fn};

use crate::direct::Headers;
use crate::error::BoxError;

/// `vmhost/0.1.0`.
const USER_AGENT: &str = concat!("vmhost/", env!("CARGO_PKG_VERSION"));

/// Returns the headers with the program's name and the impersonated user. kube's layer formats the
/// latter; here it wraps a service that answers with the headers of its request.
pub(super) async fn fixed(user: &AuthInfo) -> Result<Headers, BoxError> {
    let mut config = kube::Config::new(http::Uri::default());
    config.auth_info = user.clone();
    let agent = HeaderValue::from_static(USER_AGENT);
    config.headers.push((header::USER_AGENT, agent));
    let echo = service_fn(|request: Request<Empty<Bytes>>| async move {
        Ok::<_, Infallible>(request.into_parts().0.headers)
    });
    let layer = config.extra_headers_layer()?;
    let headers = layer.layer(echo).oneshot(Request::default()).await?;
    let mut name = None;
    let headers = headers.into_iter().filter_map(|(next, value)| {
        // Only the first of several values of a name comes with the name.
        name = next.or(name.take());
        Some((name.clone()?, value))
    });
    Ok(headers.collect())
}
