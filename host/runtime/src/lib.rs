//! Runs plugins against a cluster. It knows no command line.
//!
//! ```text
//!  API server --list+watch--> informer ---objects---> store         plugins/*.wasm
//!   ^                            |                      |                 |
//!   |                            | changes              | snapshot        | deploy: load, check,
//!   |                            v                      |                 v fill stores, replace
//!   |                          wake                     |           slot: current generation
//!   |                            | keys                 |                 |
//!   |                            v                      v                 | code
//!   |                        workqueue ----- get ---> worker --- call ----+--> instance
//!   |                            ^                      |                         |
//!   |                            | requeue, retry       v                         |
//!   |                            +------ done ------- settle <------ outcome -----+
//!   |                                                   |
//!   +--------------------- writes ----------------------+
//! ```
//! A change takes seven steps: **watch, store, enqueue** (`vmhost-cluster`, [`wake`],
//! [`controller`]), then **get, call, settle, done** ([`turn`]).
//!
//! | Module | Owns |
//! |---|---|
//! | [`config`] | the operator's settings |
//! | [`observe`] | metrics, log lines, probes, the admin address with the state and the turns |
//! | [`lead`] | leader election: which host may take keys and write, and until when |
//! | [`rights`] | the rights that a plugin needs, and the keys that wait for one |
//! | [`controller`] | one workqueue, and the memory of its keys |
//! | [`wake`] | from a change to the keys that it concerns; reads of the stores |
//! | [`outgoing`] | HTTP requests of plugins to services outside of the cluster |
//! | `elsewhere` | what an effect for a named cluster says |
//! | [`journal`] | a record of each turn, and what woke its key |
//! | [`canary`] | a version that runs a share of the objects before it is live |
//! | [`site`] | the host's clusters besides its own, each with its stores |
//! | [`fleet`] | which clusters there are, from kubeconfigs to sites |
//! | [`deploy`] | from a component's bytes to the generation that keys run on |
//! | [`turn`] | from a key to the decision about it |
//! | [`review`] | admission reviews and conversions: questions that are answered at once |
//! | [`shadow`] | another version that gets each turn after the live one, and writes nothing |
//! | [`given`] | plugins that come, change and go while the host runs |
//! | [`manager`] | the wiring, and the order of the shutdown |
//! | [`runtimes`] | the threads of the process: one for I/O, one per core for guests |
//! | `private` | folders that only this user may write to |
//! | [`table`] | tables for people |
//!
//! These never happen:
//! - a write of a turn outside [`turn::effects`], or without asking [`lead`] first
//! - an object, or the type of an event, in the workqueue
//! - one key in two workers
//! - a guest on the runtime that watches
//! - a call that starts under an older line-up of generations after a newer one was announced
//! - any effect of a failed reload besides a counter, a log line, a status, and with
//!   `--install-crds` the definitions that it had installed by then

pub mod canary;
pub mod config;
pub mod controller;
pub mod deploy;
mod elsewhere;
pub mod fleet;
pub mod given;
pub mod journal;
pub mod lead;
pub mod manager;
pub mod observe;
pub mod outgoing;
mod private;
pub mod review;
pub mod rights;
pub mod runtimes;
pub mod shadow;
pub(crate) mod site;
pub mod table;
pub mod turn;
pub mod wake;
