//! The middle of what a benchmark measured.

use std::time::Duration;

use anyhow::{Context, Result};

/// Sorts, and returns the upper of the middle ones; an error if nothing was measured.
pub fn median(took: &mut [Duration]) -> Result<Duration> {
    took.sort_unstable();
    took.get(took.len() / 2)
        .copied()
        .context("nothing was measured")
}
