//! Configuration of a queue.

use std::fmt;
use std::sync::Arc;

use crate::limit::{BackOff, Bucket};
use crate::metrics::{Metrics, NoMetrics};

/// Configuration of a queue. The default is client-go's exponential backoff per key, without a
/// bucket and without metrics.
#[derive(Clone)]
pub struct Config {
    /// Backoff of one key after failures.
    pub back_off: BackOff,
    /// A rate limit over the failures of all keys. client-go sets one by default,
    /// controller-runtime does not.
    pub bucket: Option<Bucket>,
    /// Receives the queue's metrics.
    pub metrics: Arc<dyn Metrics>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            back_off: BackOff::default(),
            bucket: None,
            metrics: Arc::new(NoMetrics),
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("back_off", &self.back_off)
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}
