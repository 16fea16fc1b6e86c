//! The headers that all requests of one user carry, whatever its credentials are.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::Empty;
use kube::client::ConfigExt;
use kube::config::AuthInfo;
use tower::{Layer, ServiceExt, service_fn};

use crate::api::BoxError;
use crate::direct::Headers;

/// `vmhost/0.1.0`.
const USER_AGENT: &str = concat!("vmhost/", env!("CARGO_PKG_VERSION"));

/// Returns the program's name, and whom the user impersonates. kube's layer owns how the latter is
/// written; it is laid over a service that answers with the headers of its request.
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
        // Of a name with several values only the first comes with it.
        name = next.or(name.take());
        Some((name.clone()?, value))
    });
    Ok(headers.collect())
}
