//! Work that begins on the caller's thread and continues on the runtime that does the I/O.
//!
//! A turn's effects belong to the runtime that never runs guests: there a plugin that spins cannot
//! delay them. But moving them before the first request is written would wake one of that runtime's
//! threads only to write: a wake-up, a context switch and cold caches for each turn. So the
//! caller's thread polls the future first, with that runtime's clock and sockets, until the future
//! waits; the wake-up then resumes it on that runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Maximum number of polls on the caller's thread of a future that wakes itself.
const POLLS: u32 = 8;

/// The work panicked, or its runtime shut down.
#[derive(Debug, thiserror::Error)]
#[error("the task panicked, or its runtime shut down")]
pub struct Abandoned;

/// Runs `work`: its first steps on the caller's thread, the rest on `io`. Once begun, the work runs
/// to its end there even if the returned future is dropped.
///
/// `work` is stored once, and not in the returned future: an `async fn` would store it twice, as it
/// was given and as it runs, in every caller's future.
pub fn begin<T: Send + 'static>(
    io: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = Result<T, Abandoned>> + Send + 'static {
    let (done, wait) = oneshot::channel();
    let rest = Arc::new(Rest {
        io: io.clone(),
        stage: Mutex::new(Stage::Here { woken: false }),
    });
    let work = Box::pin(work.map(|result| {
        // The caller may be gone.
        let _ = done.send(result);
    }));
    async move {
        rest.begin(work);
        wait.await.map_err(|_| Abandoned)
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Rest {
    io: Handle,
    stage: Mutex<Stage>,
}

enum Stage {
    /// The caller's thread polls the work.
    Here { woken: bool },
    /// The work waits for its first wake-up.
    Waiting(Work),
    /// The work has moved to the other runtime, or is done.
    Gone,
}

impl Rest {
    fn begin(self: Arc<Self>, mut work: Work) {
        let waker = Waker::from(self.clone());
        for _ in 0..POLLS {
            let polled = catch_unwind(AssertUnwindSafe(|| {
                // The work's sockets and timers belong to the other runtime.
                let _there = self.io.enter();
                work.as_mut().poll(&mut Context::from_waker(&waker))
            }));
            if !matches!(polled, Ok(Poll::Pending)) {
                // Done, or panicked, which dropped the sender of the answer.
                *self.stage.lock() = Stage::Gone;
                return;
            }
            let mut stage = self.stage.lock();
            match *stage {
                Stage::Here { woken: false } => {
                    *stage = Stage::Waiting(work);
                    return;
                }
                _ => *stage = Stage::Here { woken: false },
            }
        }
        *self.stage.lock() = Stage::Gone;
        self.io.spawn(work);
    }
}

impl Wake for Rest {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut stage = self.stage.lock();
        match std::mem::replace(&mut *stage, Stage::Gone) {
            Stage::Here { .. } => *stage = Stage::Here { woken: true },
            Stage::Waiting(work) => {
                drop(stage);
                self.io.spawn(work);
            }
            Stage::Gone => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::ThreadId;
    use tokio::runtime::{Builder, Runtime};

    fn other() -> Runtime {
        Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    }

    fn here() -> ThreadId {
        std::thread::current().id()
    }

    #[tokio::test]
    async fn it_begins_here_and_goes_on_there() {
        let io = other();
        let (first, (then, clock)) = begin(io.handle(), async {
            let first = here();
            // The other runtime's clock; this runtime may be asleep by then.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            (first, (here(), Handle::current().id()))
        })
        .await
        .unwrap();
        assert_eq!((first, clock), (here(), io.handle().id()));
        assert_ne!(then, here());
        io.shutdown_background();
    }

    /// Wakes itself this many times, then returns its thread.
    async fn restless(mut times: u32) -> ThreadId {
        std::future::poll_fn(|cx| {
            if times == 0 {
                return Poll::Ready(here());
            }
            times -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    #[tokio::test]
    async fn what_need_not_wait_is_done_here() {
        let io = other();
        assert_eq!(begin(io.handle(), restless(0)).await.unwrap(), here());
        assert_eq!(begin(io.handle(), restless(3)).await.unwrap(), here());
        assert_ne!(begin(io.handle(), restless(99)).await.unwrap(), here());
        io.shutdown_background();
    }

    #[tokio::test]
    async fn it_goes_on_when_nobody_waits_and_a_panic_is_told() {
        let io = other();
        let (go, gone) = oneshot::channel::<()>();
        let (told, tell) = oneshot::channel();
        let dropped = begin(io.handle(), async move {
            gone.await.unwrap();
            told.send(here()).unwrap();
        });
        tokio::select! {
            biased;
            _ = dropped => unreachable!(),
            () = async {} => {}
        }
        go.send(()).unwrap();
        tell.await.unwrap();

        let first = begin(io.handle(), async { panic!("at once") }).await;
        assert!(matches!(first, Err::<(), _>(Abandoned)));
        let later = begin(io.handle(), async {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            panic!("later")
        });
        assert!(matches!(later.await, Err::<(), _>(Abandoned)));
        io.shutdown_background();
    }
}
