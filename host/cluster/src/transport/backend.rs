//! The backends that send requests. This module must not know what a request is for.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};

use crate::direct::Direct;

/// One way to reach the API server.
pub(super) enum Backend {
    Direct(Direct),
    Kube(kube::Client),
    Local(Local),
}

/// A server in this process: a function from a request to its answer.
pub(crate) type Local =
    Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync>;
