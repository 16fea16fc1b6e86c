//! The compilation of one component, which may take minutes: it goes on while its keeper looks
//! whether what runs is still granted. It must not know what the code is for.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use vmhost_engine::LoadError;

use crate::conditions::Stop;
use crate::lane::Code;

/// How long a look waits for it. A later one goes on.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of it.
pub(crate) type Ended = Result<Result<Code, LoadError>, Stop>;

/// The compilation of a keeper. Dropping it ends it.
#[derive(Default)]
pub(crate) struct Compilation {
    /// The digest of the component's origin.
    digest: String,
    task: JoinSet<Ended>,
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
            self.task.spawn(begin());
        }
        let Ok(ended) = timeout(PATIENCE, self.task.join_next()).await else {
            let text = "the component is still being compiled";
            return Err(Stop::at("Loaded", "Compiling", text));
        };
        let failed = |error: String| Stop::at("Loaded", "NotLoadable", error);
        match ended {
            Some(Ok(ended)) => ended,
            Some(Err(error)) => Err(failed(error.to_string())),
            None => Err(failed("the compilation did not begin".to_owned())),
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
                Err(stop) => assert_eq!(stop.reason, "Compiling"),
                Ok(ended) => break ended,
            }
        };
        assert!(ended.is_err());
        assert_eq!((looks, began.elapsed().as_secs()), (3, 50));
    }

    #[tokio::test(start_paused = true)]
    async fn another_component_ends_it() {
        let (mut compilation, began) = (Compilation::default(), Instant::now());
        assert!(compilation.of("a", || fails_after(500)).await.is_err());
        assert!(compilation.of("b", || fails_after(5)).await.is_ok());
        assert_eq!(began.elapsed().as_secs(), 25);
        // What has ended begins anew.
        assert!(compilation.of("b", || fails_after(5)).await.is_ok());
        assert_eq!(began.elapsed().as_secs(), 30);
    }
}
