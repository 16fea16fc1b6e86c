//! Work that begins on the thread that asks for it and goes on where the I/O is done.
//!
//! A turn's effects belong to the runtime that never runs guests: there a policy that spins can hold none of them up. But to hand them over before the first
//! request is written wakes one of its threads for nothing but to write: a wake-up, a switch and cold caches for each turn. Here the future is polled where it
//! is, with that runtime's clock and sockets, until it first waits; what it waits for wakes the rest of it over there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How often a future that wakes itself is polled here.
const POLLS: u32 = 8;

/// The work panicked, or its runtime has shut down.
#[derive(Debug, thiserror::Error)]
#[error("it panicked, or the runtime that carried it has ended")]
pub struct Abandoned;

/// Carries `work` out: its first steps right here, the rest on `io`. It goes on to its end there even if this is dropped once it has begun.
///
/// `work` is held in one place, and that is not the future which is returned: an `async fn` would hold it as it was given and as it runs, in everybody's future who waits.
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
        // Whoever asked may have gone.
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
    /// It is being polled by who asked.
    Here { woken: bool },
    /// It waits for its first wake-up.
    Waiting(Work),
    /// It has gone to the other runtime, or is done.
    Gone,
}

impl Rest {
    fn begin(self: Arc<Self>, mut work: Work) {
        let waker = Waker::from(self.clone());
        for _ in 0..POLLS {
            let polled = catch_unwind(AssertUnwindSafe(|| {
                // Its sockets and timers are the other runtime's.
                let _there = self.io.enter();
                work.as_mut().poll(&mut Context::from_waker(&waker))
            }));
            if !matches!(polled, Ok(Poll::Pending)) {
                // Done; or a panic, which has dropped the answer's other end.
                *self.stage() = Stage::Gone;
                return;
            }
            let mut stage = self.stage();
            match *stage {
                Stage::Here { woken: false } => {
                    *stage = Stage::Waiting(work);
                    return;
                }
                _ => *stage = Stage::Here { woken: false },
            }
        }
        *self.stage() = Stage::Gone;
        self.io.spawn(work);
    }

    fn stage(&self) -> std::sync::MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Rest {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut stage = self.stage();
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
            // A clock of the other runtime; this one may be asleep by then.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            (first, (here(), Handle::current().id()))
        })
        .await
        .unwrap();
        assert_eq!((first, clock), (here(), io.handle().id()));
        assert_ne!(then, here());
        io.shutdown_background();
    }

    /// Wakes itself so often, then says where it is.
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
