//! The median and other quantiles of a benchmark's measurements.

use std::time::Duration;

use anyhow::{Context, Result};

/// Sorts, and returns the upper median; an error if the list is empty.
pub fn median(took: &mut [Duration]) -> Result<Duration> {
    took.sort_unstable();
    took.get(took.len() / 2)
        .copied()
        .context("the list of measurements is empty")
}

/// Sorts, and returns a quantile by nearest rank; an error if the list is empty.
pub fn quantile(took: &mut [Duration], q: f64) -> Result<Duration> {
    took.sort_unstable();
    let rank = (q * took.len() as f64).ceil() as usize;
    took.get(rank.saturating_sub(1))
        .copied()
        .context("the list of measurements is empty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_measurement() {
        let mut took: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        let of = |took: &mut [Duration], q| quantile(took, q).unwrap().as_millis();
        assert_eq!(of(&mut took, 0.5), 100);
        assert_eq!(of(&mut took, 0.99), 198);
        assert_eq!(of(&mut took, 1.0), 200);
        assert!(quantile(&mut [], 0.5).is_err());
    }
}
