//! A fixed head and a text in one shared allocation: the building block of a cache of many small
//! values.
//!
//! This module contains the only `unsafe` code of this crate: Rust can represent such a value (an
//! `Arc` of a struct that ends in a `str`), but has no safe way to build one whose length is known
//! only at run time.

use std::fmt;
use std::mem::{MaybeUninit, offset_of};
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

/// A head, to which it dereferences, followed by a text.
#[repr(C, align(8))]
#[derive(PartialEq, Eq)]
pub struct Tailed<H> {
    head: H,
    /// The text.
    pub text: str,
}

/// As [`Tailed`], but sized. Both are `repr(C)`, so their texts begin at the same offset.
#[repr(C, align(8))]
struct Twin<H> {
    head: H,
    text: [u8; 0],
}

/// The unit of allocation.
#[repr(align(8))]
struct Word(#[allow(dead_code, reason = "only its size matters")] [u8; 8]);

impl<H> Tailed<H> {
    const TEXT: usize = offset_of!(Twin<H>, text);
    const SAME_ALIGNMENT: () = assert!(align_of::<Twin<H>>() == align_of::<Word>());

    /// Allocates the head followed by the concatenated pieces. Panics if the pieces do not have
    /// `len` bytes in total.
    pub fn new<'p>(head: H, len: usize, pieces: impl IntoIterator<Item = &'p str>) -> Arc<Self> {
        const { Self::SAME_ALIGNMENT };
        let words = (Self::TEXT + len).div_ceil(size_of::<Word>());
        let mut block: Arc<[MaybeUninit<Word>]> = Arc::new_uninit_slice(words);
        let Some(place) = Arc::get_mut(&mut block) else {
            unreachable!("the block is not shared yet")
        };
        let place = place.as_mut_ptr();
        #[allow(unsafe_code, reason = "see the module")]
        // SAFETY: the block has at least TEXT + len bytes and is not shared yet; both the block and
        // the slice hold `MaybeUninit` bytes.
        let mut rest = unsafe {
            let text = place.cast::<MaybeUninit<u8>>().add(Self::TEXT);
            std::slice::from_raw_parts_mut(text, len)
        };
        for piece in pieces {
            let (here, behind) = rest.split_at_mut(piece.len());
            here.write_copy_of_slice(piece.as_bytes());
            rest = behind;
        }
        assert!(
            rest.is_empty(),
            "the pieces are shorter than the given length"
        );
        #[allow(unsafe_code, reason = "see the module")]
        // SAFETY: the block begins with TEXT bytes for the head, and has the head's alignment
        // (`SAME_ALIGNMENT`).
        unsafe {
            place.cast::<H>().write(head);
        }
        let block = Arc::into_raw(block).cast::<u8>();
        let whole = ptr::slice_from_raw_parts(block, len) as *const Self;
        #[allow(unsafe_code, reason = "see the module")]
        // SAFETY: the pointer comes from `into_raw`, and the original value has the alignment
        // (`SAME_ALIGNMENT`) and the size of the new pointee: TEXT + len, rounded up to the
        // alignment. The head is initialised; so is the whole text, and concatenated `str`s are a
        // valid `str`.
        unsafe {
            Arc::from_raw(whole)
        }
    }
}

impl<H> Deref for Tailed<H> {
    type Target = H;

    fn deref(&self) -> &H {
        &self.head
    }
}

impl<H: fmt::Debug> fmt::Debug for Tailed<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.head, &self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_text_come_back_whatever_the_length() {
        let dropped = Arc::new(());
        for len in 0..40 {
            let text = "é".repeat(len);
            let (one, two) = text.split_at(len / 2 * 2);
            let made = Tailed::new((7u8, dropped.clone()), text.len(), [one, "", two]);
            assert_eq!((made.0, &made.text), (7, &*text));
            assert_eq!(size_of_val(&*made) % 8, 0);
            let other = made.clone();
            drop(made);
            assert_eq!(other.text.len(), text.len());
            assert_eq!(Arc::strong_count(&dropped), 2);
        }
        assert_eq!(Arc::strong_count(&dropped), 1);
        let small = Tailed::new(5u32, 3, ["abc"]);
        assert_eq!((size_of_val(&*small), **small), (8, 5));
        assert_eq!(format!("{small:?}"), "5 \"abc\"");
    }

    #[test]
    #[should_panic(expected = "shorter than the given length")]
    fn a_piece_too_few_is_refused() {
        Tailed::new(Box::new(1), 3, ["ab"]);
    }

    #[test]
    #[should_panic]
    fn a_piece_too_many_is_refused() {
        Tailed::new(Box::new(1), 3, ["ab", "cd"]);
    }
}
