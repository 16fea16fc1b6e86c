//! A stack of values in fixed-size blocks, so that growing never copies its contents.
//!
//! A `Vec` of a million entries takes milliseconds to double, under the queue's lock. This module
//! does not know keys.

use std::ops::{Index, IndexMut};

/// Values per block: at most 24 KiB for the largest type in use.
const BLOCK: usize = 1024;

/// The stack; see the module.
pub(crate) struct Segments<T> {
    /// All blocks but the last are full; the last is never empty.
    blocks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Segments<T> {
    pub(crate) const fn new() -> Self {
        Self {
            blocks: Vec::new(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, value: T) {
        match self.blocks.last_mut() {
            Some(block) if block.len() < BLOCK => block.push(value),
            // The first block grows as a plain vector: most queues are small.
            None => self.blocks.push(vec![value]),
            Some(_) => {
                let mut block = Vec::with_capacity(BLOCK);
                block.push(value);
                self.blocks.push(block);
            }
        }
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let block = self.blocks.last_mut()?;
        let value = block.pop();
        if block.is_empty() {
            self.blocks.pop();
            shrink(&mut self.blocks);
        } else if self.len < BLOCK {
            shrink(block);
        }
        self.len -= 1;
        value
    }
}

/// Frees memory when three in four values are gone, in steps so large that each value is moved at
/// most once on average.
#[inline]
fn shrink<T>(values: &mut Vec<T>) {
    if values.len() < values.capacity() / 4 && values.capacity() > 64 {
        values.shrink_to(values.len() * 2);
    }
}

impl<T> Index<usize> for Segments<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.blocks[at / BLOCK][at % BLOCK]
    }
}

impl<T> IndexMut<usize> for Segments<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.blocks[at / BLOCK][at % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_stack_across_blocks() {
        let mut segments = Segments::new();
        for n in 0..3 * BLOCK {
            segments.push(n);
        }
        segments[BLOCK] = 7;
        assert_eq!(
            (segments.len(), segments[BLOCK], segments[2 * BLOCK - 1]),
            (3 * BLOCK, 7, 2 * BLOCK - 1)
        );
        for n in (0..3 * BLOCK).rev() {
            assert_eq!(segments.pop(), Some(if n == BLOCK { 7 } else { n }));
        }
        assert_eq!(
            (segments.pop(), segments.len(), segments.blocks.len()),
            (None, 0, 0)
        );
        for n in 0..100 * BLOCK {
            segments.push(n);
        }
        while segments.len() > 1 {
            segments.pop();
        }
        assert!(segments.blocks.capacity() + segments.blocks[0].capacity() <= 2 * 64);
    }
}
