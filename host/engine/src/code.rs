//! How good the code of an image is.

/// How an image was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// By Winch, fast.
    Baseline,
    /// By Cranelift, or loaded from the cache, where only Cranelift's images are kept.
    Optimised,
}
