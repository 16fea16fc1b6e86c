//! From a change to a key: which kinds a controller watches, which changes count, and whose keys
//! they wake. And the reads of the same stores.

pub mod live;
pub mod resources;
pub mod sources;
pub(crate) mod triggers;
