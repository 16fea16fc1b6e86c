//! The part of a connection that reads.
//!
//! This module owns which requests the part sends: GETs, and no others. It must not know what they
//! ask for; `discovery`, `live` and `informer` do.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use tokio::sync::watch;

use crate::api::request;
use crate::connect::Connection;
use crate::error::Error;
use crate::transport::Body;

/// Reads from the cluster: the served kinds and the current objects; informers are built from it.
/// It has no method that writes. Cheap to clone.
#[derive(Clone)]
pub struct Reader(Connection);

impl Connection {
    /// Returns the part that reads.
    pub fn reader(&self) -> Reader {
        Reader(self.clone())
    }
}

impl Reader {
    /// Sends a GET. Returns a success whose body is not read yet.
    pub(crate) async fn open(
        &self,
        path: &str,
        accept: Option<&'static str>,
    ) -> Result<Response<Body>, Error> {
        self.0.open(get(path, accept)?).await
    }

    /// Sends a GET and reads the whole answer within `limit`.
    pub(crate) async fn fetch(
        &self,
        path: &str,
        accept: Option<&'static str>,
        limit: Duration,
    ) -> Result<Bytes, Error> {
        let (_, body) = self.0.call(get(path, accept)?, limit).await?;
        Ok(body)
    }

    /// Timeout of reading one object: the same as of a write.
    pub(crate) fn object_timeout(&self) -> Duration {
        self.0.write_timeout()
    }

    /// Tells when the server has another address. `None` if it never has.
    pub(crate) fn moves(&self) -> Option<watch::Receiver<Uri>> {
        self.0.transport().moves()
    }

    pub(crate) fn streams_lists(&self) -> bool {
        self.0.streams_lists()
    }
}

fn get(path: &str, accept: Option<&'static str>) -> Result<Request<Bytes>, Error> {
    let mut request = request(Method::GET, path, None, Bytes::new())?;
    if let Some(accept) = accept {
        let accept = HeaderValue::from_static(accept);
        request.headers_mut().insert(header::ACCEPT, accept);
    }
    Ok(request)
}
