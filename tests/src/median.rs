//! The median of a benchmark's measurements.

use std::time::Duration;

use anyhow::{Context, Result};

/// Sorts, and returns the upper median; an error if the list is empty.
pub fn median(took: &mut [Duration]) -> Result<Duration> {
    took.sort_unstable();
    took.get(took.len() / 2)
        .copied()
        .context("the list of measurements is empty")
}
