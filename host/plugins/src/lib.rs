//! Plugins as objects of the cluster: finds `Plugin` objects, decides what they may be and do, runs
//! them, and reports on them (`--plugins-from-cluster`).
//!
//! ```text
//! roster     a task for each Plugin object, woken by all that concerns it; one that panics begins
//!   |        again
//!   |
//! keeper     looks: at each change, and from time to time
//!   |          |- revoke: what runs and is not granted any more
//!   |          `- leave: a Plugin that goes
//! wanted     source -> policy -> describe -> settings -> grants -> name
//!   |
//! settle     way: install, swap, try, go back, stay
//!   |          |- rollout: a canary
//!   |          `- recover: a revision that ran before
//! report     conditions, revisions, Events; on every host its own entry in status.hosts
//! ```
//! Every host runs every plugin; the leader alone writes objects, besides each host's own entry.
//! The crate must not know how a plugin runs (`vmhost-runtime` does), nor how a registry is spoken
//! to: the caller brings [`images::Images`].

mod arrival;
mod availability;
mod compilation;
mod conditions;
mod hosts;
pub mod images;
mod keeper;
mod lane;
mod leave;
mod listed;
mod names;
mod object;
mod pace;
mod parsed;
mod past;
mod places;
mod policy;
mod quantity;
mod recover;
mod refused;
mod report;
mod revision;
mod revoke;
mod rollout;
mod roster;
mod scope;
mod selector;
mod settings;
mod settle;
mod shared;
mod source;
mod status;
mod supervise;
mod takeover;
mod terms;
mod verify;
mod wanted;
mod watched;
mod way;

pub use roster::start;
pub use shared::Options;
