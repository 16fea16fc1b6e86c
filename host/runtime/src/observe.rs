//! What a person or a monitor sees of a host: metrics, log lines, probes and the state.

pub mod admin;
pub(crate) mod informers;
pub mod log;
pub mod metrics;
pub(crate) mod sample;
