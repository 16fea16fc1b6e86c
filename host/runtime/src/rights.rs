//! The rights that a plugin needs from the API server: which ones it needs, which are missing, and
//! the keys that wait for them.
//!
//! [`needs`] derives them from a description, [`names`] knows plurals, [`access`] has RBAC's form
//! of a right, [`rules`] merges rights into rules, [`roles`] prints Roles that grant them,
//! [`check`] asks the API server which are missing, [`outside`] finds those that a plugin may not
//! have although the host does, and [`wait`] wakes keys when a right is granted.

pub(crate) mod access;
pub(crate) mod check;
pub mod names;
pub mod needs;
pub(crate) mod outside;
pub mod roles;
pub(crate) mod rules;
pub(crate) mod wait;
