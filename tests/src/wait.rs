//! Waiting for a condition with a deadline: by this, and not by sleeping, a test waits.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The longest wait for something that should happen soon. Generous, because it only decides how
/// late a failing test fails.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The interval between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls `probe` until it returns `Some`, for at most [`DEADLINE`]. An error counts as "not yet"
/// (tests kill servers) and is reported if it is the last.
pub async fn eventually<T>(what: &str, probe: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
    eventually_within(DEADLINE, what, probe).await
}

/// Like [`eventually`], with another deadline.
pub async fn eventually_within<T>(
    deadline: Duration,
    what: &str,
    mut probe: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    let mut last = None;
    loop {
        let left = deadline.saturating_sub(start.elapsed());
        match tokio::time::timeout(left.max(PAUSE), probe()).await {
            Ok(Ok(Some(value))) => return Ok(value),
            Ok(Ok(None)) => last = None,
            Ok(Err(error)) => last = Some(error),
            Err(_) => {}
        }
        if start.elapsed() >= deadline {
            match last {
                Some(error) => bail!("{what}: not within {deadline:?}; last error: {error:#}"),
                None => bail!("{what}: not within {deadline:?}"),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
