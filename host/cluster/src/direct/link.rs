//! One connection to the API server, driven by the task that waits for an answer on it. This module
//! must not know what is asked.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use tower::{Service, ServiceExt};

use crate::error::BoxError;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Opens a link.
pub(super) type Opener = Box<dyn Fn() -> BoxFuture<Result<Link, BoxError>> + Send + Sync>;

/// A connection without a task: it makes progress only in [`Link::drive`].
pub(super) struct Link {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` if the connection has ended.
    driver: Option<BoxFuture<hyper::Result<()>>>,
}

/// Returns a function that opens links to this server.
pub(super) fn opener<C>(connector: C, server: Uri, patience: Duration) -> Opener
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    C::Error: Into<BoxError> + 'static,
    C::Future: Send + 'static,
{
    Box::new(move || {
        let connecting = connector.clone().oneshot(server.clone());
        Box::pin(async move {
            let io = tokio::time::timeout(patience, connecting)
                .await
                .map_err(|_| format!("no connection within {patience:?}"))?;
            let (sender, connection) =
                http1::handshake(io.map_err(Into::<BoxError>::into)?).await?;
            let driver: BoxFuture<_> = Box::pin(connection);
            Ok(Link {
                sender,
                driver: Some(driver),
            })
        })
    })
}

impl Link {
    /// Sends a request and waits for the head of its answer. The error contains the request if
    /// nothing of it was written.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        // A new link accepts no request before its first poll.
        std::future::poll_fn(|cx| {
            if !self.sender.is_ready() {
                self.drive(cx);
            }
            Poll::Ready(())
        })
        .await;
        let mut answer = pin!(self.sender.try_send_request(request));
        std::future::poll_fn(|cx| {
            self.drive(cx);
            // The answer comes only from the driver, which is polled right here, so no waker is
            // needed.
            answer
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
        })
        .await
    }

    /// Reads and writes what is possible now.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Returns whether the server has closed the connection.
    #[cfg(test)]
    pub(super) fn has_ended(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.driver.is_none()
    }

    /// Returns whether the link accepts a request.
    pub(super) fn is_ready(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }
}
