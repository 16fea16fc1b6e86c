//! Bodies that the proxy answers with: frames as they come, until the end, an error or a cut.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::sync::{mpsc, watch};

/// Frames in flight between the server and the client. Small: a slow client must be felt by the server.
const FRAMES: usize = 4;

type Item = Result<Frame<Bytes>, io::Error>;

/// The receiving end of a body that a task feeds.
pub(super) struct Streamed(mpsc::Receiver<Item>);

impl Body for Streamed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        self.0.poll_recv(cx)
    }
}

/// A body that is known already.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Streamed {
    let (sender, receiver) = mpsc::channel(1);
    // There is room for one.
    let _ = sender.try_send(Ok(Frame::data(bytes.into())));
    Streamed(receiver)
}

/// What may become of a watch: as soon as a counter moves, it breaks off, or brings nothing more
/// and stays open.
pub(super) struct Faults {
    pub cut: watch::Receiver<u64>,
    pub swallow: watch::Receiver<u64>,
}

/// Passes `body` on, as far as the faults let it.
pub(super) fn stream<B>(mut body: B, mut faults: Option<Faults>) -> Streamed
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: std::fmt::Display + Send,
{
    let (sender, receiver) = mpsc::channel(FRAMES);
    tokio::spawn(async move {
        loop {
            let (cut, swallow) = match &mut faults {
                Some(faults) => (Some(&mut faults.cut), Some(&mut faults.swallow)),
                None => (None, None),
            };
            let frame = tokio::select! {
                () = sender.closed() => return,
                () = moved(cut) => Some(Err(io::Error::other("cut by the fault proxy"))),
                () = moved(swallow) => return sender.closed().await,
                frame = body.frame() => frame.map(|frame| frame.map_err(|error| io::Error::other(error.to_string()))),
            };
            let Some(frame) = frame else { return };
            let last = frame.is_err();
            if sender.send(frame).await.is_err() || last {
                return;
            }
        }
    });
    Streamed(receiver)
}

/// Returns when the counter moves; never without a counter.
async fn moved(counter: Option<&mut watch::Receiver<u64>>) {
    if let Some(counter) = counter
        && counter.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
