//! The shadow of a plugin: another version, the candidate, gets each turn of the live version after
//! the live version has run it. Nothing that the candidate wants is carried out.
//!
//! ```text
//! worker --place--> queue: bounded, drops     a thread of its own, with the lowest priority
//!                     |                          |
//!                     +-----------------------> run --> pair: call the candidate with the request
//!                                                |        and the answers of the turn, compare,
//!                                                |        mask what the live version does not
//!                                                v        repeat either
//!                                             results: counts, kinds of differences, the last
//!                                                      turns of each key that differ; redacted
//! ```
//! `order` starts and ends shadows; the admin address reaches it through `door`. Workers must not
//! know more of a shadow than `place`.
//!
//! A shadow sends no request, writes nothing, records no Event, and counts in no metric of the live
//! version. Without a shadow, a turn pays for one relaxed load.

pub(crate) mod answers;
pub(crate) mod compare;
pub(crate) mod difference;
pub(crate) mod door;
pub(crate) mod fit;
pub(crate) mod job;
pub(crate) mod keys;
pub(crate) mod load;
pub(crate) mod mask;
pub mod order;
pub(crate) mod pair;
pub(crate) mod place;
pub(crate) mod queue;
pub mod report;
mod rest;
pub(crate) mod results;
pub(crate) mod run;
pub(crate) mod running;
pub(crate) mod what_if;
