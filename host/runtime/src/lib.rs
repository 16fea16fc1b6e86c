//! Runs plugins against a cluster. It knows no command line.
//!
//! ```text
//!  API server --list+watch--> informer --text--> store             plugins/*.wasm
//!     ^                          | names only       |                   | deploy: load, check, wire, fill
//!     | writes                   v wake             | read at call time v
//!   settle <--- outcome ---- worker <--get-- workqueue            slot: generation n, replaced in one step
//!     |                         |                                       |
//!     |                         +---- call ----> instance <-------------+
//!     +-- forget / add after / rate limited --> workqueue
//! ```
//! Seven verbs: **watch, store, enqueue** (`vmhost-cluster`, [`wake`], [`controller`]),
//! **get, call, settle, done** ([`turn`]).
//!
//! | Room | Owns |
//! |---|---|
//! | [`config`] | how plugins are run |
//! | [`observe`] | metrics, log lines, probes, the state |
//! | [`lead`] | of several hosts, one works: which may take keys and write, and until when |
//! | [`rights`] | what a plugin needs of the API server; keys that wait for it |
//! | [`controller`] | one queue, and what is remembered of its keys |
//! | [`wake`] | from a change to a key |
//! | [`deploy`] | from bytes to the generation that keys run on |
//! | [`turn`] | from a key to its decision |
//! | [`manager`] | the wiring, and the order in which it ends |
//!
//! What is absent: a write of a turn's outside [`turn::effects`], and one that does not ask
//! [`lead`] first; an object, or an event's type, in the queue; a key in two workers; a guest on the
//! runtime that watches; a call that starts on an older generation after a newer one was announced;
//! anything but a counter, a log line and a status after a reload that failed.

pub mod config;
pub mod controller;
pub mod deploy;
pub mod lead;
pub mod manager;
pub mod observe;
pub mod rights;
pub mod runtimes;
pub mod table;
pub mod turn;
pub mod wake;
