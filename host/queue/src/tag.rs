//! The note that an add may send along to the run that it causes. This module owns the trait, and
//! must not know what a note says.

/// A note that travels with a key: the run gets the joined tags of all adds since the key was last
/// taken, and no add's tag reaches two runs. The queue never looks at a tag.
///
/// The tags of adds during a run belong to the next run. A run that comes only from the decision
/// about the last one (a retry, a delay) gets the default tag.
pub trait Tag: Copy + Default + Send + 'static {
    /// Joins the tags of two adds; the order does not matter.
    #[must_use]
    fn join(self, other: Self) -> Self;
}

/// No tag.
impl Tag for () {
    fn join(self, (): Self) -> Self {}
}
