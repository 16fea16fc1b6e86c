//! The compilation of one component, which may take minutes: it goes on while its keeper looks
//! whether what runs is still granted. It must not know what the code is for.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use vmhost_engine::LoadError;

use crate::conditions::Stop;
use crate::lane::Code;

/// How long a look waits for it. A later one goes on.
const PATIENCE: Duration = Duration::from_secs(20);

/// The reason of the condition while it goes on.
pub(crate) const COMPILING: &str = "Compiling";

/// What came of it.
pub(crate) type Ended = Result<Result<Code, LoadError>, Stop>;

/// The compilation of a keeper. Dropping it ends it.
#[derive(Default)]
pub(crate) struct Compilation {
    /// The digest of the component's origin.
    digest: String,
    /// Empty while no compilation goes on.
    task: JoinSet<Ended>,
    done: Arc<Notify>,
}

impl Compilation {
    /// Waits for the compilation of a component, and begins it unless it has begun. One of another
    /// component ends.
    pub(crate) async fn of<F>(&mut self, digest: &str, begin: impl FnOnce() -> F) -> Ended
    where
        F: Future<Output = Ended> + Send + 'static,
    {
        if self.digest != digest || self.task.is_empty() {
            self.task = JoinSet::new();
            digest.clone_into(&mut self.digest);
            self.done = Arc::default();
            let (compiling, done) = (begin(), self.done.clone());
            self.task.spawn(async move {
                let ended = compiling.await;
                done.notify_one();
                ended
            });
        }
        let Ok(ended) = timeout(PATIENCE, self.task.join_next()).await else {
            let text = "the component is still being compiled";
            return Err(Stop::at("Loaded", COMPILING, text));
        };
        let failed = |error: String| Stop::at("Loaded", "NotLoadable", error);
        match ended {
            Some(Ok(ended)) => ended,
            Some(Err(error)) => Err(failed(error.to_string())),
            None => Err(failed("the compilation did not begin".to_owned())),
        }
    }

    /// Returns whether one goes on for which a look did not wait any longer.
    pub(crate) fn goes_on(&self) -> bool {
        !self.task.is_empty()
    }

    /// Waits until that one has ended.
    pub(crate) async fn ends(&self) {
        match self.goes_on() {
            true => self.done.notified().await,
            false => pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    async fn fails_after(seconds: u64) -> Ended {
        sleep(Duration::from_secs(seconds)).await;
        Ok(Err(LoadError::Invalid("no component".to_owned())))
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_one_goes_on_between_looks() {
        let (mut compilation, began) = (Compilation::default(), Instant::now());
        let mut looks = 0;
        let ended = loop {
            looks += 1;
            match compilation.of("a", || fails_after(50)).await {
                Err(stop) => assert_eq!(stop.reason, COMPILING),
                Ok(ended) => break ended,
            }
        };
        assert!(ended.is_err());
        assert_eq!((looks, began.elapsed().as_secs()), (3, 50));
        assert!(!compilation.goes_on());
    }

    #[tokio::test(start_paused = true)]
    async fn another_component_ends_it() {
        let (mut compilation, began) = (Compilation::default(), Instant::now());
        assert!(compilation.of("a", || fails_after(500)).await.is_err());
        assert!(compilation.goes_on());
        assert!(compilation.of("b", || fails_after(5)).await.is_ok());
        assert_eq!(began.elapsed().as_secs(), 25);
        // What has ended begins anew.
        assert!(compilation.of("b", || fails_after(5)).await.is_ok());
        assert_eq!(began.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn its_end_is_told_once_no_look_waits() {
        let (mut compilation, began) = (Compilation::default(), Instant::now());
        assert!(compilation.of("a", || fails_after(50)).await.is_err());
        compilation.ends().await;
        assert_eq!(began.elapsed().as_secs(), 50);
        assert!(compilation.of("a", || fails_after(50)).await.is_ok());
        let waiting = timeout(Duration::from_secs(500), compilation.ends());
        assert!(waiting.await.is_err(), "no compilation goes on");
    }
}
