//! One conversion review, batch by batch.
//!
//! This module owns the order in which a policy gets the objects of a review. It must not know
//! HTTP.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde_json::value::RawValue;
use tokio::time::timeout_at;

use crate::arrival::Arrival;
use crate::policy::{Policy, Unanswered};
use crate::review::conversion::{self, Conversion};

/// How many batches of one review a policy converts at once.
const AT_ONCE: usize = 4;
/// From how many bytes on a review is read and written on a thread that may block.
pub(crate) const LARGE: usize = 1 << 20;

type Objects = Vec<Box<RawValue>>;

/// Where the objects of a review are converted.
pub(crate) struct Batches<'a> {
    pub policy: &'a dyn Policy,
    pub plugin: &'a str,
    pub conversion: &'a str,
    pub arrival: Arrival,
}

impl Batches<'_> {
    /// Converts the objects of a review. Returns the body of the answer, which may say why nothing
    /// was converted.
    pub async fn answer(&self, review: Conversion) -> Result<Vec<u8>, Unanswered> {
        let Conversion {
            uid,
            desired,
            objects,
        } = review;
        let mut pending: Vec<BoxFuture<'_, Result<Objects, Unanswered>>> = Vec::new();
        let mut bytes = 0_usize;
        for batch in conversion::batches(objects) {
            bytes += batch.iter().map(|object| object.get().len()).sum::<usize>();
            pending.push(Box::pin(self.batch(&uid, &desired, batch)));
        }
        let converted = stream::iter(pending).buffered(AT_ONCE).try_concat().await;
        let written = match converted {
            Ok(objects) => {
                let uid = uid.clone();
                off_thread(bytes > LARGE, move || conversion::answer(&uid, &objects)).await?
            }
            Err(Unanswered::Failed(message)) => {
                let (plugin, name) = (self.plugin, self.conversion);
                tracing::debug!(plugin, conversion = name, %message, "conversion failed");
                conversion::refusal(&uid, &message)
            }
            Err(unanswered) => return Err(unanswered),
        };
        written.map_err(|error| Unanswered::Failed(error.to_string()))
    }

    async fn batch(
        &self,
        uid: &str,
        desired: &str,
        objects: Objects,
    ) -> Result<Objects, Unanswered> {
        let asked = self.policy.convert(
            self.plugin,
            self.conversion,
            uid,
            desired,
            objects,
            self.arrival.clone(),
        );
        let converted = timeout_at(self.arrival.deadline.into(), asked)
            .await
            .unwrap_or(Err(Unanswered::TimedOut))?;
        Ok(converted.into_objects())
    }
}

/// Runs a piece of work, on a thread that may block if it is `large`.
pub(crate) async fn off_thread<T: Send + 'static>(
    large: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unanswered> {
    if !large {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Unanswered::Failed(error.to_string()))
}
