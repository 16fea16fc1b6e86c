//! The bodies of the proxy's answers: frames as they arrive, until the end, an error or a cut.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::sync::{mpsc, watch};

/// The frames in flight between the server and the client. Few, so that the server notices a slow
/// client.
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

/// Returns a body with known content.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Streamed {
    let (sender, receiver) = mpsc::channel(1);
    // The channel has room for one frame.
    let _ = sender.try_send(Ok(Frame::data(bytes.into())));
    Streamed(receiver)
}

/// The faults of a watch: when a counter changes, the watch breaks off, or stays open and silent.
pub(super) struct Faults {
    pub cut: watch::Receiver<u64>,
    pub swallow: watch::Receiver<u64>,
}

/// Passes `body` on, until a fault.
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

/// Returns when the counter changes; never without a counter.
async fn moved(counter: Option<&mut watch::Receiver<u64>>) {
    if let Some(counter) = counter
        && counter.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
