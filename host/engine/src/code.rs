//! The quality of an image's machine code.

/// How an image was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// By Winch, which compiles fast.
    Baseline,
    /// By Cranelift, or loaded from the cache, which only holds Cranelift's images.
    Optimised,
}

impl Code {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Optimised => "optimised",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::Baseline, Self::Optimised]
            .into_iter()
            .find(|code| code.name() == name)
    }
}
