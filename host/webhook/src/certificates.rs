//! The certificates with which webhooks and metrics are served.
//!
//! This room owns where they come from: an authority of vmhost's own, kept in a Secret (that of
//! metrics in memory), or a folder that someone else fills. It must not know the objects that
//! register webhooks.

pub(crate) mod authority;
pub(crate) mod folder;
pub(crate) mod moment;
pub(crate) mod own;
pub(crate) mod rotation;
pub(crate) mod shown;
