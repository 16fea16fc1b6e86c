//! What a plugin needs of the API server, what of it is missing, and the keys that wait for it.
//!
//! [`needs`] derives it from a description, [`names`] knows plurals, [`access`] the form that RBAC
//! has, [`rules`] merges it, [`roles`] grants it, [`check`] asks the server what is missing, [`wait`] wakes keys when
//! it is granted.

pub(crate) mod access;
pub(crate) mod check;
pub mod names;
pub mod needs;
pub mod roles;
pub(crate) mod rules;
pub(crate) mod wait;
