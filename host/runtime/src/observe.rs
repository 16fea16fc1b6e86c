//! Observability of a host: metrics, log lines, traces, probes, and the admin address with the
//! state and the turns. It must not know how a turn runs, or how a plugin is swapped.

pub mod admin;
pub(crate) mod informers;
pub mod log;
pub mod metrics;
pub(crate) mod sample;
pub(crate) mod trace;
pub(crate) mod warn;
