//! Several copies of a value, so that threads which write it in each turn do not write the same
//! cache line. Two cores that share a cache line wait for each other for as long as a short plugin
//! call takes.
//!
//! This module decides which thread writes which copy, and knows nothing about the value.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

/// Twice the number of cores, so that the few threads that run no guests also get copies of their
/// own.
static STRIPES: LazyLock<usize> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (2 * cores).next_power_of_two()
});

/// Number of threads that have been assigned a copy.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// One `T` for each of a few groups of threads. Threads may share a copy: `T` must be `Sync`, and
/// is seldom contended.
#[derive(Debug)]
pub struct Striped<T>(Box<[CachePadded<T>]>);

impl<T: Default> Default for Striped<T> {
    fn default() -> Self {
        Self((0..*STRIPES).map(|_| CachePadded::default()).collect())
    }
}

impl<T> Striped<T> {
    /// The calling thread's copy.
    pub fn mine(&self) -> &T {
        &self.0[THREAD.with(|thread| thread % self.0.len())]
    }

    /// All copies, starting with the calling thread's.
    pub fn from_mine(&self) -> impl Iterator<Item = &T> {
        let (before, after) = self.0.split_at(THREAD.with(|thread| thread % self.0.len()));
        after.iter().chain(before).map(|padded| &**padded)
    }

    /// All copies.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|padded| &**padded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_thread_has_its_place_and_all_see_all() {
        let striped: Striped<Mutex<Vec<usize>>> = Striped::default();
        std::thread::scope(|scope| {
            for number in 0..9 {
                let striped = &striped;
                scope.spawn(move || {
                    striped.mine().lock().unwrap().push(number);
                    let mine = striped.from_mine().next().unwrap().lock().unwrap();
                    assert!(mine.contains(&number));
                });
            }
        });
        let mut all: Vec<usize> = Vec::new();
        for one in striped.iter() {
            all.extend(one.lock().unwrap().iter());
        }
        all.sort_unstable();
        assert_eq!(all, (0..9).collect::<Vec<_>>());
        assert_eq!(striped.iter().count(), striped.from_mine().count());
    }
}
