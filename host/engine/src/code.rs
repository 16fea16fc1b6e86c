//! The quality of an image's machine code.

/// How an image was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// By Winch, which compiles fast.
    Baseline,
    /// By Cranelift, or loaded from the cache, which only holds Cranelift's images.
    Optimised,
}
