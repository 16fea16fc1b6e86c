//! Wakes keys: from a change of an object to the keys that must be processed.
//!
//! ```text
//! informer   a watch event of one kind
//!   |
//! triggers   apply the predicate, then map the object to keys: itself, its owner, or by label,
//!   |        field, index or the plugin's `map-changes`
//! workqueue  of the controller
//! ```
//! The stores that the same informers fill are read here too: [`sources`] holds a controller's
//! subscriptions and answers reads from their stores, [`live`] sends reads to the API server, and
//! [`resources`] finds the resource that serves a kind. [`keys`] has the mappings that need no
//! store, and `readers` the stores of webhooks and conversions, which have no keys. This module
//! must not know what becomes of a key.

pub mod keys;
pub mod live;
pub(crate) mod readers;
pub mod resources;
pub mod sources;
pub(crate) mod triggers;
