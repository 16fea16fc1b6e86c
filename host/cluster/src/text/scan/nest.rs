//! How deep a value nests, and in what. It must not know any text.

/// The nesting of a value: one bit per level, set for an object.
#[derive(Default)]
pub(super) struct Nest {
    depth: usize,
    /// The innermost levels; the lowest bit is the innermost.
    bits: u64,
    /// The outer levels, 64 per word.
    outer: Vec<u64>,
}

impl Nest {
    #[inline]
    pub(super) fn enter(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    #[inline]
    pub(super) fn inside(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }

    #[inline]
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
        self.bits >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }
}
