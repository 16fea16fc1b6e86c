//! Bodies that arrive whole, in part, or not at all.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::stream::{self, Stream, StreamExt};
use http_body::{Frame, SizeHint};
use http_body_util::{Full, StreamBody};
use tokio::time::advance;

use super::*;

const MIB: usize = 1 << 20;

/// A body that announces a length and sends less, and then nothing.
struct Stalled {
    length: usize,
    sent: usize,
}

impl Body for Stalled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match std::mem::take(&mut self.sent) {
            0 => Poll::Pending,
            sent => Poll::Ready(Some(Ok(Frame::data(vec![b'x'; sent].into())))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length as u64)
    }
}

fn budget() -> Budget {
    Budget::new(8 * MIB, 8 * MIB, MIB, 16 * MIB)
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

fn unknown(frames: Vec<Vec<u8>>) -> StreamBody<impl Stream<Item = Result<Frame<Bytes>, String>>> {
    let frames = frames.into_iter().map(Bytes::from);
    let frames = frames.map(|data| Ok::<_, String>(Frame::data(data)));
    StreamBody::new(stream::iter(frames))
}

#[tokio::test(start_paused = true)]
async fn bodies_of_any_length_are_read_whole() {
    let budget = budget();
    for length in [0, 1, BEGINNING - 1, BEGINNING, BEGINNING + 1, 8 * MIB] {
        let body = Bytes::from(vec![b'a'; length]);
        let (read, room) = budget.read(Full::new(body.clone()), later()).await.unwrap();
        assert_eq!(read, body);
        assert_eq!(room.num_permits(), length / 1024 + 1);
        let half = length / 2;
        let parts = vec![vec![b'a'; half], vec![b'a'; length - half]];
        let (read, _) = budget.read(unknown(parts), later()).await.unwrap();
        assert_eq!(read, body);
    }
    assert_eq!(budget.whole.available_permits(), 16 * 1024 + 2);
    assert_eq!(budget.beginnings.available_permits(), 1024);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_long_or_breaks_off_is_refused() {
    let budget = budget();
    let long = Full::new(Bytes::from(vec![0; 8 * MIB + 1]));
    let error = budget.read(long, later()).await.unwrap_err();
    assert_eq!(error, Unread::TooLarge(8 * MIB));
    let long = unknown(vec![vec![0; MIB]; 9]);
    let error = budget.read(long, later()).await.unwrap_err();
    assert_eq!(error, Unread::TooLarge(8 * MIB));
    let cut = StreamBody::new(stream::iter([Err::<Frame<Bytes>, _>("gone".to_owned())]));
    let error = budget.read(cut, later()).await.unwrap_err();
    assert_eq!(error, Unread::Cut("gone".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn requests_that_stall_hold_up_no_small_one() {
    let budget = budget();
    let whole = |sent: usize| Stalled {
        length: 8 * MIB,
        sent,
    };
    // More of these than there is room for beginnings.
    let silent = 100;
    let mut stalled: Vec<_> = (0..silent)
        .map(|_| budget.read(whole(0), later()).boxed())
        .collect();
    // These have sent enough to take room for all of their bodies, and there is room for two.
    stalled.extend((0..4).map(|_| budget.read(whole(BEGINNING), later()).boxed()));
    for waiting in &mut stalled {
        assert!(waiting.now_or_never().is_none());
    }
    let small = Full::new(Bytes::from_static(b"{}"));
    let read = budget.read(small, later()).now_or_never();
    assert!(read.unwrap().is_ok());

    // A body that does not arrive is given up soon.
    advance(ARRIVAL).await;
    let given_up = stream::iter(stalled).then(|waiting| async move { waiting.now_or_never() });
    let given_up: Vec<_> = given_up.collect().await;
    let slow = |end: &Option<Result<_, Unread>>| matches!(end, Some(Err(Unread::Slow)));
    assert!(given_up.iter().take(silent).all(slow));
}

#[tokio::test(start_paused = true)]
async fn not_more_wait_than_there_is_memory_for() {
    let budget = budget();
    let begun = || Stalled {
        length: 8 * MIB,
        sent: 1,
    };
    // There is room for 15 beginnings.
    let mut stalled: Vec<_> = (0..15 + WAITING)
        .map(|_| budget.read(begun(), later()).boxed())
        .collect();
    for waiting in &mut stalled {
        assert!(waiting.now_or_never().is_none());
    }
    let error = budget.read(begun(), later()).now_or_never().unwrap();
    assert_eq!(error.unwrap_err(), Unread::NoRoom);
    drop(stalled);
    let small = Full::new(Bytes::from_static(b"{}"));
    assert!(budget.read(small, later()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn without_room_until_the_deadline_there_is_an_error() {
    let budget = Budget::new(MIB, MIB, MIB, MIB / 2);
    let large = Full::new(Bytes::from(vec![0; MIB]));
    let error = budget.read(large, later()).await.unwrap_err();
    assert_eq!(error, Unread::NoRoom);
    let nothing = StreamBody::new(stream::once(pending::<Result<Frame<Bytes>, String>>()).boxed());
    assert!(Body::size_hint(&nothing).exact().is_none());
    let began = Instant::now();
    let error = budget.read(nothing, later()).await.unwrap_err();
    assert_eq!(error, Unread::Slow);
    assert!(began.elapsed() < ARRIVAL * 2);
}
