//! Makes documents on threads of their own, because the only thread for I/O renews the lease and
//! must not wait for them; and only a few at a time, because any client on this machine may ask for
//! thousands. This module must not know what a document contains.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The number of documents that are made at one time.
const AT_ONCE: usize = 2;

/// The threads for documents. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Room {
    /// Waits for a free place, and then makes something on a thread. Returns `None` if that failed.
    pub(crate) async fn make<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let place = self.0.clone().acquire_owned().await.ok()?;
        let made = spawn_blocking(move || {
            // The place is taken until the work ends, even if the client has gone.
            let _place = place;
            work()
        });
        made.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn work_of_a_client_that_has_gone_keeps_its_place() {
        let room = Room::default();
        let (go, wait) = channel::<()>();
        let (begins, began) = channel();
        let work = room.make(move || {
            let _ = begins.send(());
            let _ = wait.recv();
        });
        let mut work = Box::pin(work);
        // A place is free, so the first poll starts the thread.
        tokio::select! {
            biased;
            _ = &mut work => panic!("it waits"),
            () = std::future::ready(()) => {}
        }
        began.recv().unwrap();
        drop(work);
        assert_eq!(room.0.available_permits(), AT_ONCE - 1);
        go.send(()).unwrap();
        assert_eq!(room.make(|| 7).await, Some(7));
    }
}
