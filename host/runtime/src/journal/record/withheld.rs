//! What a record has in place of texts that are too large to keep, and of values that no reader may
//! see. Plain data. This module must not know records.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use vmhost_core::Digest;

/// The digests of the texts of a record that was too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digests {
    /// Of the object that the turn saw. `None` if it was gone.
    pub(crate) object: Option<Digest>,
    /// Of the object of the last successful turn, if the controller asks for it.
    pub(crate) previous: Option<Digest>,
    /// The number of reads, and the digest of all questions and answers.
    pub(crate) reads: (u32, Digest),
    /// The number of effects, and the digest of all of them.
    pub(crate) effects: (u32, Digest),
}

/// The settings that a plugin had in a turn. A document shows only their digest.
#[derive(Clone, Default)]
pub(crate) struct Configured(pub(crate) Arc<HashMap<String, String>>);

/// Without the values, which may be secret.
impl fmt::Debug for Configured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Configured").finish_non_exhaustive()
    }
}
