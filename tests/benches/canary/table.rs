//! The table that the benchmark prints: a row for each part. This module must not know how a part
//! is measured.

use std::collections::BTreeSet;

use vmhost_tests::sides::Told;
use vmhost_tests::vm_load::Population;

/// Keys that are printed of those that were on both versions.
const SHOWN: usize = 5;

/// What one part of the benchmark has found.
#[derive(Default)]
pub(super) struct Counts {
    /// Writes of the load.
    pub(super) writes: usize,
    /// Turns that hosts told.
    pub(super) turns: usize,
    /// The keys that were on both versions.
    pub(super) both: BTreeSet<String>,
    /// VMs that are not as the version in charge leaves them.
    pub(super) lost: usize,
}

impl Counts {
    /// Adds the turns of a host.
    pub(super) fn add(&mut self, told: &Told) {
        self.turns += told.count();
        self.both.extend(told.on_both());
    }
}

/// The rows so far.
pub(super) struct Table {
    is_good: bool,
}

impl Table {
    /// Prints the titles.
    pub(super) fn new() -> Table {
        println!(
            "{:<40}{:>9}{:>9}{:>9}{:>9}{:>9}",
            "", "objects", "writes", "turns", "on both", "lost"
        );
        Table { is_good: true }
    }

    /// Prints a row.
    pub(super) fn row(&mut self, what: &str, population: &Population, counts: &Counts) {
        let (objects, both) = (population.count(), counts.both.len());
        println!(
            "{what:<40}{objects:>9}{:>9}{:>9}{both:>9}{:>9}",
            counts.writes, counts.turns, counts.lost
        );
        for key in counts.both.iter().take(SHOWN) {
            println!("    on both: {key}");
        }
        self.is_good &= both == 0 && counts.lost == 0;
    }

    /// Returns whether no key was on both versions, and none was lost.
    pub(super) fn is_good(&self) -> bool {
        self.is_good
    }
}
