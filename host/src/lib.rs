//! vmhost runs Kubernetes controllers whose logic is a WebAssembly component.
//!
//! ```text
//!  API server --list+watch--> informer --text--> store             plugins/*.wasm (file, or folder of source)
//!     ^                          | names only       |                   | reload: settle on content, compile, describe, check
//!     | writes                   v                  | read at call time v
//!   settle <--- outcome ---- worker <--get-- workqueue            registry: generation n, replaced in one step
//!     |                         |                                       |
//!     |                         +---- call ----> instance <-------------+
//!     +-- forget / add after / rate limited --> workqueue
//! ```
//! Seven verbs: **watch, store, enqueue** (`vmhost-cluster`, [`controller`]), **get, call, settle, done** ([`worker`], [`settle`]).
//!
//! | File | Owns |
//! |---|---|
//! | [`cli`], [`config`] | what the user typed; what it means |
//! | [`manager`] | who is started and stopped, in which order |
//! | [`controller`] | one queue, its keys' memory of failures, what wakes them |
//! | [`worker`] | the hot path |
//! | [`settle`], [`writes`], [`last_writes`] | from effects to writes; which of them need not be sent |
//! | [`verdict`], [`decide`] | from a write's answer to what it means; from that to a queue decision |
//! | [`rights`] | keys that wait until somebody grants a right, and the question whether it is granted |
//! | [`own_writes`] | telling this host's writes from others' |
//! | [`registry`], [`sources`] | generations of a plugin, with the stores that each reads |
//! | [`triggers`], [`mapper`] | whom a change wakes: predicates and mappings; those that the policy makes itself |
//! | [`live`], [`resources`] | reads past the stores; which resource serves a kind |
//! | [`finalizer`], [`previous`], [`hot`] | clean-up before an object goes; what a key looked like last; keys that keep themselves busy |
//! | [`leader`] | of several hosts, one works: who may take keys and write, and until when |
//! | [`setup`] | what has to be in the cluster before a plugin's controllers start |
//! | [`breaker`] | leaving a policy in peace whose calls all fail |
//! | [`runtimes`] | the threads of I/O and of guests, and who goes first |
//! | [`idle`], [`trim`] | taking code out of memory: of plugins that nobody calls, of the host's start |
//! | [`reload`], [`watch_files`] | new bytes to a new generation; when a file is whole |
//! | [`admin`], [`telemetry`], [`log`] | probes, metrics and the state |
//! | [`build`], [`cases`], [`dev`], [`narrate`], [`inspect`] | the commands of a plugin's author; what builds is `vmhost-toolchain` |
//! | [`permissions`] | what a plugin needs of the API server, and what of it is missing |
//! | [`status`], [`rbac`], [`finalizers`], [`table`] | the commands of who runs it |
//!
//! What is absent: a write of a turn's outside [`writes`], and one that does not ask [`leader`] first; an object, or an event's type, in the queue; a key in two workers; a guest on the runtime that watches; a call that
//! starts on an older generation after a newer one was announced; anything but a counter, a log line and a status after a reload that failed.

pub mod admin;
pub mod breaker;
pub mod build;
pub mod cases;
pub mod cli;
pub mod config;
pub mod controller;
pub mod decide;
pub mod desk;
pub mod dev;
pub mod finalizer;
pub mod finalizers;
pub mod hot;
pub mod idle;
pub mod inspect;
pub mod last_writes;
pub mod leader;
pub mod live;
pub mod log;
pub mod manager;
pub mod mapper;
pub mod narrate;
pub mod own_writes;
pub mod permissions;
pub mod previous;
pub mod rbac;
pub mod registry;
pub mod reload;
pub mod resources;
pub mod rights;
pub mod run;
pub mod runtimes;
pub mod settle;
pub mod setup;
pub mod sources;
pub mod status;
pub mod table;
pub mod telemetry;
pub mod triggers;
pub mod trim;
pub mod verdict;
pub mod watch_files;
pub mod worker;
pub mod writes;

pub use run::main;
