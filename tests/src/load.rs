//! Requests at a steady rate, each begun when it is due, whether or not earlier ones have ended.
//!
//! Owns the rate, the times that requests took, and the reasons of those that failed. Must not know
//! what is asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinError, JoinHandle, JoinSet};

/// How many requests run at once. With more, a server that falls behind would run out of memory or
/// connections; with these, the rate falls, which [`Figures::rate`] shows.
const AT_ONCE: usize = 256;

/// Requests that go on until they are stopped. Dropping the value stops them too.
pub struct Load {
    stop: oneshot::Sender<()>,
    sending: JoinHandle<Figures>,
}

/// What came of a load.
#[derive(Default)]
pub struct Figures {
    /// Of the requests that succeeded.
    took: Vec<Duration>,
    failed: usize,
    /// How many requests failed for a reason, and its text, by the text without its numbers.
    reasons: BTreeMap<String, (usize, String)>,
    /// How long requests were begun.
    time: Duration,
}

impl Load {
    /// Begins to send. `send` gets the number of each request.
    pub fn start<S>(rate: u32, send: impl Fn(usize) -> S + Send + 'static) -> Load
    where
        S: Future<Output = Result<()>> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let sending = tokio::spawn(keep_sending(rate, send, stopped));
        Load { stop, sending }
    }

    /// Begins no further request, and waits for those that run.
    pub async fn stop(self) -> Result<Figures> {
        drop(self.stop);
        self.sending.await.context("the load panicked")
    }
}

async fn keep_sending<S>(
    rate: u32,
    send: impl Fn(usize) -> S,
    mut stopped: oneshot::Receiver<()>,
) -> Figures
where
    S: Future<Output = Result<()>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let (gap, start) = (Duration::from_secs(1) / rate, Instant::now());
    let (mut running, mut figures) = (JoinSet::new(), Figures::default());
    let mut due = start;
    for number in 0_usize.. {
        tokio::select! {
            biased;
            _ = &mut stopped => break,
            () = tokio::time::sleep_until(due.into()) => {}
        }
        due += gap;
        let Ok(place) = places.clone().acquire_owned().await else {
            break;
        };
        let sending = send(number);
        let began = Instant::now();
        running.spawn(async move {
            let outcome = sending.await;
            drop(place);
            (began.elapsed(), outcome)
        });
        while let Some(ended) = running.try_join_next() {
            figures.add(ended);
        }
    }
    figures.time = start.elapsed();
    while let Some(ended) = running.join_next().await {
        figures.add(ended);
    }
    figures
}

impl Figures {
    fn add(&mut self, ended: Result<(Duration, Result<()>), JoinError>) {
        let reason = match ended {
            Ok((took, Ok(()))) => return self.took.push(took),
            Ok((_, Err(error))) => format!("{error:#}"),
            Err(panic) => panic.to_string(),
        };
        self.failed += 1;
        let known = self.reasons.entry(without_numbers(&reason));
        known.or_insert((0, reason)).0 += 1;
    }

    /// Adds the figures of another load.
    pub fn join(&mut self, other: Figures) {
        self.took.extend(other.took);
        self.failed += other.failed;
        self.time += other.time;
        for (kind, (count, reason)) in other.reasons {
            self.reasons.entry(kind).or_insert((0, reason)).0 += count;
        }
    }

    /// Returns how many requests were sent.
    pub fn sent(&self) -> usize {
        self.took.len() + self.failed
    }

    /// Returns how many requests failed.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// Returns how many requests were begun each second.
    pub fn rate(&self) -> f64 {
        self.sent() as f64 / self.time.as_secs_f64()
    }

    /// Returns the time within which so many of a hundred successful requests ended.
    pub fn within(&self, of_hundred: usize) -> Result<Duration> {
        let mut took = self.took.clone();
        took.sort_unstable();
        let at = took.len() * of_hundred / 100;
        let found = took.get(at.min(took.len().saturating_sub(1))).copied();
        found.context("no request succeeded")
    }

    /// Returns a line for each distinct reason of a failure: how often it came, and its text.
    pub fn reasons(&self) -> Vec<String> {
        let all = self.reasons.values();
        all.map(|(count, reason)| format!("{count} times: {reason}"))
            .collect()
    }
}

/// Returns a text with `#` for each run of digits, so that names and ports make no distinct reason.
fn without_numbers(text: &str) -> String {
    let mut kind = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if kind.ends_with('#') => {}
            true => kind.push('#'),
            false => kind.push(letter),
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn reasons_differ_by_more_than_numbers() {
        let mut figures = Figures::default();
        for reason in ["pod-17: 500", "pod-18: 500", "pod-19: refused"] {
            figures.add(Ok((Duration::ZERO, Err(anyhow!(reason)))));
        }
        figures.add(Ok((Duration::from_millis(3), Ok(()))));
        assert_eq!((figures.sent(), figures.failed()), (4, 3));
        let reasons = figures.reasons();
        assert_eq!(
            reasons,
            ["2 times: pod-17: 500", "1 times: pod-19: refused"]
        );
        assert_eq!(figures.within(99).unwrap(), Duration::from_millis(3));
    }

    #[test]
    fn the_slowest_of_a_hundred_is_not_within_98() {
        let mut figures = Figures::default();
        for at in (1..=100).rev() {
            figures.add(Ok((Duration::from_millis(at), Ok(()))));
        }
        assert_eq!(figures.within(50).unwrap(), Duration::from_millis(51));
        assert_eq!(figures.within(98).unwrap(), Duration::from_millis(99));
        assert_eq!(figures.within(99).unwrap(), Duration::from_millis(100));
        assert!(Figures::default().within(99).is_err());
    }

    #[tokio::test]
    async fn all_that_was_begun_is_counted() {
        let (sent, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let load = Load::start(1_000, move |number| {
            let sent = sent.clone();
            async move { sent.send(number).context("nobody counts") }
        });
        for _ in 0..10 {
            begun.recv().await.unwrap();
        }
        let figures = load.stop().await.unwrap();
        let mut all = 10;
        while begun.recv().await.is_some() {
            all += 1;
        }
        assert_eq!((figures.sent(), figures.failed()), (all, 0));
    }
}
