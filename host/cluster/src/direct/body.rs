//! The body of an answer. It drives its connection, and returns the connection to the pool at its
//! end. This module must not know what an answer means.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use super::Pool;
use super::link::Link;
use crate::error::BoxError;

/// A body. Dropping it before its end closes the connection.
pub(crate) struct Body {
    incoming: Incoming,
    /// `None` if the body has been read, or its connection broke.
    link: Option<Link>,
    idle: Arc<Pool>,
}

impl Body {
    pub(super) fn new(incoming: Incoming, link: Link, idle: Arc<Pool>) -> Self {
        Self {
            incoming,
            link: Some(link),
            idle,
        }
    }

    /// Returns the connection to the pool: the whole answer has been read.
    fn give_back(&mut self, cx: &mut Context<'_>) {
        let Some(mut link) = self.link.take() else {
            return;
        };
        if !link.is_ready() {
            link.drive(cx);
        }
        if link.is_ready() {
            self.idle.keep(link);
        }
    }

    /// Polls what has been read already. Frames come only from the driver, so no waker is needed.
    fn next(&mut self) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.incoming).poll_frame(&mut Context::from_waker(Waker::noop()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut next = self.next();
        if next.is_pending()
            && let Some(link) = &mut self.link
        {
            link.drive(cx);
            next = self.next();
        }
        match &next {
            Poll::Ready(None) => self.give_back(cx),
            Poll::Ready(Some(Ok(_))) if self.incoming.is_end_stream() => self.give_back(cx),
            Poll::Ready(Some(Err(_))) => {
                self.link = None;
                self.idle.clear();
            }
            Poll::Pending | Poll::Ready(_) => {}
        }
        next.map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
