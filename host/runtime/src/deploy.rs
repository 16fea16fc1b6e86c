//! Deploys plugins: turns the bytes of a component into the generation that a plugin's keys run on,
//! and replaces it when the bytes change.
//!
//! ```text
//! source     a component file, or a folder of source code
//!   |
//! files      wait until a changed file is complete (a folder is built instead)
//!   |
//! loader     compile, call `describe` -> plugin
//!   |
//! prepare    check the name, grants, RBAC and conflicts; install CRDs; fill new stores
//!   |            `- tries: repeat a step that may succeed later
//! replace    put the new generation into the plugin's slot, requeue all keys
//!   |
//! optimise   compile optimised code in the background, install it in the running generation
//! ```
//! [`swap`] runs these steps at each change. The [`first`] load does the same at the start, for all
//! plugins together. A failed step leaves the current generation running. [`history`] keeps the
//! versions that ran. [`rollback`] hands one of them to [`prepare`], because of an operator's order
//! ([`orders`]), or because the new version fails on [`probation`]. Before a swap, a [`canary`] can
//! run a version beside the live one: both are members of the [`lineup`]. This module must not know
//! what a turn does.

pub(crate) mod branch;
pub(crate) mod breaker;
pub(crate) mod canary;
pub(crate) mod engage;
pub mod error;
pub mod files;
pub mod first;
pub mod history;
pub mod idle;
mod kept;
pub mod last;
pub(crate) mod lineup;
pub mod loaded;
pub mod loader;
pub(crate) mod optimise;
pub(crate) mod orders;
pub(crate) mod plugins;
pub(crate) mod prepare;
pub(crate) mod probation;
pub(crate) mod registered;
pub(crate) mod replace;
pub(crate) mod rollback;
pub(crate) mod setup;
pub mod slot;
pub mod source;
pub(crate) mod starts;
pub mod swap;
mod tries;
pub(crate) mod unique;
