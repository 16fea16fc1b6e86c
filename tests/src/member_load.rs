//! A load on member clusters that does not depend on how fast it is dealt with: objects are created
//! at a steady rate, and each is waited for.
//!
//! Must not know which program marks them.

use std::future::Future;
use std::time::Duration;

use anyhow::Result;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};

use crate::members::Member;

/// How many objects may be on their way at once. A load never reaches it, because the rate must not
/// depend on how fast objects are marked.
const ON_THEIR_WAY: usize = 100_000;

/// What became of the objects.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// How long each took from its creation until it was marked.
    pub took: Vec<Duration>,
    /// How many were never marked.
    pub lost: usize,
}

impl Load {
    /// Adds another load.
    pub fn add(&mut self, other: Load) {
        self.took.extend(other.took);
        self.lost += other.lost;
    }

    /// Returns the number of objects.
    pub fn created(&self) -> usize {
        self.took.len() + self.lost
    }
}

/// Creates this many objects a second, in the members in turn, until `until` ends, and waits until
/// all are marked or lost. There must be a member.
pub async fn steady(
    members: &[&Member],
    prefix: &str,
    rate: f64,
    until: impl Future<Output = ()>,
) -> Result<Load> {
    let marked = ticks(rate).take_until(until).map(|number| {
        let member = members[number % members.len()];
        let name = format!("{prefix}-{number}");
        async move { member.mark(&name).await }
    });
    let marked = marked.buffer_unordered(ON_THEIR_WAY);
    let marked: Vec<Option<Duration>> = marked.try_collect().await?;
    let took: Vec<Duration> = marked.iter().flatten().copied().collect();
    let lost = marked.len() - took.len();
    Ok(Load { took, lost })
}

/// Creates this many objects a second, in the members in turn, and waits for none. Ends only with
/// an error. There must be a member.
pub async fn feed(members: &[&Member], prefix: &str, rate: f64) -> Result<()> {
    let created = ticks(rate).map(|number| {
        let member = members[number % members.len()];
        let name = format!("{prefix}-{number}");
        async move { member.create(&name).await }
    });
    created
        .buffer_unordered(ON_THEIR_WAY)
        .try_collect::<()>()
        .await
}

/// Returns the numbers from 0, this many a second.
fn ticks(rate: f64) -> impl Stream<Item = usize> {
    let interval = tokio::time::interval(Duration::from_secs_f64(1.0 / rate));
    stream::unfold((interval, 0), |(mut interval, number)| async move {
        interval.tick().await;
        Some((number, (interval, number + 1)))
    })
}
