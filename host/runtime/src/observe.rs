//! Observability of a host: metrics, log lines, probes and the state document.

pub mod admin;
pub(crate) mod informers;
pub mod log;
pub mod metrics;
pub(crate) mod sample;
