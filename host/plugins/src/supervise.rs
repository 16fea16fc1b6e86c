//! Begins a task again that ended by a panic, since a fault of the host must leave no `Plugin`
//! without oversight. It must not know what the task does.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// The first pause before a task begins again. Each further one is twice as long.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// After this long without a panic, the pauses begin anew.
const SOUND: Duration = Duration::from_secs(600);

/// Runs a task about something until it ends by itself. `begin` makes the task, and is told whether
/// the one before ended by a panic. The first pause after the sender of `life` is gone is left out.
pub(crate) async fn supervise<T, F>(
    about: &str,
    life: watch::Receiver<T>,
    mut begin: impl FnMut(bool) -> F,
) where
    F: Future<Output = ()>,
{
    let (mut pause, mut is_again, mut has_hurried) = (FIRST, false, false);
    loop {
        let began = Instant::now();
        let task = AssertUnwindSafe(begin(is_again));
        let Err(panic) = task.catch_unwind().await else {
            return;
        };
        if began.elapsed() >= SOUND {
            pause = FIRST;
        }
        tell(about, &*panic, pause);
        tokio::select! {
            () = sleep(pause) => {}
            // Once: what panics while it ends would do so without a pause.
            () = closed(life.clone()), if !has_hurried => has_hurried = true,
        }
        pause = (pause * 2).min(LONGEST);
        is_again = true;
    }
}

/// Waits until the sender is gone.
async fn closed<T>(mut life: watch::Receiver<T>) {
    while life.changed().await.is_ok() {}
}

fn tell(about: &str, panic: &(dyn Any + Send), pause: Duration) {
    let why = text(panic);
    tracing::error!(
        "the task of {about} panicked, which is a fault of vmhost: {why}; it begins again in \
         {pause:?}"
    );
}

/// What a panic says.
fn text(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it says nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_begins_again_after_longer_and_longer_pauses() {
        let (_sender, life) = watch::channel(());
        let start = Instant::now();
        let mut begun = Vec::new();
        supervise("Plugin a/b", life, |is_again| {
            begun.push((start.elapsed().as_secs(), is_again));
            let is_last = begun.len() == 9;
            async move { assert!(is_last, "a fault") }
        })
        .await;
        let times: Vec<u64> = begun.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        let told: Vec<bool> = begun.iter().map(|(_, is_again)| *is_again).collect();
        assert!(!told[0] && told[1..].iter().all(|is_again| *is_again));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_waits_for_no_pause() {
        let (sender, life) = watch::channel(());
        let start = Instant::now();
        let mut sender = Some(sender);
        supervise("Plugin a/b", life, |is_again| {
            drop(sender.take());
            async move { assert!(is_again, "a fault") }
        })
        .await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[test]
    fn a_panic_is_told_in_its_own_words() {
        assert_eq!(text(&"static"), "static");
        assert_eq!(text(&"owned".to_owned()), "owned");
        assert_eq!(text(&7), "it says nothing");
    }
}
