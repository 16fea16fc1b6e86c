//! Where the history's functions that read and write files run. It must not know what they do.

use std::sync::Arc;

use super::History;

/// Runs `work` with the history, on a thread that may read and write files. Returns `None` if it
/// panicked, or if the process ends.
pub(crate) async fn with<T: Send + 'static>(
    history: &Arc<History>,
    work: impl FnOnce(&History) -> T + Send + 'static,
) -> Option<T> {
    let history = history.clone();
    let done = tokio::task::spawn_blocking(move || work(&history)).await;
    done.inspect_err(|error| tracing::error!("the history of a plugin: {error}"))
        .ok()
}
